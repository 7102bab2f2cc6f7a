"""What figures and tables share: axes, PNG bytes, short names and numbers, smooth lines, names at the ends of lines."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Tick
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from phinets.config.errors import printable
from phinets.reports.palette import INK

LINE = 0.16
"""Inches that a label needs."""


class PlainFigure(Figure):
    """A figure whose texts, but for the labels of ticks, are not read as math: they may be names of classes."""

    def draw(self, renderer: RendererBase) -> None:
        """Draw texts as they are, with control characters as escapes."""
        tick_labels = {label for tick in self.findobj(Tick) for label in (tick.label1, tick.label2)}
        for text in set(self.findobj(Text)) - tick_labels:
            text.set(parse_math=False, text=printable(text.get_text()))
        super().draw(renderer)


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, *, kind: type[Figure] = PlainFigure, **options: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure of a size in inches and its axes (rows, columns), without their upper and right spines."""
    figure = kind(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, grid


def png(figure: Figure, dpi: int = 120) -> bytes:
    """A figure as the content of a PNG file."""
    file = BytesIO()
    figure.savefig(file, dpi=dpi, format="png")
    return file.getvalue()


def short(name: str, most: int = 16) -> str:
    """A name, printable and shortened to fit."""
    name = printable(name)
    return name if len(name) <= most else f"{name[: most - 1]}…"


def decimal(value: float | None, places: int = 1) -> str:
    """A number with a number of decimals, or a dash."""
    return "–" if value is None else f"{value:.{places}f}"


def smooth_line(axes: Axes, x: Sequence[int], y: NDArray[np.float64], name: str, color: str) -> None:
    """A noisy series, pale, and its running mean over a twentieth of it, with its name at the end."""
    total, ends = np.cumsum(np.insert(y, 0, 0.0)), np.arange(1, len(y) + 1)
    starts = np.maximum(0, ends - max(1, len(y) // 20))
    smooth = (total[ends] - total[starts]) / (ends - starts)
    axes.plot(x, y, color=color, alpha=0.25, linewidth=0.8)
    axes.plot(x, smooth, color=color, linewidth=1.6)
    end = (x[-1], float(smooth[-1]))
    axes.annotate(name, end, xytext=(4, 0), textcoords="offset points", color=color, fontsize=8, va="center")


def label_ends(
    axes: Axes, x: float, lines: Iterable[tuple[str, Any, NDArray[np.float64]]], values: bool = False
) -> None:
    """Write the name of each line (name, color, y), and its last value, beside its end at x.

    Names are moved apart from each other, with a leader to each end; a line of NaN has none.
    """
    lasts = [(name, color, float(y[~np.isnan(y)][-1])) for name, color, y in lines if not np.isnan(y).all()]
    ordered = sorted(lasts, key=lambda label: label[2])
    axes.get_ylim()  # sets the limits that the transform below needs
    to_axes = axes.transData - axes.transAxes
    heights = [float(to_axes.transform((x, y))[1]) for _, _, y in ordered]
    figure, spec = cast(Figure, axes.figure), axes.get_subplotspec()
    gap = LINE * (1 if spec is None else spec.get_gridspec().nrows) / figure.get_figheight()
    for (name, color, y), place in zip(ordered, spread(heights, gap, (0.0, 1.0)), strict=True):
        text, weight = f"{name} {y:.1f}" if values else name, "bold" if color == INK else "normal"
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
        axes.annotate(
            text, (x, y), xytext=(1.025, place), textcoords="axes fraction", fontsize=8, color=color, va="center",
            fontweight=weight, annotation_clip=False, arrowprops=leader,
        )  # fmt: skip


def spread(wanted: Sequence[float], gap: float, within: tuple[float, float]) -> list[float]:
    """Places at least `gap` apart for ascending wanted ones, as near to them as can be by least squares.

    They stay within the bounds where there is room for all.
    """
    if not wanted:
        return []
    (low, high), steps = within, gap * np.arange(len(wanted))
    firsts = isotonic_regression(np.clip(np.subtract(wanted, steps), low, max(low, high - steps[-1]))).x
    return [float(place) for place in firsts + steps]
