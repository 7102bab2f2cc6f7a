"""`phinets dynamics equilibria`, `bifurcations` and `basins`: the eigenvalue flows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from phinets.cli.command import Outcome, parse_words, print_lines
from phinets.cli.dynamics.options import BOX, FlowOptions, SystemOptions, print_table
from phinets.cli.output import FileOptions, require_ending, require_free, save_figure

if TYPE_CHECKING:
    from phinets.dynamics.basins import Basins
    from phinets.dynamics.bifurcations import Bifurcations
    from phinets.dynamics.equilibria import Equilibrium


@dataclass(frozen=True)
class EquilibriaOptions(FlowOptions):
    """All equilibria of a flow, with their kind and the eigenvalues of the Jacobian.

    Example: phinets dynamics equilibria --version published --sigma2 1.5 --rho 0.003
    """

    json: bool = False
    """Print one JSON document; a real eigenvalue is a number, a complex one {re, im}."""


def equilibria_command(words: list[str]) -> Outcome:
    options = parse_words(EquilibriaOptions, "dynamics equilibria", words)
    from phinets.dynamics.equilibria import equilibria

    points = equilibria(options.flow())
    sinks = sum(point.kind == "sink" for point in points)
    document = options.plain() | {"equilibria": [point.plain() for point in points], "sinks": sinks}
    return Outcome(document, lambda console: _show_equilibria(console, points))


def _show_equilibria(console: Console, points: "Sequence[Equilibrium]") -> None:
    rows = []
    for point in points:
        eigenvalues = [f"{each.real:.4g}" + (f"{each.imag:+.4g}i" if each.imag else "") for each in point.eigenvalues]
        values = [f"{value:.8g}" for value in point.state]
        rows.append([*values, point.kind + ", collapsed" * point.collapsed, "  ".join(eigenvalues)])
    print_table(console, [*points[0].variables, "kind", "eigenvalues"], rows)


def _gamma(point: "Equilibrium", digits: int) -> str:
    return "" if point.gamma is None else f"{point.gamma:.{digits}g}"


@dataclass(frozen=True)
class BifurcationOptions(FileOptions, SystemOptions):
    """Every weight decay at which equilibria appear or change their kind, and the number of sinks between them.

    The paper's names STRONG, MEDIUM, LIGHT and WEAK mean only the number of sinks with ψ > 0 and ψ < 0.

    Example: phinets dynamics bifurcations --version published --sigma2 1.5 --out diagram.png
    """

    rho_min: float = 0.0
    """Bifurcations above this ρ; 0: no lower limit."""
    rho_max: float = 0.5
    """Bifurcations below this ρ."""
    out: Path | None = None
    """Draw into this file: .png, .svg or .pdf."""
    figure: Literal["diagram", "map"] = "diagram"
    """diagram: every equilibrium over ρ. map: the number of sinks at each ρ and each σ² up to 5. With rho-min 0 both
    begin at ρ = 1e-5, or at a thousandth of rho-max if that is less."""
    json: bool = False
    """Print one JSON document: bifurcations by falling ρ, and the number of sinks in each interval between them."""


def bifurcations_command(words: list[str]) -> Outcome:
    options = parse_words(BifurcationOptions, "dynamics bifurcations", words)
    require_free(options.out, options.overwrite)
    from phinets.dynamics.bifurcations import bifurcations

    diagram = bifurcations(options.flow_at(1.0), options.rho_min, options.rho_max)
    document = options.plain() | {"rho_min": diagram.rho_min, "rho_max": diagram.rho_max}
    document |= {"bifurcations": [point.plain() for point in diagram.points], "sinks": diagram.sinks}
    document |= {"regimes": diagram.regimes, "picture": None if options.out is None else str(options.out)}
    if options.out is not None:
        from phinets.reports.dynamics_figures import bifurcation_diagram, sink_diagram

        draw = {"diagram": bifurcation_diagram, "map": sink_diagram}[options.figure]
        lowest = options.rho_min or min(1e-5, options.rho_max / 1e3)
        save_figure(options.out, draw(options.flow_at(1.0), lowest, options.rho_max), colors=256)
    return Outcome(document, lambda console: _show_bifurcations(console, diagram))


def _show_bifurcations(console: Console, diagram: "Bifurcations") -> None:
    """Intervals and the bifurcations between them, by falling ρ."""
    rows: list[list[str]] = []
    points = [[f"{p.rho:.10g}", p.kind, f"{p.at.psi:.8g}", _gamma(p.at, 8)] for p in diagram.points]
    intervals = zip(diagram.intervals, diagram.sinks, diagram.regimes, strict=True)
    for k, ((high, low), sinks, regime) in enumerate(intervals):
        count = f"{sinks} sink{'s' * (sinks != 1)}"
        rows.append([f"{high:.4g} to {low:.4g}", f"{count}, {regime}" if regime else count])
        rows += points[k : k + 1]
    print_table(console, ["rho", "", "psi", "gamma"], rows)


@dataclass(frozen=True)
class BasinOptions(FileOptions, FlowOptions):
    """Which sink each starting point of a box ends in, and the share that does not collapse, beside SimSiam's.

    Example: phinets dynamics basins --rho 0.08 --box -0.2 0.6 -0.5 1.5 --out basins.png
    """

    box: tuple[float, float, float, float] = (-0.5, 0.5, -3.0, 3.0)
    """The starting points: smallest ψ, largest ψ, smallest γ, largest γ."""
    grid: int = 401
    """Points per side, edges included."""
    phi: float | None = None
    """For phinet-phi: φ ≥ 0 of every start; unset: ψ², on the parabola."""
    slow: float | None = None
    """For x-phinet: slow encoder of every start; unset: ψ, equal to the fast one."""
    out: Path | None = None
    """Draw the map into this file (.png, .svg, .pdf), or write its numbers (.npz): psi, gamma, labels (one row per γ;
    −1: undecided) and the sinks."""
    json: bool = False
    """Print one JSON document: the sinks with the share of starts that end in each, and SimSiam's shares."""


