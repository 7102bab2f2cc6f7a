"""`phinets dynamics`: equilibria, bifurcations, basins, phase portraits and matrix flows of the linear theory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phinets.cli.command import Action, Outcome, parse_words, print_lines, run_action
from phinets.cli.dynamics.eigenvalues import basins_command, bifurcations_command, equilibria_command
from phinets.cli.dynamics.matrix import flow_command, train_command
from phinets.cli.dynamics.options import VERSIONS
from phinets.cli.dynamics.portrait import explore_command, portrait_command
from phinets.config.errors import require_in

if TYPE_CHECKING:
    from phinets.dynamics.claims import ClaimCheck


@dataclass(frozen=True)
class CheckPaper:
    """Check the paper's statements on dynamics, for its printed equations and for the corrected ones.

    Each statement has its own system and weight decays, and is checked for both versions: there is no --system,
    --version or --rho.

    Example: phinets dynamics check-paper --only c1 c2 symmetry
    """

    sigma2: float = 1.5
    """σ² ≥ 0: variance of the augmentation; the paper's figures have 1.5."""
    only: tuple[str, ...] = ()
    """Only these statements, by name; unset: all."""
    json: bool = False
    """Print one JSON document: every statement with its verdicts, its conditions and all numbers."""

    def __post_init__(self) -> None:
        require_in(self, sigma2="[0, inf)")


def _check_paper(words: list[str]) -> Outcome:
    options = parse_words(CheckPaper, "dynamics check-paper", words)
    from phinets.dynamics.claims import check_paper

    checks = check_paper(options.sigma2, options.only)
    document = {"sigma2": options.sigma2, "statements": {name: check.plain() for name, check in checks.items()}}
    return Outcome(document, lambda console: _show(console, checks))


def _show(console: Console, checks: "Mapping[str, ClaimCheck]") -> None:
    for name, check in checks.items():
        console.print(check.statement, style="bold", markup=False, highlight=False)
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True, style="dim")
        table.add_column()
        table.add_row(name, Text(check.where))
        for version, verdict in check.verdicts.items():
            word, color = ("holds", "green") if verdict.holds else ("fails", "red")
            table.add_row(version, Text.assemble((word, color), f": {verdict.why}"))
        if check.needs:
            table.add_row("needs", Text(check.needs))
        console.print(table, highlight=False)
        console.print()
    paper = [check for check in checks.values() if check.in_paper]
    own = ", ".join(name for name, check in checks.items() if not check.in_paper)
    counts = [f"{side}: {sum(check.verdicts[side].holds for check in paper)} of {len(paper)} hold" for side in VERSIONS]
    summary = [", ".join(counts)] * bool(paper) + [f"not counted, since the paper does not state it: {own}"] * bool(own)
    print_lines(console, "; ".join(summary))


ACTIONS: Mapping[str, Action] = {
    "equilibria": Action("all equilibria, their kinds and eigenvalues", equilibria_command),
    "bifurcations": Action(
        "every weight decay at which equilibria appear, and the number of sinks between", bifurcations_command
    ),
    "basins": Action("which sink each start of a box ends in", basins_command),
    "portrait": Action("draw the phase portrait, including the paper's figures", portrait_command),
    "flow": Action("integrate the matrix flow: commutators, norms, eigenvalues", flow_command),
    "train": Action("train the same networks by SGD, beside the flow", train_command),
    "check-paper": Action("check the paper's statements, one by one", _check_paper),
    "explore": Action("write an interactive page that works offline", explore_command),
}


def command(words: list[str]) -> Outcome:
    outcome = run_action("dynamics", ACTIONS, "phinets dynamics equilibria --rho 0.03", words)
    return replace(outcome, digits=None)
