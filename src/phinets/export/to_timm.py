"""A state dict that a timm model without classifier takes."""

from functools import partial
from pathlib import Path

from phinets.backbones import backbone
from phinets.config.export import ExportOptions
from phinets.export.artifact import Artifact, Target, load_strictly, same_features
from phinets.export.source import Source
from phinets.export.state_dicts import PTH, SAFETENSORS, read_back, reading, resnet_name, write


def make(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """The weights as they are: timm's ResNets bear torchvision's names, and a timm model its own."""
    kind, _, own = source.subject.backbone.partition(":")
    name = own if kind == "timm" else resnet_name(source, "timm")
    fresh = backbone(f"timm:{name}")

    def check(path: Path) -> float:
        load_strictly(source, fresh, read_back(path, out.suffix))
        return same_features(source, fresh)

    return Artifact(
        into=f"timm's {name} without its classifier",
        fill=partial(write, source.tensors(), out.suffix, source.said),
        check=check,
        usage=_usage(name, out),
    )


def _usage(name: str, out: Path) -> str:
    needs, read = reading(out)
    model = f'model = timm.create_model("{name}", num_classes=0)'
    return "\n".join(["import timm", needs, "", model, f"model.load_state_dict({read}, strict=True)"])


TARGET = Target(endings=(SAFETENSORS, PTH), make=make)
