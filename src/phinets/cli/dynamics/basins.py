"""`phinets dynamics basins`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from phinets.cli.dynamics.setting import Setting
from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free, save_figure
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError

if TYPE_CHECKING:
    from phinets.dynamics.basins import Basins

ENDINGS = (".png", ".svg", ".pdf", ".npz")
BOX = ("psi_min", "psi_max", "gamma_min", "gamma_max")


@dataclass(frozen=True)
class Options(Setting):
    """Which sink each starting point of a box ends in, and the share that does not collapse, beside SimSiam's.

    Example: phinets dynamics basins --rho 0.08 --box -0.2 0.6 -0.5 1.5 --out basins.png
    """

    box: tuple[float, float, float, float] = (-0.5, 0.5, -3.0, 3.0)
    """The starting points: least ψ, greatest ψ, least γ, greatest γ."""
    grid: int = 401
    """Points a side, edges included."""
    phi: float | None = None
    """For phinet-phi: every start's φ ≥ 0; unset: ψ², on the parabola."""
    slow: float | None = None
    """For x-phinet: every start's slow encoder; unset: ψ, level with the fast one."""
    out: Path | None = None
    """Draw the map into this file (.png, .svg, .pdf), or write its numbers (.npz): psi, gamma, labels (a row a γ; −1:
    undecided) and the sinks."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: the sinks with the share of starts that each draws, and SimSiam's shares."""


def command(words: list[str]) -> Outcome:
    """The basins of a box."""
    options = parse_words(Options, "dynamics basins", words)
    require_free(options.out, options.overwrite)
    if options.out is not None and options.out.suffix.lower() not in ENDINGS:
        raise UserError(f"'{options.out}' can't be written: its ending must be one of {', '.join(ENDINGS)}.")
    from phinets.dynamics.basins import Box, basins, simsiam_beside

    system, box = options.flow(), Box(**dict(zip(BOX, options.box, strict=True)))
    start = {name: value for name in ("phi", "slow") if (value := getattr(options, name)) is not None}
    found = basins(system, box, options.grid, start)
    simsiam = simsiam_beside(system, box, options.grid)
    if options.out is not None:
        _write(options.out, found, simsiam)
    document = options.plain() | {"box": asdict(box), "grid": options.grid, "start": start, **_plain(found)}
    document |= {"simsiam": _plain(simsiam), "map": None if options.out is None else str(options.out)}
    return Outcome(document, lambda console: _show(console, found, simsiam))


def _plain(found: "Basins") -> dict[str, Any]:
    return {
        "sinks": [sink.plain() | {"share": share} for sink, share in zip(found.sinks, found.shares, strict=True)],
        "non_collapsed": found.kept,
        "undecided": found.undecided,
    }


def _write(path: Path, found: "Basins", simsiam: "Basins") -> None:
    if path.suffix.lower() == ".npz":
        return _save(path, found)
    from phinets.reports.phase_portrait import basin_map

    return save_figure(path, basin_map([found] if found.system == simsiam.system else [found, simsiam]), colors=256)


def _save(path: Path, found: "Basins") -> None:
    from io import BytesIO

    import numpy as np

    from phinets.runtime.files import atomic_write

    sinks = np.array([(sink.psi, np.nan if sink.gamma is None else sink.gamma) for sink in found.sinks])
    whole = BytesIO()
    np.savez_compressed(whole, psi=found.psi, gamma=found.gamma, labels=found.labels, sinks=sinks)
    atomic_write(path, whole.getvalue())


def _show(console: Console, found: "Basins", simsiam: "Basins") -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("sink at psi", "gamma", "share of starts", ""):
        table.add_column(heading, no_wrap=True)
    for sink, share in zip(found.sinks, found.shares, strict=True):
        gamma = "" if sink.gamma is None else f"{sink.gamma:.6g}"
        table.add_row(f"{sink.psi:.6g}", gamma, f"{share:.4%}", "collapsed" * sink.collapsed)
    console.print(table, highlight=False)
    told = f"not collapsed: {found.kept:.4%}; SimSiam on the same box: {simsiam.kept:.4%}"
    doubt = f"; undecided, on a border or a saddle: {found.undecided} of {found.labels.size}" * bool(found.undecided)
    console.print(told + doubt, highlight=False, soft_wrap=True)
