"""Accuracy matrices, as heat maps and as tables."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from phinets.config.continual import ReplayOptions
from phinets.config.record import Accuracies, AccuracyMatrix, ContinualRecord
from phinets.reports.figures import decimal, short
from phinets.reports.palette import INK, LEVELS

HEAT = LinearSegmentedColormap.from_list("levels", LEVELS)
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
    figure = Figure(figsize=(wide * (side + 0.5), high * (side + 0.9) + 0.7), layout="constrained")
    grid = figure.subplots(high, wide, squeeze=False).flatten()
    scale = Normalize(_lowest(summary.readings), 100)
    for axes, reading in zip(grid, summary.readings, strict=False):
        _heat_map(axes, reading, summary.tasks, scale)
    for axes in grid[len(summary.readings) :]:
        axes.set_axis_off()
    figure.suptitle(f"{title(record)}\naccuracy (%) on each task after each task", color=INK, fontsize=11)
    figure.supxlabel("framed: the task just learned · pale: not learned yet · –: no value", color=INK, fontsize=8)
    return figure


def title(record: ContinualRecord) -> str:
    """A run in a few words: method, strategy, data, seed."""
    summary = record.summary
    return f"{summary.method} · {strategy(record.config.memory)} · {summary.data} · seed {summary.seed}"


def strategy(memory: ReplayOptions) -> str:
    """The strategy against forgetting, in a few words."""
    buffer = {"none": "", "plain": f"replay of {memory.buffer}", "mixup": f"mixup with {memory.buffer}"}[memory.replay]
    words = [buffer, "CaSSLe" if memory.distil == "cassle" else ""]
    return " + ".join(filter(None, words)) or "finetune"


def matrix_name(reading: AccuracyMatrix) -> str:
    """Its readout and encoder."""
    return f"{reading.readout}, {reading.encoder} encoder"


def numbers(values: Accuracies) -> NDArray[np.float64]:
    """Accuracies as an array, NaN for a missing one."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _lowest(readings: Sequence[AccuracyMatrix]) -> float:
    """Where the colors begin: at a round number below all."""
    values = [v for reading in readings for row in (*reading.matrix, reading.untrained) for v in row if v is not None]
    return float(min(90, 10 * np.floor(min(values, default=0) / 10)))


def _heat_map(axes: Axes, reading: AccuracyMatrix, tasks: Sequence[str], scale: Normalize) -> None:
    """One matrix; the untrained encoder's row stands above it, half a row apart."""
    _row(axes, -1.5, numbers(reading.untrained), scale, came=0)
    for t, row in enumerate(reading.matrix):
        _row(axes, t, numbers(row), scale, came=t + 1)
        axes.add_patch(Rectangle((t - 0.5, t - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.6, zorder=3))
    n = len(tasks)
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -2.0), aspect="equal")
    names = [short(name) for name in tasks]
    slant: dict[str, Any] = (
        {"rotation": 40, "ha": "left", "rotation_mode": "anchor"} if max(map(len, names)) > 4 else {}
    )
    axes.xaxis.tick_top()
    axes.set_xticks(range(n), names, fontsize=8, color=INK, **slant)
    axes.set_yticks([-1.5, *range(n)], ["untrained", *(f"after {name}" for name in names)], fontsize=8, color=INK)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(matrix_name(reading), color=INK, fontsize=10, fontweight="bold", pad=8)
    axes.set_xlabel("\n".join(_metric_lines(reading)), color=INK, fontsize=8, labelpad=6)


def _row(axes: Axes, y: float, values: NDArray[np.float64], scale: Normalize, came: int) -> None:
    """A row of cells with their numbers; the first `came` tasks have come."""
    size = 8 if len(values) <= FEW else 7.5
    for i, value in enumerate(values):
        is_known = not np.isnan(value)
        shade = np.array(HEAT(scale(value))[:3]) if is_known else np.ones(3)
        if i >= came:
            shade = shade + (1 - shade) * UNSEEN
        cell = Rectangle((i - 0.5, y - 0.5), 1, 1, facecolor=tuple(shade), edgecolor="white", linewidth=0.8)
        axes.add_patch(cell).set_in_layout(False)
        ink = INK if not is_known or shade @ (0.299, 0.587, 0.114) > 0.55 else "white"
        style = "italic" if i >= came else "normal"
        digits = f"{value:.1f}" if len(values) <= FEW else f"{value:.0f}"
        text = axes.text(i, y, digits if is_known else "–", ha="center", va="center", color=ink, fontsize=size)
        text.set(fontstyle=style, in_layout=False)  # within the axes: the layout need not measure hundreds of them


def _metric_lines(reading: AccuracyMatrix) -> tuple[str, str]:
    """The metrics of a matrix, in two lines."""
    forgetting = f"forgetting {_signed(reading.forgetting_max)} (max), {_signed(reading.forgetting_diag)} (diag)"
    transfer = f"transfer {_signed(reading.backward_transfer)} backward, {_signed(reading.forward_transfer)} forward"
    return f"average {decimal(reading.average)} · {forgetting}", transfer


def matrix_table(reading: AccuracyMatrix, tasks: Sequence[str]) -> Table:
    """An accuracy matrix for a terminal: the task just learned bold, those to come dim, its metrics below."""
    lines = [
        "\n".join(_metric_lines(reading)),
        f"average after each task {' '.join(decimal(value) for value in reading.stages)}",
    ]
    caption = "\n".join([*lines, reading.protocol])
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