def basins_command(words: list[str]) -> Outcome:
    options = parse_words(BasinOptions, "dynamics basins", words)
    require_free(options.out, options.overwrite)
    if options.out is not None:
        require_ending(options.out, ("png", "svg", "pdf", "npz"))
    from phinets.dynamics.basins import Box, basins, simsiam_basins

    system, box = options.flow(), Box(**dict(zip(BOX, options.box, strict=True)))
    start = {name: value for name in ("phi", "slow") if (value := getattr(options, name)) is not None}
    basin_map = basins(system, box, options.grid, start)
    simsiam = simsiam_basins(system, box, options.grid)
    if options.out is not None:
        _write_basins(options.out, basin_map, simsiam)
    document = options.plain() | {"box": asdict(box), "grid": options.grid, "start": start, **_plain_basins(basin_map)}
    document |= {"simsiam": _plain_basins(simsiam), "map": None if options.out is None else str(options.out)}
    return Outcome(document, lambda console: _show_basins(console, basin_map, simsiam))


def _plain_basins(basin_map: "Basins") -> dict[str, Any]:
    sinks = [sink.plain() | {"share": share} for sink, share in zip(basin_map.sinks, basin_map.shares, strict=True)]
    return {"sinks": sinks, "non_collapsed": basin_map.non_collapsed, "undecided": basin_map.undecided}


def _write_basins(path: Path, basin_map: "Basins", simsiam: "Basins") -> None:
    if path.suffix.lower() != ".npz":
        from phinets.reports.phase_portrait import basin_figure

        maps = [basin_map] if basin_map.system == simsiam.system else [basin_map, simsiam]
        save_figure(path, basin_figure(maps), colors=256)
        return
    import numpy as np

    from phinets.runtime.files import atomic_write

    sinks = np.array([(sink.psi, np.nan if sink.gamma is None else sink.gamma) for sink in basin_map.sinks])
    content = BytesIO()
    np.savez_compressed(content, psi=basin_map.psi, gamma=basin_map.gamma, labels=basin_map.labels, sinks=sinks)
    atomic_write(path, content.getvalue())


def _show_basins(console: Console, basin_map: "Basins", simsiam: "Basins") -> None:
    rows = [
        [f"{sink.psi:.6g}", _gamma(sink, 6), f"{share:.4%}", "collapsed" * sink.collapsed]
        for sink, share in zip(basin_map.sinks, basin_map.shares, strict=True)
    ]
    print_table(console, ["sink at psi", "gamma", "share of starts", ""], rows)
    summary = f"not collapsed: {basin_map.non_collapsed:.4%}; SimSiam on the same box: {simsiam.non_collapsed:.4%}"
    if basin_map.undecided:
        summary += f"; undecided, on a border or a saddle: {basin_map.undecided} of {basin_map.labels.size}"
    print_lines(console, summary)
