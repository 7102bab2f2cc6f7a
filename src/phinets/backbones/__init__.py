"""Encoders by name: image → feature."""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock

from phinets.config.errors import UserError, look_up

__all__ = ["BACKBONES", "backbone", "describe_backbone", "feature_width", "require_features", "warn_if_small"]


class SmallImageResNet(nn.Module):
    """image (n, 3, s, s) → feature (n, widths[-1]); every stage but the first halves the side, and so may the stem.

    With widths (64, 128, 256, 512) and two blocks a stage it is the paper's ResNet-18 for CIFAR. Kaiming fan-out for
    convolutions and no zero-initialized residual, as in the paper's recipe. Parameters are named as torchvision's.
    """

    def __init__(self, widths: tuple[int, ...], blocks: int, stem_stride: int = 1) -> None:
        super().__init__()
        self.num_features = widths[-1]
        self.conv1 = nn.Conv2d(3, widths[0], 3, stride=stem_stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.stages = [f"layer{i + 1}" for i in range(len(widths))]
        inputs = (widths[0], *widths[:-1])
        for i, (name, fan_in, width) in enumerate(zip(self.stages, inputs, widths, strict=True)):
            self.add_module(name, _stage(fan_in, width, blocks, stride=1 if i == 0 else 2))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        for name in self.stages:
            x = self.get_submodule(name)(x)
        return torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)


