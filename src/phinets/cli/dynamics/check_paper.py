"""`phinets dynamics check-paper`: the paper's statements on dynamics, beside what was computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError

if TYPE_CHECKING:
    from phinets.dynamics.claims import Finding

SIDES = ("published", "corrected")


@dataclass(frozen=True)
class CheckPaper:
    """Go through the paper's statements on dynamics: which hold for its printed equations, which for corrected ones.

    Each statement has its own system and weight decays, and is judged for both versions: there is no --system,
    --version or --rho.

    Example: phinets dynamics check-paper --only c1 c2 symmetry
    """

    sigma2: float = 1.5
    """σ² ≥ 0; the paper's figures have 1.5."""
    only: tuple[str, ...] = ()
    """Only these statements, by name; unset: all."""
    json: bool = False
    """Print one JSON document: every statement with its verdicts, its needs and all numbers."""

    def __post_init__(self) -> None:
        if not 0 <= self.sigma2 < float("inf"):
            raise UserError(f"sigma2 is {self.sigma2}, but must be a finite number, 0 or more.")


def command(words: list[str]) -> Outcome:
    """Judge each statement."""
    options = parse_words(CheckPaper, "dynamics check-paper", words)
    from phinets.dynamics.claims import check_paper

    found = check_paper(options.sigma2, options.only)
    document = {"sigma2": options.sigma2, "statements": {name: finding.plain() for name, finding in found.items()}}
    return Outcome(document, lambda console: _show(console, found))


def _show(console: Console, found: "Mapping[str, Finding]") -> None:
    for name, finding in found.items():
        console.print(f"[bold]{escape(finding.statement)}[/bold]", highlight=False)
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column()
        table.add_row(name, escape(finding.where))
        for side, verdict in finding.sides.items():
            color = "green" if verdict.holds else "red"
            word = "holds" if verdict.holds else "fails"
            table.add_row(side, f"[{color}]{word}[/{color}]: {escape(verdict.why)}")
        if finding.needs:
            table.add_row("needs", escape(finding.needs))
        console.print(table, highlight=False)
        console.print()
    paper = [finding for finding in found.values() if finding.in_paper]
    held = {side: sum(finding.sides[side].holds for finding in paper) for side in SIDES}
    told = ", ".join(f"{side}: {n} of {len(paper)} hold" for side, n in held.items())
    own = ", ".join(name for name, finding in found.items() if not finding.in_paper)
    beside = f"; not counted, as the paper does not say it: {own}" if own else ""
    console.print(told * bool(paper) + beside.removeprefix("; " * (not paper)), highlight=False, soft_wrap=True)
