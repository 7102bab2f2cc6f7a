"""What is known and what was lost at the end of a stream, by method, over seeds."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from phinets.config.errors import UserError
from phinets.config.record import AccuracyMatrix, ContinualRecord
from phinets.reports.palette import FAINT, INK
from phinets.reports.seeds import Group, groups

COLUMNS: tuple[tuple[str, Callable[[AccuracyMatrix], float | None]], ...] = (
    ("average accuracy (%)", lambda reading: reading.average),
    ("forgetting, max (points)", lambda reading: reading.forgetting_max),
    ("forgetting, diag (points)", lambda reading: reading.forgetting_diag),
)


def forgetting_figure(records: Sequence[ContinualRecord]) -> Figure:
    """Average accuracy and forgetting by both rules, one line for each group of runs that differ in their seed alone.

    A dot is a run, the bar the mean with the standard deviation over seeds, n beside it; one row of panels for each
    readout and encoder.
    """
    if not records:
        raise UserError("there is no run to draw. Name the folder of one at least.")
    made = groups(records)
    kinds = list(dict.fromkeys((r.readout, r.encoder) for record in records for r in record.summary.readings))
    lines = max(group.name.count("\n") for group in made)
    figure = Figure(figsize=(11.5, len(kinds) * (0.9 + 0.36 * lines * len(made)) + 0.7), layout="constrained")
    grid = figure.subplots(len(kinds), len(COLUMNS), squeeze=False, sharey=True)
    for row, (readout, encoder) in zip(grid, kinds, strict=True):
        for axes, (name, value) in zip(row, COLUMNS, strict=True):
            for place, group in enumerate(made):
                _line(axes, place, group, _values(group, (readout, encoder), value))
            _finish(axes, name, [group.name for group in made])
        row[0].set_title(f"{readout}, {encoder} encoder", color=INK, fontsize=10, fontweight="bold", loc="left")
    data = ", ".join(dict.fromkeys(record.summary.data for record in records))
    figure.suptitle(f"{data}: mean ± standard deviation over n seeds; a dot is a run", color=INK, fontsize=11)
    return figure


def _values(group: Group, kind: tuple[str, str], value: Callable[[AccuracyMatrix], float | None]) -> list[float]:
    found = (value(r) for record in group.records for r in record.summary.readings if (r.readout, r.encoder) == kind)
    return [number for number in found if number is not None]


def _line(axes: Axes, place: int, group: Group, values: Sequence[float]) -> None:
    """One method in one panel."""
    if not values:
        axes.text(0.5, place, "–", transform=axes.get_yaxis_transform(), color=FAINT, ha="center", va="center")
        return
    mean = float(np.mean(values))
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    axes.scatter(values, [place + 0.16] * len(values), s=14, color=group.color, alpha=0.55, linewidths=0, zorder=3)
    axes.errorbar(mean, place, xerr=deviation, fmt="o", markersize=6, color=group.color, capsize=4, linewidth=2)
    told = f"{mean:z.1f}" + ("" if deviation is None else f" ± {deviation:.1f}") + f"  n = {len(values)}"
    axes.annotate(
        told.replace("-", "−"), (mean, place), xytext=(0, 9), textcoords="offset points",
        color=INK, fontsize=8, ha="center", va="bottom",
    )  # fmt: skip


def _finish(axes: Axes, name: str, names: Sequence[str]) -> None:
    axes.set_xlabel(name, color=INK)
    axes.set_yticks(range(len(names)), names, fontsize=9, color=INK)
    axes.set_ylim(len(names) - 0.5, -0.65)
    axes.margins(x=0.18)
    axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    low, high = axes.get_xlim()
    if low < 0 < high:
        axes.axvline(0, color=INK, linewidth=0.8, zorder=0)
