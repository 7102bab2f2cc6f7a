"""`phinets dynamics flow`: a matrix flow over time, beside what the reduced equations predict."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from phinets.cli.dynamics.matrix_words import MatrixWords
from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free, save_figure
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError

if TYPE_CHECKING:
    from phinets.dynamics.matrix_trajectories import Following
    from phinets.dynamics.systems import Floats

ROWS = 12
"""Times in the table, the first is 0, the others stand in equal ratios."""
LONGEST = 1e6
"""Time that a flow is given unasked, however small its weight decay."""


@dataclass(frozen=True)
class Flow(MatrixWords):
    """Integrate a matrix flow: commutators, the parabola, symmetry, and eigenvalues beside the reduced equations.

    Example: phinets dynamics flow --rho 0.03 --dim 4 --input-dim 6 --seed 1 --time 400 --out flow.png
    """

    time: float | None = None
    """How long, above 0; unset: 10/ρ, but at most 1e6."""
    out: Path | None = None
    """Draw the path into this file; the ending tells the format."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: the table, the decay rates and how well the reduced equations predict."""

    def __post_init__(self) -> None:
        MatrixWords.__post_init__(self)
        if self.time is not None and not 0 < self.time < float("inf"):
            raise UserError(f"time is {self.time}, but must be a finite number above 0; 10/rho is {10 / self.rho:g}.")


def command(words: list[str]) -> Outcome:
    """Integrate, measure, and draw where asked."""
    options = parse_words(Flow, "dynamics flow", words)
    require_free(options.out, options.overwrite)
    import numpy as np

    from phinets.dynamics.matrix_trajectories import follow

    weights, last = options.weights(), options.time or min(10 / options.rho, LONGEST)
    told = np.concatenate([[0.0], np.geomspace(last / 1000, last, ROWS - 1)])
    times = np.unique(np.concatenate([told, np.linspace(0, last, 201)]))
    found = follow(options.flow(), weights, times)
    rows = [_row(found, int(k)) for k in np.searchsorted(times, told)]
    document = options.told(weights) | {"time": last, "rows": rows, "summary": _summary(found, options.rho)}
    if options.out is not None:
        from phinets.reports.matrix_flow import flow_figure

        save_figure(options.out, flow_figure(found, _title(document)))
        document["picture"] = str(options.out)
    return Outcome(document, lambda console: _show(console, document))


def _row(found: "Following", k: int) -> dict[str, Any]:
    return {
        "time": float(found.path.times[k]),
        **{name: float(values[k]) for name, values in found.norms.items()},
        "eigenvalues": {name: values[k].tolist() for name, values in found.eigenvalues.items()},
        "predicted": {name: values[k].tolist() for name, values in found.predicted.items()},
        "difference": float(found.differences[k]),
    }


def _summary(found: "Following", rho: float) -> dict[str, Any]:
    from phinets.dynamics.matrix_trajectories import decay_rate

    times, balance = found.path.times, found.norms["balance"]
    return {
        "decay_rates": {name: decay_rate(times, values) for name, values in found.norms.items()},
        "two_rho": 2 * rho,
        "three_rho": 3 * rho,
        "balance_error": float(_largest(balance - balance[0] * _falling(times, 2 * rho))),
        "largest_difference": float(found.differences.max()),
        "last_difference": float(found.differences[-1]),
    }


def _falling(times: "Floats", rate: float) -> "Floats":
    import numpy as np

    falling: Floats = np.exp(-rate * times)
    return falling


def _largest(values: "Floats") -> float:
    return float(abs(values).max())


def _title(document: dict[str, Any]) -> str:
    version = f", {document['version']}" if "version" in document else ""
    return f"{document['system']}{version}, σ² = {document['sigma2']:g}, ρ = {document['rho']:g}"


def _show(console: Console, document: dict[str, Any]) -> None:
    console.print(f"{_title(document)}, m = {document['dim']}, d = {document['input_dim']}", highlight=False)
    rows, summary = document["rows"], document["summary"]
    measured = [name for name in rows[0] if name not in ("time", "eigenvalues", "predicted", "difference")]
    _print(console, measured, [(row["time"], [f"{row[name]:.2g}" for name in measured]) for row in rows])
    sides = ("eigenvalues", "predicted")
    for name, letter in (("psi", "ψ"), ("gamma", "γ")):
        if name in rows[0]["eigenvalues"]:
            listed = [[" ".join(f"{v:.3f}" for v in row[side][name]) for side in sides] for row in rows]
            cells = [(row["time"], pair) for row, pair in zip(rows, listed, strict=True)]
            _print(console, [letter, f"{letter}, reduced"], cells)
    rates = ", ".join(f"{name} {'–' if r is None else f'{r:.3g}'}" for name, r in summary["decay_rates"].items())
    lines = [
        f"rates of decay over the later half: {rates} (2ρ = {summary['two_rho']:g}, 3ρ = {summary['three_rho']:g})",
        f"‖W_hᵀW_h − W_fW_fᵀ‖ is its start times e^(−2ρt) to {summary['balance_error']:.1e}",
        f"eigenvalues are off the reduced equations by at most {summary['largest_difference']:.2g}, "
        f"at the end by {summary['last_difference']:.2g}",
        *([document["picture"]] if "picture" in document else []),
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _print(console: Console, headings: list[str], rows: list[tuple[float, list[str]]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("time", *headings):
        table.add_column(heading, justify="right", no_wrap=True)
    for time, cells in rows:
        table.add_row(f"{time:.4g}", *cells)
    console.print(table, highlight=False)
