"""Figures and tables of runs over a stream: accuracy matrices, tasks over the steps, forgetting over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from phinets.config.errors import UserError
from phinets.config.record import Accuracies, AccuracyMatrix, ContinualRecord
from phinets.reports.figures import decimal, label_ends, new_figure, png, short
from phinets.reports.palette import FAINT, FAST, INK, LEVELS, SLOW
from phinets.reports.seeds import Group, groups, strategy

HEAT = LinearSegmentedColormap.from_list("levels", LEVELS)
NAMES: Mapping[str, Any] = {"color": INK, "parse_math": False}
"""Style of names at ticks."""
UNSEEN = 0.55
"""How far the cells of tasks that have not come yet fade towards the paper."""
FEW = 8
"""Number of tasks up to which numbers have a decimal and tables their lines."""
ROOM = 40
"""Letters of all tasks' names up to which they head a table's columns; beyond it their numbers do."""


def matrix_figure(record: ContinualRecord) -> Figure:
    """The accuracy matrices of a run as heat maps with their numbers, one for each readout and encoder.

    Rows: before the first task, then after each; columns: the tasks. The task just learned is framed, those that have
    not come yet are pale, a missing value is a dash.
    """
    summary = record.summary
    wide = min(2, len(summary.readings))
    high = -(-len(summary.readings) // wide)
    side = 1.5 + 0.42 * max(len(summary.tasks), 5)
    figure, grid = new_figure(wide * (side + 0.5), high * (side + 0.9) + 0.7, high, wide)
    scale = Normalize(_lowest(summary.readings), 100)
    for axes, reading in zip(grid.flat, summary.readings, strict=False):
        _heat_map(axes, reading, summary.tasks, scale)
    for axes in grid.flatten()[len(summary.readings) :]:
        axes.set_axis_off()
    figure.suptitle(f"{title(record)}\naccuracy (%) on each task after each task", color=INK, fontsize=11)
    figure.supxlabel("framed: the task just learned · pale: not learned yet · –: no value", color=INK, fontsize=8)
    return figure


def title(record: ContinualRecord) -> str:
    """A run in a few words: method, strategy, data, seed."""
    summary = record.summary
    return f"{summary.method} · {strategy(record.config.memory)} · {summary.data} · seed {summary.seed}"


def matrix_name(reading: AccuracyMatrix) -> str:
    """Its readout and encoder."""
    return f"{reading.readout}, {reading.encoder} encoder"


def _lowest(readings: Sequence[AccuracyMatrix]) -> float:
    """Where the colors begin: at a round number below all."""
    values = [v for reading in readings for row in (*reading.matrix, reading.untrained) for v in row if v is not None]
    return float(min(90, 10 * np.floor(min(values, default=0) / 10)))


def _heat_map(axes: Axes, reading: AccuracyMatrix, tasks: Sequence[str], scale: Normalize) -> None:
    """One matrix; the untrained encoder's row stands above it, half a row apart."""
    _row(axes, -1.5, reading.untrained, scale, came=0)
    for t, row in enumerate(reading.matrix):
        _row(axes, t, row, scale, came=t + 1)
        axes.add_patch(Rectangle((t - 0.5, t - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.6, zorder=3))
    n = len(tasks)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -2.0), aspect="equal")
    names = [short(name) for name in tasks]
    are_long = max(map(len, names)) > 4
    slant: dict[str, Any] = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"} if are_long else {}
    axes.xaxis.tick_top()
    axes.set_xticks(range(n), names, **NAMES, fontsize=8, **slant)
    axes.set_yticks([-1.5, *range(n)], ["untrained", *(f"after {name}" for name in names)], **NAMES, fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(matrix_name(reading), color=INK, fontsize=10, fontweight="bold", pad=8)
    axes.set_xlabel("\n".join(_metric_lines(reading)), color=INK, fontsize=8, labelpad=6)


def _row(axes: Axes, y: float, values: Accuracies, scale: Normalize, came: int) -> None:
    """A row of cells with their numbers; the first `came` tasks have come."""
    size, digits = (8, 1) if len(values) <= FEW else (7.5, 0)
    for i, value in enumerate(values):
        shade = np.ones(3) if value is None else np.array(HEAT(scale(value))[:3])
        if i >= came:
            shade = shade + (1 - shade) * UNSEEN
        cell = Rectangle((i - 0.5, y - 0.5), 1, 1, facecolor=tuple(shade), edgecolor="white", linewidth=0.8)
        axes.add_patch(cell).set_in_layout(False)
        ink = INK if value is None or shade @ (0.299, 0.587, 0.114) > 0.55 else "white"
        text = axes.text(i, y, decimal(value, digits), ha="center", va="center", color=ink, fontsize=size)
        text.set_fontstyle("italic" if i >= came else "normal")
        text.set_in_layout(False)  # within the axes: the layout need not measure hundreds of them


def _metric_lines(reading: AccuracyMatrix) -> tuple[str, str]:
    """The metrics of a matrix, in two lines."""
    forgetting = f"forgetting {_signed(reading.forgetting_max)} (max), {_signed(reading.forgetting_diag)} (diag)"
    transfer = f"transfer {_signed(reading.backward_transfer)} backward, {_signed(reading.forward_transfer)} forward"
    return f"average {decimal(reading.average)} · {forgetting}", transfer


def matrix_table(reading: AccuracyMatrix, tasks: Sequence[str]) -> Table:
    """An accuracy matrix for a terminal: the task just learned bold, those to come dim, its metrics below."""
    stages = f"average after each task {' '.join(decimal(value) for value in reading.stages)}"
    caption = "\n".join((*_metric_lines(reading), stages, reading.protocol))
    table = Table(title=f"{matrix_name(reading)}: accuracy (%) on each task", caption=caption, caption_justify="left")
    table.min_width = 64  # what stands below it is as wide as the table
    if len(tasks) > FEW:
        table.box, table.padding = None, (0, 1, 0, 0)  # a terminal of 80 columns holds 20 tasks
    table.add_column("after task", no_wrap=True)
    for number, name in enumerate(tasks, 1):
        table.add_column(name if sum(map(len, tasks)) <= ROOM else str(number), justify="right", no_wrap=True)
    table.add_row("untrained", *_cells(reading.untrained, 0), end_section=True)
    for t, (name, row) in enumerate(zip(tasks, reading.matrix, strict=True), 1):
        table.add_row(f"{t} {short(name, 20)}", *_cells(row, t))
    return table


def _cells(row: Accuracies, came: int) -> list[Text]:
    styles = ["bold" if i == came - 1 else "dim" if i >= came else "" for i in range(len(row))]
    digits = 1 if len(row) <= FEW else 0
    return [Text(decimal(v, digits), style=s) for v, s in zip(row, styles, strict=True)]


def _signed(value: float | None) -> str:
    """With a sign as wide as a plus; zero has none."""
    if value is None:
        return "–"
    rounded = f"{value:+z.1f}"
    return "0.0" if rounded == "+0.0" else rounded.replace("-", "−")


STYLE = {"fast": (FAST, "-"), "slow": (SLOW, "--")}


@dataclass(frozen=True, slots=True)
class EvalCurve:
    """One readout of one encoder over the steps."""

    readout: str
    encoder: str
    steps: NDArray[np.int64]
    n_tasks: NDArray[np.int64]
    """The number of tasks so far at each evaluation, with the one being learned."""
    accuracies: NDArray[np.float64]
    """(evaluations, tasks), NaN for a missing one."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """The mean over the tasks so far, at each evaluation; NaN where all are missing."""
        seen = np.arange(self.accuracies.shape[1]) < self.n_tasks[:, None]
        values = np.ma.masked_where(~seen | np.isnan(self.accuracies), self.accuracies)
        return np.asarray(values.mean(axis=1).filled(np.nan))


def eval_curves(record: ContinualRecord) -> list[EvalCurve]:
    """The evaluations in the journal, for each readout and encoder in the order in which they first come."""
    rows = [row for row in record.journal if row["kind"] == "task-eval"]
    if not rows:
        raise UserError(f"the journal of '{record.folder}' has no row of the accuracy matrix. Finish the run first.")
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault((row["readout"], row["encoder"]), []).append(row)
    return [_eval_curve(kind, of_kind, record) for kind, of_kind in kinds.items()]


def _eval_curve(kind: tuple[str, str], rows: Sequence[dict[str, Any]], record: ContinualRecord) -> EvalCurve:
    rows = list({row["step"]: row for row in rows}.values())  # once a task is appended, the untrained are read again
    accuracies = np.full((len(rows), len(record.summary.tasks)), np.nan)
    for line, row in zip(accuracies, rows, strict=True):  # before a task was appended, rows are shorter
        line[: len(row["accuracies"])] = row["accuracies"]  # None becomes NaN
    steps, n_tasks = (np.array([row[key] for row in rows]) for key in ("step", "task"))
    return EvalCurve(*kind, steps, n_tasks, accuracies)


def tasks_figure(record: ContinualRecord) -> Figure:
    """Each task's accuracy over the steps, one panel for each readout and encoder.

    Bands say when a task was learned. A task's line is thin and dotted until it comes, and bears its name at its end;
    the bold line is the mean over the tasks that have come.
    """
    curves, n = eval_curves(record), len(record.summary.tasks)
    colors = _colors(n)
    figure, grid = new_figure(11, (3.4 if n <= 10 else 4.6) * len(curves) + 0.5, len(curves))
    for axes, curve in zip(grid[:, 0], curves, strict=True):
        _bands(axes, curve, colors)
        for i, color in enumerate(colors):
            before, after = curve.n_tasks <= i, curve.n_tasks > i
            after |= np.append(after[1:], False)  # joined to the last value before it
            values = curve.accuracies[:, i]
            axes.plot(curve.steps[before], values[before], color=color, linewidth=0.8, linestyle=":", alpha=0.8)
            axes.plot(curve.steps[after], values[after], color=color, linewidth=1.3)
        axes.plot(curve.steps, curve.mean, color=INK, linewidth=2.8, marker="o", markersize=3.5)
        names = [f"{i} {short(name)}" for i, name in enumerate(record.summary.tasks, 1)]
        tasks = zip(names, colors, curve.accuracies.T, strict=True)
        label_ends(axes, float(curve.steps[-1]), [("mean so far", INK, curve.mean), *tasks], values=True)
        _finish(axes, f"{curve.readout}, {curve.encoder} encoder")
    figure.suptitle(f"{title(record)}\naccuracy of each task while others are learned", color=INK, fontsize=11)
    return figure


def fast_and_slow_figure(record: ContinualRecord) -> Figure:
    """Mean accuracy of the fast encoder (solid) and the slow one (dashed) over the steps, a panel for each readout.

    The mean is over the tasks that have come: where it falls and the slow encoder's does not, the slow one remembers.
    """
    curves = eval_curves(record)
    readouts = list(dict.fromkeys(curve.readout for curve in curves))
    figure, grid = new_figure(9, 3.3 * len(readouts) + 0.5, len(readouts))
    for axes, readout in zip(grid[:, 0], readouts, strict=True):
        lines = [curve for curve in curves if curve.readout == readout]
        _bands(axes, lines[0], _colors(len(record.summary.tasks)))
        for curve in lines:
            color, line = STYLE[curve.encoder]
            axes.plot(curve.steps, curve.mean, color=color, linestyle=line, linewidth=2.2, marker="o", markersize=3.5)
        means = [(curve.encoder, STYLE[curve.encoder][0], curve.mean) for curve in lines]
        label_ends(axes, float(lines[0].steps[-1]), means, values=True)
        _finish(axes, readout if len(lines) > 1 else f"{readout}; this run read one encoder")
    heading = "mean accuracy over the tasks so far: fast and slow encoder"
    figure.suptitle(f"{title(record)}\n{heading}", color=INK, fontsize=11)
    return figure


def _colors(n: int) -> list[tuple[float, ...]]:
    """A color for each task, from early to late."""
    return [colormaps["plasma"](x) for x in np.linspace(0.0, 0.78, n)]


def ends(curve: EvalCurve) -> list[tuple[int, int, int]]:
    """When each task was learned, up to the spacing of evaluations: (task from 0, first step, last step)."""
    last = {int(task): int(step) for task, step in zip(curve.n_tasks, curve.steps, strict=True) if task > 0}
    borders = [0, *(last[task] for task in sorted(last))]
    return [(task - 1, start, end) for task, (start, end) in zip(sorted(last), pairwise(borders), strict=True)]


def _bands(axes: Axes, curve: EvalCurve, colors: Sequence[tuple[float, ...]]) -> None:
    """A band behind the steps of each task, and its number above it."""
    for task, start, end in ends(curve):
        axes.axvspan(start, end, color=FAINT, alpha=0.16 if task % 2 == 0 else 0.05, linewidth=0)
        place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        axes.text((start + end) / 2, 1.005, str(task + 1), color=colors[task], fontsize=8, fontweight="bold", **place)


def _finish(axes: Axes, name: str) -> None:
    axes.set_title(name, color=INK, fontsize=10, fontweight="bold", loc="left", pad=14)
    axes.set(xlabel="step", ylabel="accuracy (%)")
    axes.margins(x=0)


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
        raise UserError("there is no run to draw. Name the folder of at least one run.")
    seed_groups = groups(records)
    kinds = list(dict.fromkeys((r.readout, r.encoder) for record in records for r in record.summary.readings))
    lines = max(group.name.count("\n") for group in seed_groups)
    height = len(kinds) * (0.9 + 0.36 * lines * len(seed_groups)) + 0.7
    figure, grid = new_figure(11.5, height, len(kinds), len(COLUMNS), sharey=True)
    for row, (readout, encoder) in zip(grid, kinds, strict=True):
        for axes, (name, value) in zip(row, COLUMNS, strict=True):
            for place, group in enumerate(seed_groups):
                _line(axes, place, group, _values(group, (readout, encoder), value))
            _finish_panel(axes, name, [group.name for group in seed_groups])
        row[0].set_title(f"{readout}, {encoder} encoder", color=INK, fontsize=10, fontweight="bold", loc="left")
    data = ", ".join(dict.fromkeys(record.summary.data for record in records))
    figure.suptitle(f"{data}: mean ± standard deviation over n seeds; a dot is a run", color=INK, fontsize=11)
    return figure


def _values(group: Group, kind: tuple[str, str], value: Callable[[AccuracyMatrix], float | None]) -> list[float]:
    values = (value(r) for record in group.records for r in record.summary.readings if (r.readout, r.encoder) == kind)
    return [number for number in values if number is not None]


def _line(axes: Axes, place: int, group: Group, values: Sequence[float]) -> None:
    """One method in one panel."""
    if not values:
        axes.text(0.5, place, "–", transform=axes.get_yaxis_transform(), color=FAINT, ha="center", va="center")
        return
    mean = float(np.mean(values))
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    axes.scatter(values, [place + 0.16] * len(values), s=14, color=group.color, alpha=0.55, linewidths=0, zorder=3)
    axes.errorbar(mean, place, xerr=deviation, fmt="o", markersize=6, color=group.color, capsize=4, linewidth=2)
    label = f"{mean:z.1f}" + ("" if deviation is None else f" ± {deviation:.1f}") + f"  n = {len(values)}"
    axes.annotate(
        label.replace("-", "−"), (mean, place), xytext=(0, 9), textcoords="offset points",
        color=INK, fontsize=8, ha="center", va="bottom",
    )  # fmt: skip


def _finish_panel(axes: Axes, name: str, names: Sequence[str]) -> None:
    axes.set_xlabel(name, color=INK)
    axes.set_yticks(range(len(names)), names, **NAMES, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.65)
    axes.margins(x=0.18)
    axes.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if axes.get_xlim()[0] < 0 < axes.get_xlim()[1]:
        axes.axvline(0, color=INK, linewidth=0.8, zorder=0)


FIGURES: Mapping[str, Callable[[ContinualRecord], Figure]] = {
    "matrix": matrix_figure,
    "tasks": tasks_figure,
    "fast-slow": fast_and_slow_figure,
}
"""The pictures of one run, by name."""


def run_pictures(record: ContinualRecord) -> dict[str, bytes]:
    """The pictures that a run leaves behind, by their files' names; fast beside slow where both were read out."""
    both = len({reading.encoder for reading in record.summary.readings}) > 1
    return {f"{name}.png": png(figure(record)) for name, figure in FIGURES.items() if both or name != "fast-slow"}
