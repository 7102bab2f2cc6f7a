"""`phinets dynamics bifurcations`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from phinets.cli.dynamics.setting import Family
from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words

if TYPE_CHECKING:
    from phinets.dynamics.bifurcations import Bifurcations


@dataclass(frozen=True)
class Options(Family):
    """Every weight decay at which equilibria are born or change their kind, and the number of sinks between them.

    Example: phinets dynamics bifurcations --version published --sigma2 1.5
    """

    rho_min: float = 0.0
    """Bifurcations above this ρ; 0: all there are."""
    rho_max: float = 0.5
    """Bifurcations below this ρ."""
    json: bool = False
    """Print one JSON document: bifurcations by falling ρ, and the number of sinks in each interval between them."""


def command(words: list[str]) -> Outcome:
    """All bifurcations in a range."""
    options = parse_words(Options, "dynamics bifurcations", words)
    from phinets.dynamics.bifurcations import bifurcations

    whole = bifurcations(options.flow_at(1.0), options.rho_min, options.rho_max)
    document = options.plain() | {
        "rho_min": whole.rho_min,
        "rho_max": whole.rho_max,
        "bifurcations": [each.plain() for each in whole.found],
        "sinks": whole.sinks,
        "regimes": whole.regimes,
    }
    return Outcome(document, lambda console: _show(console, whole))


def _show(console: Console, whole: "Bifurcations") -> None:
    """Intervals and the bifurcations between them, by falling ρ."""
    table = Table(box=None, pad_edge=False)
    for heading in ("rho", "", "psi", "gamma"):
        table.add_column(heading, no_wrap=True)
    between = [
        (f"{each.rho:.10g}", each.kind, f"{each.at.psi:.8g}", "" if each.at.gamma is None else f"{each.at.gamma:.8g}")
        for each in whole.found
    ]
    for k, ((high, low), sinks, regime) in enumerate(zip(whole.intervals, whole.sinks, whole.regimes, strict=True)):
        number = f"{sinks} sink{'s' * (sinks > 1)}"
        table.add_row(f"{high:.4g} to {low:.4g}", f"{number}, {regime}" if regime else number)
        if k < len(between):
            table.add_row(*between[k])
    console.print(table, highlight=False)
