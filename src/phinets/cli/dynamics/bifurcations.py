"""`phinets dynamics bifurcations`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table

from phinets.cli.dynamics.setting import Family
from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free, save_figure
from phinets.cli.parsing import parse_words

if TYPE_CHECKING:
    from phinets.dynamics.bifurcations import Bifurcations


@dataclass(frozen=True)
class Options(Family):
    """Every weight decay at which equilibria are born or change their kind, and the number of sinks between them.

    The paper's words STRONG, MEDIUM, LIGHT and WEAK stand for the number of sinks with ψ > 0 and ψ < 0 alone.

    Example: phinets dynamics bifurcations --version published --sigma2 1.5 --out diagram.png
    """

    rho_min: float = 0.0
    """Bifurcations above this ρ; 0: all there are."""
    rho_max: float = 0.5
    """Bifurcations below this ρ."""
    out: Path | None = None
    """Draw into this file; the ending tells the format: .png, .svg, .pdf."""
    figure: Literal["diagram", "map"] = "diagram"
    """diagram: every equilibrium over ρ. map: the number of sinks at each ρ and each σ² up to 5. Where rho-min is 0
    both begin at ρ = 1e-5, or at a thousandth of rho-max where that is less."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: bifurcations by falling ρ, and the number of sinks in each interval between them."""


def command(words: list[str]) -> Outcome:
    """All bifurcations in a range."""
    options = parse_words(Options, "dynamics bifurcations", words)
    require_free(options.out, options.overwrite)
    from phinets.dynamics.bifurcations import bifurcations

    whole = bifurcations(options.flow_at(1.0), options.rho_min, options.rho_max)
    document = options.plain() | {
        "rho_min": whole.rho_min,
        "rho_max": whole.rho_max,
        "bifurcations": [each.plain() for each in whole.found],
        "sinks": whole.sinks,
        "regimes": whole.regimes,
        "picture": None if options.out is None else str(options.out),
    }
    if options.out is not None:
        _draw(options, options.out)
    return Outcome(document, lambda console: _show(console, whole))


def _draw(options: Options, path: Path) -> None:
    from phinets.reports.bifurcation_diagram import bifurcation_diagram, sink_diagram

    draw = {"diagram": bifurcation_diagram, "map": sink_diagram}[options.figure]
    first = options.rho_min or min(1e-5, options.rho_max / 1e3)
    save_figure(path, draw(options.flow_at(1.0), first, options.rho_max), colors=256)


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
        number = f"{sinks} sink{'s' * (sinks != 1)}"
        table.add_row(f"{high:.4g} to {low:.4g}", f"{number}, {regime}" if regime else number)
        if k < len(between):
            table.add_row(*between[k])
    console.print(table, highlight=False)