def _stage(fan_in: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    shortcut = None
    if stride != 1 or fan_in != width:
        shortcut = nn.Sequential(nn.Conv2d(fan_in, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width))
    first = BasicBlock(fan_in, width, stride=stride, downsample=shortcut)
    return nn.Sequential(first, *(BasicBlock(width, width) for _ in range(blocks - 1)))


def resnet18_cifar() -> nn.Module:
    """The paper's encoder: ResNet-18 with a 3×3 stem and no max-pool; 11.2 M parameters, 512 features."""
    return SmallImageResNet((64, 128, 256, 512), blocks=2)


def resnet_tiny() -> nn.Module:
    """The same family for CPUs and tests: narrow, a block a stage, stem of stride 2; 0.3 M parameters, 128 features."""
    return SmallImageResNet((16, 32, 64, 128), blocks=1, stem_stride=2)


def resnet_nano() -> nn.Module:
    """The same without the last stage, for 16-pixel images and many runs; 0.08 M parameters, 64 features."""
    return SmallImageResNet((16, 32, 64), blocks=1, stem_stride=2)


@contextmanager
def eval_mode(encoder: nn.Module) -> Iterator[None]:
    """The encoder in eval mode and without gradients; afterwards each module is in its former mode."""
    modes = {module: module.training for module in encoder.modules()}
    encoder.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


def _torchvision_resnet(name: str, **options: bool) -> nn.Module:
    """torchvision's ResNet of that name without its classifier; 7×7 stem and max-pool for ImageNet-size images."""
    model = torchvision.models.get_model(name, weights=None, **options)
    model.num_features, model.fc = model.fc.in_features, nn.Identity()
    assert isinstance(model, nn.Module)
    return model


IMAGENET_STEM = tuple(n for n in torchvision.models.resnet.__all__ if n.islower())

BACKBONES: Mapping[str, Callable[[], nn.Module]] = {
    "resnet18-cifar": resnet18_cifar,
    "resnet-tiny": resnet_tiny,
    "resnet-nano": resnet_nano,
    **{name: partial(_torchvision_resnet, name) for name in IMAGENET_STEM},
    "resnet50/zero-init-residual": partial(_torchvision_resnet, "resnet50", zero_init_residual=True),
}
"""By name; a variant has the weights' names and shapes of the encoder before the slash."""


def backbone(name: str, image_size: int | None = None) -> nn.Module:
    """A fresh encoder: a name of the table, `timm:NAME`, or the dotted path of a callable that returns an nn.Module.

    Given the side of the images, it warns where they are too small for the stem.
    """
    if name.startswith("timm:"):
        return _timm(name.removeprefix("timm:"))
    if name not in BACKBONES and ("." in name or ":" in name):
        return _dotted(name)
    build = look_up("backbone", name, BACKBONES)
    if image_size is not None:
        warn_if_small(name, image_size)
    return build()


def has_imagenet_stem(name: str) -> bool:
    """Whether a named encoder is one of torchvision's ResNets, or a variant of one."""
    return name.partition("/")[0] in IMAGENET_STEM


def warn_if_small(name: str, image_size: int) -> None:
    """Warn where images are too small for a backbone's stem."""
    if has_imagenet_stem(name) and image_size <= 64:
        places = max(1, image_size // 4)
        warnings.warn(
            f"'{name}' has the ImageNet stem (7×7, stride 2, max-pool): it makes {places} × {places} places of a "
            f"{image_size}-pixel image before its first block. Use resnet18-cifar, or resnet-tiny on a CPU.",
            stacklevel=3,
        )


def describe_backbone(name: str) -> str:
    """A named encoder in one line."""
    build = look_up("backbone", name, BACKBONES)
    if has_imagenet_stem(name):
        variant = "; every residual branch starts at zero, as in SimSiam's code for ImageNet" if "/" in name else ""
        return f"torchvision's, without its classifier; ImageNet stem, for images of 128 pixels and more{variant}"
    return (build.__doc__ or "").splitlines()[0].rstrip(".")


def require_no_head(module: nn.Module) -> None:
    """Refuse timm's and torchvision's classifiers, whose outputs are scores of classes, not features."""
    library = type(module).__module__.partition(".")[0]
    cure = "model.reset_classifier(0)" if library == "timm" and getattr(module, "num_classes", None) else ""
    for name in ("fc", "classifier", "head", "heads") if library == "torchvision" else ():
        if isinstance(list(getattr(module, name, nn.Identity()).modules())[-1], nn.Linear):
            cure = f"model.{name} = torch.nn.Identity()"
    if cure:
        raise UserError(f"this {type(module).__name__} still has its classification head. Remove it: {cure}.")


def feature_width(module: nn.Module, image_size: int | None = None) -> int:
    """Number of features: the encoder's `num_features`, or with an image size that of its output for a blank image."""
    width = getattr(module, "num_features", None)
    if image_size is None and isinstance(width, int):
        return width
    side = image_size or 32
    weight = next(module.parameters(), torch.zeros(0))
    try:
        with eval_mode(module):
            features = module(torch.zeros(2, 3, side, side).to(weight))
    except Exception as error:
        raise UserError(
            f"the encoder failed on a batch of {side} × {side} images: {error}. It must take (n, 3, s, s); set the "
            "side with image_size=…, or give it an attribute num_features."
        ) from error
    return int(require_features(features).shape[1])


def require_features(output: object, images: int | None = None) -> torch.Tensor:
    """An encoder's output, if it is one feature vector per image."""
    if isinstance(output, torch.Tensor) and output.ndim == 2 and images in (None, len(output)):
        return output
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    raise UserError(
        f"an encoder must return one feature vector per image, ({images or 'n'}, d), but this one returned {shape}. "
        "Add a global pooling and a flatten at its end."
    )


def _timm(name: str) -> nn.Module:
    try:
        timm = import_module("timm")
    except ImportError:
        raise UserError(f"'timm:{name}' needs timm, which is not installed: pip install 'phinets[timm]'.") from None
    look_up("timm model", name, dict.fromkeys(timm.list_models()))
    model: nn.Module = timm.create_model(name, pretrained=False, num_classes=0)
    return model


def _dotted(path: str) -> nn.Module:
    module_name, _, attribute = path.replace(":", ".").rpartition(".")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # so that files here can be imported, as with python -m
    try:
        build = getattr(import_module(module_name), attribute)
        model = build if isinstance(build, nn.Module) else build()
    except Exception as error:
        raise UserError(
            f"the backbone '{path}' can't be imported: {type(error).__name__}: {error}. A dotted path must be "
            "package.module.callable, importable from here and callable without arguments; `phinets list backbones` "
            "lists the names."
        ) from error
    if model is build:
        raise UserError(f"'{path}' is a module. Name the function or class that builds a new one.")
    if not isinstance(model, nn.Module):
        raise UserError(f"'{path}' returned a {type(model).__name__}; a backbone must be an nn.Module.")
    return model
