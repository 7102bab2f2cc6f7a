"""Names of weights in other houses: torchvision's ResNets, and Detectron2's."""

import re
from collections.abc import Mapping
from functools import cache

import torch
import torchvision
from torch import Tensor, nn

from phinets.backbones import IMAGENET_STEM

CLASSIFIER = "fc."
"""How the names of torchvision's classifier begin."""


def detectron2_name(name: str) -> str:
    """The name in Detectron2 of a weight of torchvision's ResNet.

    What lies in no layer is the stem's; layerN is res(N+1), bnK is convK.norm, downsample.0 is the shortcut and
    downsample.1 its norm: layer1.0.bn2.weight → res2.0.conv2.norm.weight.
    """
    found = re.fullmatch(r"layer(\d+)\.(\d+)\.(.+)", name)
    place, rest = ("stem", name) if found is None else (f"res{int(found[1]) + 1}.{found[2]}", found[3])
    rest = re.sub(r"^downsample\.0\.", "shortcut.", rest)
    rest = re.sub(r"^downsample\.1\.", "shortcut.norm.", rest)
    rest = re.sub(r"^bn(\d+)\.", r"conv\1.norm.", rest)
    return f"{place}.{rest}"


def torchvision_name(name: str) -> str:
    """The name in torchvision of a weight of Detectron2's ResNet: the way back of `detectron2_name`."""
    found = re.fullmatch(r"res(\d+)\.(\d+)\.(.+)", name)
    place, rest = (
        ("", name.removeprefix("stem.")) if found is None else (f"layer{int(found[1]) - 1}.{found[2]}.", found[3])
    )
    rest = re.sub(r"^shortcut\.norm\.", "downsample.1.", rest)
    rest = re.sub(r"^shortcut\.", "downsample.0.", rest)
    return place + re.sub(r"^conv(\d+)\.norm\.", r"bn\1.", rest)


def torchvision_twin(tensors: Mapping[str, Tensor]) -> str | None:
    """Which of torchvision's ResNets has weights of exactly these names and shapes, its classifier left out."""
    wanted = {name: value.shape for name, value in tensors.items() if not name.startswith(CLASSIFIER)}
    return next((name for name in IMAGENET_STEM if _shapes(name) == wanted), None)


@cache
def _shapes(name: str) -> dict[str, torch.Size]:
    tensors = fresh_resnet(name, torch.device("meta")).state_dict()
    return {key: value.shape for key, value in tensors.items() if not key.startswith(CLASSIFIER)}


def fresh_resnet(name: str, device: torch.device | None = None) -> nn.Module:
    """torchvision's ResNet of that name as anybody gets it, with its classifier; on `meta` it has shapes only."""
    with device or torch.device("cpu"):
        model: nn.Module = torchvision.models.get_model(name, weights=None)
    return model
