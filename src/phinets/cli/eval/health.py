"""`phinets eval health`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.table import Table

from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.exam import HealthOptions
from phinets.runtime.process import leaving_at_once

if TYPE_CHECKING:
    from phinets.evaluation.health import Report

SHOWN = 8
"""Values of a spectrum that are shown to people; --json tells all."""


@dataclass(frozen=True)
class HealthOf:
    """How the codes of a run's learner lie, and how its layers stand: collapse, ranks, spectra, fast and slow.

    Example: phinets eval health runs/first
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, or one of its checkpoints."""
    looked: HealthOptions = field(default_factory=HealthOptions)
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    json: bool = False
    """Print one JSON document: every reading, spectra in full, verdict, protocol."""


def command(words: list[str]) -> Outcome:
    """Every measure of the learner."""
    options = parse_words(HealthOf, "eval health", words)
    with leaving_at_once():
        from phinets.evaluation.health import report
        from phinets.runtime.devices import pick_device

    found = report(options.target, options.looked, pick_device(options.device))
    document = {"target": str(options.target), "verdict": found.verdict, "protocol": found.protocol, **found.readings}
    return Outcome(document, lambda console: _show(console, found))


def _show(console: Console, found: "Report") -> None:
    table = Table(title=f"the codes are {found.verdict}", caption=found.protocol, show_header=False)
    for name, value in found.readings.items():
        if isinstance(value, list):
            told = " ".join(f"{v:.3f}" for v in value[:SHOWN]) + (f" … ({len(value)})" if len(value) > SHOWN else "")
        else:
            told = f"{value:.4g}"
        table.add_row(name.replace("_", " "), told)
    console.print(table, highlight=False)
