"""The encoder as it is, in a file that says what it is."""

from functools import partial
from pathlib import Path

from torch import Tensor

from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.export.artifact import Artifact, Target, load_strictly, quoted, same_features
from phinets.export.source import Source
from phinets.export.state_dicts import SAFETENSORS, read_back, write


def make(source: Source, options: ExportOptions, out: Path) -> Artifact:
    """The weights under their own names and in their own precision, with the words that a run writes beside them."""
    name = source.subject.backbone
    tensors = {key: value.contiguous() for key, value in source.subject.encoder.state_dict().items()}
    return Artifact(
        into=f"phinets' {name}",
        fill=partial(write, tensors, SAFETENSORS, source.said),
        check=lambda path: _check(source, tensors, read_back(path, SAFETENSORS)),
        usage=_usage(name, out),
        notes=(
            "The file says what it is: `phinets eval`, `phinets export` and `phinets.load` read it without --backbone.",
        ),
    )


def _check(source: Source, tensors: dict[str, Tensor], found: dict[str, Tensor]) -> float:
    for name, value in tensors.items():
        if name not in found or found[name].dtype != value.dtype:
            raise UserError(f"'{name}' did not come back from the file as it went in, so nothing was written.")
    fresh = backbone(source.subject.backbone)
    load_strictly(source, fresh, found)
    return same_features(source, fresh)


def _usage(name: str, out: Path) -> str:
    return "\n".join(
        [
            "from phinets.backbones import backbone",
            "from safetensors.torch import load_file",
            "",
            f'model = backbone("{name}")',
            f"model.load_state_dict(load_file({quoted(out)}), strict=True)",
        ]
    )


TARGET = Target(endings=(SAFETENSORS,), make=make)
