"""A state dict that torchvision's own ResNet takes."""

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from phinets.backbones.translation import fresh_resnet
from phinets.config.export import ExportOptions
from phinets.export.artifact import Artifact, Target, load_strictly, same_features
from phinets.export.source import Source
from phinets.export.state_dicts import PTH, SAFETENSORS, read_back, reading, resnet_name, write

CLASSES = 1000
"""What the classifier of a model as torchvision makes it tells apart."""


def make(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """The weights and, unless `headless`, a classifier of zeros, since a model as torchvision makes it has one."""
    name = resnet_name(source, "torchvision")
    tensors = source.tensors()
    notes: tuple[str, ...] = ()
    if not options.headless:
        tensors |= _classifier(source.width)
        trained = source.folder is None  # perhaps
        why = "the file's own, where it had one, was left out" if trained else "nothing has trained it"
        notes = (f"The classifier `fc` is all zeros, for {CLASSES} classes: {why}. Put your own there.",)
    return Artifact(
        into=f"torchvision's {name}" + " without its classifier" * options.headless,
        fill=partial(write, tensors, out.suffix, source.said),
        check=lambda path: _check(source, name, options.headless, read_back(path, out.suffix)),
        usage=_usage(name, out, options.headless),
        notes=notes,
    )


def _classifier(width: int) -> dict[str, Tensor]:
    return {"fc.weight": torch.zeros(CLASSES, width), "fc.bias": torch.zeros(CLASSES)}


def _check(source: Source, name: str, headless: bool, tensors: dict[str, Tensor]) -> float:
    fresh = fresh_resnet(name)
    if headless:
        fresh.fc = nn.Identity()
    load_strictly(source, fresh, tensors)
    fresh.fc = nn.Identity()
    return same_features(source, fresh)


def _usage(name: str, out: Path, headless: bool) -> str:
    needs, read = reading(out)
    model = f"model = torchvision.models.{name}(weights=None)"
    load = f"model.load_state_dict({read}, strict=True)"
    features = "model.fc = torch.nn.Identity()"
    lines = [model, features, load] if headless else [model, load, f"{features}  # features; or your own classifier"]
    imports = dict.fromkeys(("import torch", "import torchvision", needs))
    return "\n".join([*imports, "", *lines])


TARGET = Target(endings=(PTH, SAFETENSORS), options=("headless",), make=make)
