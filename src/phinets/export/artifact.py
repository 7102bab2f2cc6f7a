"""What a target makes of an encoder, and the proof that it is the same encoder."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor, nn

from phinets.config.errors import UserError
from phinets.config.export import ExportOptions
from phinets.export.source import Source

BATCHES = (1, 3)
"""How many images the copies are compared on at a time."""
CLOSE = 1e-5
"""How far features of two copies in torch may lie apart, in units of the largest, or of 1."""


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file that is ready to be written."""

    into: str
    """What takes it, in words."""
    fill: Callable[[BinaryIO], None]
    """Writes it."""
    check: Callable[[Path], float]
    """Reads it back as its user will, and gives the largest difference of features; refuses what is not the same."""
    usage: str
    """The lines of code that load it."""
    language: str = "python"
    """What they are written in."""
    notes: tuple[str, ...] = ()
    """What its user must know, a sentence each."""
    beside: Mapping[Path, str] = field(default_factory=dict)
    """Further text files."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A house that encoders are exported to."""

    endings: tuple[str, ...]
    """How its files may end; the first where nobody says."""
    options: tuple[str, ...] = ()
    """Those of the options with a meaning for one target alone that it reads."""
    make: Callable[[Source, ExportOptions, Path], Artifact]


def quoted(path: Path) -> str:
    """A file's name as a string of Python, for the lines that load it."""
    return json.dumps(path.name, ensure_ascii=False)


def require_same(source: Source, features_of: Callable[[Tensor], Tensor], limit: float = CLOSE) -> float:
    """The largest difference between the encoder's features and another's; refuses more than `limit`."""
    worst = 0.0
    for n in BATCHES:
        images = source.images(n)
        with torch.no_grad():
            wanted, given = source.encoder(source.normalized(images)), features_of(images)
        if not wanted.isfinite().all():
            raise UserError(f"the encoder in '{source.place}' gives features that are not finite: it has diverged.")
        if given.shape != wanted.shape:
            raise UserError(_other(source, f"it gives {tuple(given.shape)} for {tuple(wanted.shape)}"))
        apart = float((given - wanted).abs().max() / wanted.abs().max().clamp(min=1))
        if not apart <= limit:
            raise UserError(_other(source, f"features differ by {apart:.2g}, more than {limit:g}"))
        worst = max(worst, apart)
    return worst


def load_strictly(source: Source, fresh: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put weights into a fresh model: every one in its place and none left over, or an error."""
    try:
        fresh.load_state_dict(dict(tensors), strict=True)
    except RuntimeError as error:
        raise UserError(_other(source, " ".join(str(error).split()))) from error


def same_features(source: Source, model: nn.Module) -> float:
    """The largest difference between the encoder's features and those of another model in torch."""
    model.eval()
    return require_same(source, lambda images: model(source.normalized(images)))


def _other(source: Source, why: str) -> str:
    return (
        f"the export of '{source.place}' is not the same encoder ({why}), so nothing was written. Use --to "
        "safetensors, which keeps the encoder as it is."
    )
