"""Weights of an encoder in files that torchvision and timm read."""

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors.torch import load, save
from torch import Tensor

from phinets.backbones.resnet import SmallImageResNet
from phinets.backbones.translation import torchvision_twin
from phinets.config.errors import UserError
from phinets.export.artifact import quoted
from phinets.export.source import Source

PTH, SAFETENSORS = ".pth", ".safetensors"


def write(tensors: Mapping[str, Tensor], ending: str, said: Mapping[str, str], file: BinaryIO) -> None:
    """Tensors by name; a .safetensors file also keeps what is said of them."""
    if ending == SAFETENSORS:
        file.write(save(dict(tensors), dict(said)))
    else:
        torch.save(dict(tensors), file)


def read_back(path: Path, ending: str) -> dict[str, Tensor]:
    """What `write` wrote, whatever the file is called for now."""
    if ending == SAFETENSORS:
        return dict(load(path.read_bytes()))
    found: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return found


def reading(out: Path) -> tuple[str, str]:
    """The import and the expression that read the file, for somebody else's script."""
    if out.suffix == SAFETENSORS:
        return "from safetensors.torch import load_file", f"load_file({quoted(out)})"
    return "import torch", f"torch.load({quoted(out)}, weights_only=True)"


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
