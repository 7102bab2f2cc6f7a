"""`phinets dynamics train`: linear networks trained by SGD, beside the flow that they follow."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from phinets.cli.dynamics.matrix_words import MatrixWords
from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError

if TYPE_CHECKING:
    from phinets.dynamics.matrix_trajectories import Path
    from phinets.dynamics.systems import Floats

MEASURES = ("weights", "eigenvalues")
MOST_STEPS = 2_000_000


@dataclass(frozen=True)
class Train(MatrixWords):
    """Train by SGD at a learning rate, its half, its quarter …: the paths near the flow.

    Example: phinets dynamics train --rate 0.02 --halvings 2 --time 10 --batch 64
    """

    rate: float = 0.02
    """The largest learning rate."""
    halvings: int = 2
    """How often it is halved."""
    time: float = 10.0
    """How long, above 0: learning rate times steps."""
    batch: int | None = None
    """Samples a step; unset: the expected loss, without noise."""
    runs: int = 3
    """Independent runs with samples."""
    json: bool = False
    """Print one JSON document: for each learning rate, how far the path is from the flow."""

    def __post_init__(self) -> None:
        MatrixWords.__post_init__(self)
        if not 0 < self.time < float("inf"):
            raise UserError(f"time is {self.time}, but must be a finite number above 0.")
        if not 0 < self.rate <= self.time:
            raise UserError(f"rate is {self.rate}, but must be above 0 and at most the time, {self.time:g}.")
        if self.halvings < 0:
            raise UserError(f"halvings is {self.halvings}, but must be 0 or more.")
        if self.time / self.rate * 2**self.halvings > MOST_STEPS:
            raise UserError(
                f"the smallest learning rate, {self.rate / 2**self.halvings:g}, needs more than {MOST_STEPS:,} steps. "
                "Choose fewer --halvings, a larger --rate or a shorter --time."
            )


def command(words: list[str]) -> Outcome:
    """Train at each rate and compare."""
    options = parse_words(Train, "dynamics train", words)
    from phinets.training.linear_networks import Plan

    weights = options.weights()
    runs = 1 if options.batch is None else options.runs
    steps = round(options.time / options.rate)
    first = Plan(rate=options.time / steps, steps=steps, batch=options.batch, runs=runs, seed=options.seed)
    plans = [replace(first, rate=first.rate / 2**k, steps=steps * 2**k) for k in range(options.halvings + 1)]
    rows = [_row(options, plan, weights) for plan in plans]
    document = options.told(weights) | {"time": options.time, "batch": options.batch, "runs": runs, "rows": rows}
    if len(rows) > 1:
        document["order"] = {measure: _order(rows, options.version, measure) for measure in MEASURES}
    return Outcome(document, lambda console: _show(console, document))


def _row(options: Train, plan: Any, weights: "dict[str, Floats]") -> dict[str, Any]:
    """One learning rate: distances from the flow, and from the other version's where there is one."""
    import numpy as np

    from phinets.dynamics.matrix_trajectories import integrate
    from phinets.training.linear_networks import deviations, sgd_paths

    system = options.flow()
    paths = sgd_paths(system, weights, plan)
    row: dict[str, Any] = {"rate": plan.rate, "steps": plan.steps}
    for version in ("corrected", "published") if hasattr(system, "version") else ("corrected",):
        flow: Path = integrate(replace(options, version=version).flow(), weights, paths[0].times)
        each = [deviations(path, flow) for path in paths]
        row[version] = {
            measure: {"mean": float(np.mean(found)), "std": float(np.std(found))}
            for measure in MEASURES
            for found in [[one[measure] for one in each]]
        }
    return row


def _order(rows: list[dict[str, Any]], version: str, measure: str) -> float | None:
    import numpy as np

    from phinets.training.linear_networks import order

    side = version if version in rows[0] else "corrected"
    return order(np.array([row["rate"] for row in rows]), np.array([row[side][measure]["mean"] for row in rows]))


def _show(console: Console, document: dict[str, Any]) -> None:
    rows = document["rows"]
    sides = [side for side in ("corrected", "published") if side in rows[0]]
    table = Table(box=None, pad_edge=False)
    for heading in ("rate", "steps", *(f"{measure} off {side}" for side in sides for measure in MEASURES)):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [row[side][measure] for side in sides for measure in MEASURES]
        spread = "" if document["batch"] is None else " ± {std:.1g}"
        shown = (("{mean:.3g}" + spread).format(**cell) for cell in cells)
        table.add_row(f"{row['rate']:g}", str(row["steps"]), *shown)
    console.print(table, highlight=False)
    batch, runs = document["batch"], document["runs"]
    source = "expected loss" if batch is None else f"batches of {batch}, {runs} runs, mean ± std"
    lines = [
        f"{source}; distances are the largest up to time {document['time']:g}: of all weights (Frobenius), and of "
        "any eigenvalue"
    ]
    if document.get("order", {}).get("weights") is not None:
        lines.append(f"the distance shrinks like rate^{document['order']['weights']:.2f}")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
