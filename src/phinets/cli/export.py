"""`phinets export`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError, look_up
from phinets.config.export import ExportOptions
from phinets.export import TARGETS
from phinets.runtime.process import leaving_at_once


@dataclass(frozen=True)
class Options:
    """Take an encoder elsewhere: weights that load strictly there, proved before they appear, with a model card.

    Example: phinets export runs/first --to torchvision --out resnet18.pth
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, or a file of weights (.safetensors, or a state dict)."""
    to: Annotated[str, tyro.conf.arg(metavar="|".join(TARGETS))]
    """Where to: a state dict, the weights as phinets has them, a graph for onnxruntime, a pickle with its configs."""
    out: Path | None = None
    """The file of weights; the card goes beside it. Unset: the run's name and the target's, here."""
    export: ExportOptions = field(default_factory=ExportOptions)
    overwrite: bool = False
    """Replace files that are there."""
    json: bool = False
    """Print one JSON document: what was written, its checksum, and how far its features are from the encoder's."""

    def __post_init__(self) -> None:
        look_up("target", self.to, TARGETS)


def command(words: list[str]) -> Outcome:
    """Check, write, prove."""
    options = parse_words(Options, "export", words)
    with leaving_at_once():  # torch comes in here, after --help and bad words
        from phinets.export.export import card_of, export, out_of, written

    out = out_of(options.target, options.to, options.export, options.out)
    for path in (out, card_of(out)):
        require_free(path, options.overwrite)
    planned = export(options.target, options.to, options.export, out)
    _require_room(planned.artifact.beside, options.overwrite)
    proof = planned.carry_out()
    files = {name: str(path) for name, path in written(planned).items()}
    told = f"{planned.source.subject.called}, for {planned.artifact.into}; features equal to {proof.difference:.1e}"
    document = {
        "target": options.to,
        "into": planned.artifact.into,
        "encoder": planned.source.subject.clock,
        "backbone": planned.source.subject.backbone,
        "weights_from": planned.source.when(),
        "image_size": planned.source.size,
        "sha256": proof.sha256,
        "difference": proof.difference,
        "files": files,
    }
    return Outcome(document, lambda console: _show(console, (*files.values(), told)))


def _require_room(beside: Iterable[Path], overwrite: bool) -> None:
    """The same for files in a folder that may have to be made."""
    for path in beside:
        if path.parent.is_dir():
            require_free(path, overwrite)
        elif path.parent.exists():
            raise UserError(
                f"'{path.parent}' is a file, but the configurations need a folder. Choose another --configs."
            )


def _show(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
