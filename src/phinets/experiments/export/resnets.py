"""Which encoders are ResNets as torchvision builds them, and why others are not."""

from phinets.backbones.resnet import SmallImageResNet
from phinets.backbones.translation import torchvision_twin
from phinets.config.errors import UserError
from phinets.experiments.export.source import Source


def resnet_name(source: Source, target: str) -> str:
    """The torchvision ResNet that the encoder is, or an error that says why it is none and what to use."""
    name = torchvision_twin(source.tensors())
    if name is None:
        raise UserError(
            f"'{source.subject.backbone}' can't be exported to {target}: {_why(source)}. Use --to safetensors, which "
            "phinets.load reads, or --to onnx, which runs anywhere."
        )
    return name


def _why(source: Source) -> str:
    encoder = source.subject.encoder
    if not isinstance(encoder, SmallImageResNet):
        return "its weights don't have the names and shapes of any of torchvision's ResNets"
    side, stride = encoder.conv1.kernel_size[0], encoder.conv1.stride[0]
    widths = "" if encoder.num_features == 512 else "; it is narrower, too"
    return (
        f"its stem is made for small images, {side}×{side} of stride {stride} without a max-pool, where torchvision's "
        f"ResNets have 7×7 of stride 2 and a max-pool{widths}"
    )
