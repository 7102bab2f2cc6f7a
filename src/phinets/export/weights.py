"""Weight files: torchvision's ResNets, timm's models, and phinets' own safetensors."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors.torch import load
from torch import Tensor, nn

from phinets.backbones import SmallImageResNet, backbone
from phinets.backbones.weights import fresh_resnet, matching_resnet, serialize_weights
from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.export.artifact import Artifact, Source, Target, feature_difference, load_strict, quote

PTH, SAFETENSORS = ".pth", ".safetensors"
NUM_CLASSES = 1000
"""Width of the classifier of torchvision's models."""


def torchvision_weights(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """A state dict for torchvision's ResNet; unless `headless`, with a classifier of zeros, which a fresh model has."""
    name = torchvision_resnet(source, "torchvision")
    tensors = source.tensors()
    notes: tuple[str, ...] = ()
    if not options.headless:
        tensors |= {"fc.weight": torch.zeros(NUM_CLASSES, source.width), "fc.bias": torch.zeros(NUM_CLASSES)}
        why = "a classifier in the file was left out" if source.folder is None else "nothing has trained it"
        notes = (f"The classifier `fc` is all zeros, for {NUM_CLASSES} classes: {why}. Replace it with your own.",)

    def check(path: Path) -> float:
        model = fresh_resnet(name)
        if options.headless:
            model.fc = nn.Identity()
        load_strict(source, model, read_tensors(path, out.suffix))
        model.fc = nn.Identity()
        return feature_difference(source, model)

    return Artifact(
        description=f"torchvision's {name}" + " without its classifier" * options.headless,
        write=partial(write_tensors, tensors, out.suffix, source.metadata),
        check=check,
        usage=_torchvision_usage(name, out, options.headless),
        notes=notes,
    )


def _torchvision_usage(name: str, out: Path, headless: bool) -> str:
    needs, read = _read_code(out)
    model = f"model = torchvision.models.{name}(weights=None)"
    load = f"model.load_state_dict({read}, strict=True)"
    features = "model.fc = torch.nn.Identity()"
    lines = [model, features, load] if headless else [model, load, f"{features}  # features; or your own classifier"]
    imports = dict.fromkeys(("import torch", "import torchvision", needs))
    return "\n".join([*imports, "", *lines])


def timm_weights(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """A state dict for a timm model without classifier. timm's ResNets use torchvision's names."""
    kind, _, timm_name = source.loaded_encoder.backbone.partition(":")
    name = timm_name if kind == "timm" else torchvision_resnet(source, "timm")
    model = backbone(f"timm:{name}")

    def check(path: Path) -> float:
        load_strict(source, model, read_tensors(path, out.suffix))
        return feature_difference(source, model)

    needs, read = _read_code(out)
    create = f'model = timm.create_model("{name}", num_classes=0)'
    return Artifact(
        description=f"timm's {name} without its classifier",
        write=partial(write_tensors, source.tensors(), out.suffix, source.metadata),
        check=check,
        usage="\n".join(["import timm", needs, "", create, f"model.load_state_dict({read}, strict=True)"]),
    )


def safetensors_weights(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """The weights under their own names and in their own precision, with the metadata that a run writes."""
    name = source.loaded_encoder.backbone
    tensors = {key: value.contiguous() for key, value in source.loaded_encoder.module.state_dict().items()}

    def check(path: Path) -> float:
        stored = read_tensors(path, SAFETENSORS)
        for key, value in tensors.items():
            if key not in stored or stored[key].dtype != value.dtype:
                raise UserError(f"'{key}' changed on its way through the file, so nothing was written.")
        model = backbone(name)
        load_strict(source, model, stored)
        return feature_difference(source, model)

    needs, read = _read_code(out)
    create = f'model = backbone("{name}")'
    lines = ["from phinets.backbones import backbone", needs, "", create, f"model.load_state_dict({read}, strict=True)"]
    return Artifact(
        description=f"phinets' {name}",
        write=partial(write_tensors, tensors, SAFETENSORS, source.metadata),
        check=check,
        usage="\n".join(lines),
        notes=("The file names its backbone: `phinets eval`, `phinets export` and `phinets.load` need no --backbone.",),
    )


def write_tensors(tensors: Mapping[str, Tensor], suffix: str, metadata: Mapping[str, str], file: BinaryIO) -> None:
    """Write tensors by name; a .safetensors file also holds the metadata."""
    if suffix == SAFETENSORS:
        file.write(serialize_weights(tensors, metadata))
    else:
        torch.save(dict(tensors), file)


def read_tensors(path: Path, suffix: str) -> dict[str, Tensor]:
    """What `write_tensors` wrote with this suffix; the file itself may have a temporary name."""
    if suffix == SAFETENSORS:
        return dict(load(path.read_bytes()))
    tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors


def _read_code(out: Path) -> tuple[str, str]:
    """The import and the expression that read the file."""
    if out.suffix == SAFETENSORS:
        return "from safetensors.torch import load_file", f"load_file({quote(out)})"
    return "import torch", f"torch.load({quote(out)}, weights_only=True)"


def torchvision_resnet(source: Source, target: str) -> str:
    """The torchvision ResNet that has the encoder's names and shapes.

    Raises:
        UserError: there is none. The message says why, and which target to use.
    """
    name, loaded_encoder = matching_resnet(source.tensors()), source.loaded_encoder
    if name is None:
        raise UserError(
            f"'{loaded_encoder.backbone}' can't be exported to {target}: {_mismatch(loaded_encoder.module)}. Use --to "
            "safetensors, which phinets.load reads, or --to onnx, which runs anywhere."
        )
    return name


def _mismatch(encoder: nn.Module) -> str:
    if not isinstance(encoder, SmallImageResNet):
        return "its weights don't have the names and shapes of any of torchvision's ResNets"
    side, stride = encoder.conv1.kernel_size[0], encoder.conv1.stride[0]
    width = "" if encoder.num_features == 512 else "; it is also narrower"
    return (
        f"its stem is made for small images, {side}×{side} of stride {stride} without a max-pool, where torchvision's "
        f"ResNets have 7×7 of stride 2 and a max-pool{width}"
    )


TARGETS = {
    "torchvision": Target(suffixes=(PTH, SAFETENSORS), options=("headless",), prepare=torchvision_weights),
    "timm": Target(suffixes=(SAFETENSORS, PTH), prepare=timm_weights),
    "safetensors": Target(suffixes=(SAFETENSORS,), prepare=safetensors_weights),
}
