"""`phinets dynamics flow` and `train`: the matrix flows, integrated and approximated by SGD."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from phinets.cli.command import Outcome, parse_words, print_lines
from phinets.cli.dynamics.options import MatrixFlowOptions, print_table
from phinets.cli.output import FileOptions, require_free, save_figure
from phinets.config.errors import UserError, require_in

if TYPE_CHECKING:
    from phinets.dynamics.matrix_trajectories import FlowComparison
    from phinets.dynamics.systems import Floats

ROWS = 12
"""Times in the table: 0, then a geometric sequence."""
LONGEST = 1e6
"""Upper limit of the default time, however small the weight decay."""
MEASURES = ("weights", "eigenvalues")
MOST_STEPS = 2_000_000


@dataclass(frozen=True)
class FlowOptions(FileOptions, MatrixFlowOptions):
    """Integrate a matrix flow: commutators, the parabola, symmetry, and eigenvalues beside the reduced equations.

    Example: phinets dynamics flow --rho 0.03 --dim 4 --input-dim 6 --seed 1 --time 400 --out flow.png
    """

    time: float | None = None
    """Length of the trajectory, above 0; unset: 10/ρ, at most 1e6."""
    out: Path | None = None
    """Draw the trajectory into this file: .png, .svg or .pdf."""
    json: bool = False
    """Print one JSON document: the table, the decay rates and the error of the reduced equations."""

    def __post_init__(self) -> None:
        MatrixFlowOptions.__post_init__(self)
        require_in(self, time="(0, inf)")


def flow_command(words: list[str]) -> Outcome:
    options = parse_words(FlowOptions, "dynamics flow", words)
    require_free(options.out, options.overwrite)
    import numpy as np

    from phinets.dynamics.matrix_trajectories import compare_with_reduced

    weights, last = options.weights(), options.time or min(10 / options.rho, LONGEST)
    table_times = np.concatenate([[0.0], np.geomspace(last / 1000, last, ROWS - 1)])
    times = np.unique(np.concatenate([table_times, np.linspace(0, last, 201)]))
    comparison = compare_with_reduced(options.flow(), weights, times)
    rows = [_flow_row(comparison, int(k)) for k in np.searchsorted(times, table_times)]
    document = options.plain(weights) | {"time": last, "rows": rows, "summary": _summary(comparison, options.rho)}
    if options.out is not None:
        from phinets.reports.dynamics_figures import flow_figure

        save_figure(options.out, flow_figure(comparison, _title(document)))
        document["picture"] = str(options.out)
    return Outcome(document, lambda console: _show_flow(console, document))


def _flow_row(comparison: "FlowComparison", k: int) -> dict[str, Any]:
    return {
        "time": float(comparison.trajectory.times[k]),
        **{name: float(values[k]) for name, values in comparison.norms.items()},
        "eigenvalues": {name: values[k].tolist() for name, values in comparison.eigenvalues.items()},
        "predicted": {name: values[k].tolist() for name, values in comparison.predicted.items()},
        "difference": float(comparison.differences[k]),
    }


def _summary(comparison: "FlowComparison", rho: float) -> dict[str, Any]:
    import numpy as np

    from phinets.dynamics.matrix_trajectories import decay_rate

    times, balance = comparison.trajectory.times, comparison.norms["balance"]
    return {
        "decay_rates": {name: decay_rate(times, values) for name, values in comparison.norms.items()},
        "two_rho": 2 * rho,
        "three_rho": 3 * rho,
        "balance_error": float(np.abs(balance - balance[0] * np.exp(-(2 * rho) * times)).max()),
        "largest_difference": float(comparison.differences.max()),
        "last_difference": float(comparison.differences[-1]),
    }


def _title(document: dict[str, Any]) -> str:
    version = f", {document['version']}" if "version" in document else ""
    return f"{document['system']}{version}, σ² = {document['sigma2']:g}, ρ = {document['rho']:g}"


def _show_flow(console: Console, document: dict[str, Any]) -> None:
    console.print(f"{_title(document)}, m = {document['dim']}, d = {document['input_dim']}", highlight=False)
    rows, summary = document["rows"], document["summary"]
    norms, times = list(summary["decay_rates"]), [f"{row['time']:.4g}" for row in rows]
    cells = [[time, *(f"{row[name]:.2g}" for name in norms)] for time, row in zip(times, rows, strict=True)]
    print_table(console, ["time", *norms], cells, right=True)
    for name, letter in (("psi", "ψ"), ("gamma", "γ")):
        if name in rows[0]["eigenvalues"]:
            cells = [
                [time, *(" ".join(f"{v:.3f}" for v in row[side][name]) for side in ("eigenvalues", "predicted"))]
                for time, row in zip(times, rows, strict=True)
            ]
            print_table(console, ["time", letter, f"{letter}, reduced"], cells, right=True)
    rates = ", ".join(f"{name} {'–' if r is None else f'{r:.3g}'}" for name, r in summary["decay_rates"].items())
    print_lines(
        console,
        f"decay rates over the later half: {rates} (2ρ = {summary['two_rho']:g}, 3ρ = {summary['three_rho']:g})",
        f"‖W_hᵀW_h − W_fW_fᵀ‖ is its initial value times e^(−2ρt) to {summary['balance_error']:.1e}",
        f"eigenvalues differ from the reduced equations by at most {summary['largest_difference']:.2g}, "
        f"at the end by {summary['last_difference']:.2g}",
        *([document["picture"]] if "picture" in document else []),
    )


@dataclass(frozen=True)
class TrainOptions(MatrixFlowOptions):
    """Train by SGD at a learning rate, its half, its quarter …: the trajectories approach the flow.

    Example: phinets dynamics train --rate 0.02 --halvings 2 --time 10 --batch 64
    """

    rate: float = 0.02
    """The largest learning rate."""
    halvings: int = 2
    """Number of times that the rate is halved."""
    time: float = 10.0
    """Length of the trajectory, above 0: learning rate times steps."""
    batch: int | None = None
    """Samples per step; unset: the expected loss, without noise."""
    runs: int = 3
    """Independent runs with samples."""
    json: bool = False
    """Print one JSON document: for each learning rate, the distance from the flow."""

    def __post_init__(self) -> None:
        MatrixFlowOptions.__post_init__(self)
        require_in(self, time="(0, inf)", halvings="[0, 40]")
        if not 0 < self.rate <= self.time:
            raise UserError(f"rate is {self.rate}, but must be above 0 and at most the time, {self.time:g}.")
        if self.time / self.rate * 2**self.halvings > MOST_STEPS:
            raise UserError(
                f"the smallest learning rate, {self.rate / 2**self.halvings:g}, needs more than {MOST_STEPS:,} steps. "
                "Choose fewer --halvings, a larger --rate or a shorter --time."
            )


def train_command(words: list[str]) -> Outcome:
    options = parse_words(TrainOptions, "dynamics train", words)
    from phinets.training.linear_networks import Plan, order

    weights = options.weights()
    runs = 1 if options.batch is None else options.runs
    steps = round(options.time / options.rate)
    first = Plan(rate=options.time / steps, steps=steps, batch=options.batch, runs=runs, seed=options.seed)
    plans = [replace(first, rate=first.rate / 2**k, steps=steps * 2**k) for k in range(options.halvings + 1)]
    rows = [_train_row(options, plan, weights) for plan in plans]
    document = options.plain(weights) | {"time": options.time, "batch": options.batch, "runs": runs, "rows": rows}
    if len(rows) > 1:
        side = options.version if options.version in rows[0] else "corrected"
        means = {measure: [row[side][measure]["mean"] for row in rows] for measure in MEASURES}
        document["order"] = {measure: order([plan.rate for plan in plans], means[measure]) for measure in MEASURES}
    return Outcome(document, lambda console: _show_train(console, document))


def _train_row(options: TrainOptions, plan: Any, weights: "dict[str, Floats]") -> dict[str, Any]:
    """One learning rate: distances from the flow, in both versions where there are two."""
    import numpy as np

    from phinets.dynamics.matrix_trajectories import integrate
    from phinets.training.linear_networks import deviations, sgd_trajectories

    system = options.flow()
    trajectories = sgd_trajectories(system, weights, plan)
    row: dict[str, Any] = {"rate": plan.rate, "steps": plan.steps}
    for version in ("corrected", "published") if hasattr(system, "version") else ("corrected",):
        flow = integrate(replace(options, version=version).flow(), weights, trajectories[0].times)
        distances = [deviations(trajectory, flow) for trajectory in trajectories]
        row[version] = {}
        for measure in MEASURES:
            values = [distance[measure] for distance in distances]
            row[version][measure] = {"mean": float(np.mean(values)), "std": float(np.std(values))}
    return row


def _show_train(console: Console, document: dict[str, Any]) -> None:
    rows, batch = document["rows"], document["batch"]
    columns = [(side, measure) for side in ("corrected", "published") if side in rows[0] for measure in MEASURES]
    template = "{mean:.3g}" if batch is None else "{mean:.3g} ± {std:.1g}"
    cells = [
        [f"{row['rate']:g}", str(row["steps"]), *(template.format(**row[side][measure]) for side, measure in columns)]
        for row in rows
    ]
    print_table(console, ["rate", "steps", *(f"{measure} off {side}" for side, measure in columns)], cells, right=True)
    source = "expected loss" if batch is None else f"batches of {batch}, {document['runs']} runs, mean ± std"
    print_lines(
        console,
        f"{source}; largest distance up to time {document['time']:g} of all weights (Frobenius) and of any eigenvalue",
    )
    if document.get("order", {}).get("weights") is not None:
        print_lines(console, f"the distance shrinks like rate^{document['order']['weights']:.2f}")
