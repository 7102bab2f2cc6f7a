"""Charts of the page: a table as lines over its columns, learning curves over seeds, the paper's phase portraits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from phinets.config.jobs import Curve, DynamicsJob, Job, Result
from phinets.dynamics.systems import PhiNet, SimSiam, Version
from phinets.paper.findings import CellResult, TableResult, TargetResult
from phinets.reports.figures import PlainFigure, label_ends
from phinets.reports.page.svg import TITLE
from phinets.reports.page.tables import PageTable, short
from phinets.reports.palette import COLLAPSE, FAINT, INK, TERMS, class_color, method_color
from phinets.reports.paper_tables import CellText
from phinets.reports.phase_portrait import COMPARED_RHO, around_threshold, comparison, line, regimes

SMALL, LARGE = (3.75, 2.4), (5.7, 3.3)
"""Sizes in inches, of 72 of the page's pixels each."""
LETTER = 4.8
"""Approximate width of a letter, in pixels."""


class Chart(NamedTuple):
    """A figure with its title."""

    title: str
    figure: Figure
    y_label: str = ""


def _plain_axes(size: tuple[float, float], x_label: str, y_label: str, names: Iterable[str] = ()) -> Axes:
    """Axes with room for the names of lines at the right; margins are estimated, since a layout engine is slow."""
    axes: Axes = PlainFigure(figsize=size).subplots()
    right = 12 + max((LETTER * len(name) for name in names), default=0)
    left, bottom, top = 38, 34, 16
    wide, high = 72 * size[0], 72 * size[1]
    axes.set_position((left / wide, bottom / high, 1 - (left + right) / wide, 1 - (bottom + top) / high))
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=9)
    axes.set_xlabel(x_label, fontsize=9)
    axes.set_title(y_label, fontsize=9, loc="left")
    for axis, ticks in ((axes.xaxis, 4), (axes.yaxis, 5)):
        axis.set_major_locator(MaxNLocator(ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    return axes


def _finish(axes: Axes, title: str, y_label: str) -> Chart:
    """With grid lines; without clipping, since all values are within the axes, and the file is smaller."""
    low, high = axes.set_ylim(axes.get_ylim())
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
    axes.hlines(ticks, 0, 1, transform=axes.get_yaxis_transform(), color=FAINT, alpha=0.3, linewidth=0.7, zorder=0)
    for artist in axes.findobj(include_self=False):
        artist.set_clip_on(False)
    return Chart(title=title, figure=cast(Figure, axes.figure), y_label=y_label)


DODGE = 0.24
"""Share of the way from one column to the next that the lines of a column take up."""
MAX_LETTERS = 45
"""Of all columns' names; more are written smaller."""


def lines(result: TableResult) -> list[Chart]:
    """A line for each row, a chart for each measure; baselines are thin and dashed.

    Columns stand side by side, since weight decay 0 has no place on an axis of powers.
    """
    runs = [cell for cell in result.cells if cell.cell.row not in result.table.baselines]
    cells = [cell for cell in runs if cell.mean is not None or _paper(cell) is not None]
    return [_measure_chart(result, measure) for measure in dict.fromkeys(cell.cell.measure for cell in cells)]


def _measure_chart(result: TableResult, measure: str) -> Chart:
    table, at = result.table, result.at
    columns = sort_columns(table.columns)
    cells = {row: [at.get((row, column)) for column in columns] for row in table.rows}
    baselines = {row: _means(cells.pop(row)) for row in table.baselines}
    rows = {row: line for row, line in cells.items() if any(c is not None and c.cell.measure == measure for c in line)}
    colors = line_colors([next(cell.cell.jobs[0] for cell in line if cell is not None) for line in rows.values()])
    axes = _plain_axes(LARGE, table.columns_are, table.unit, (*rows, *baselines))
    offsets = np.linspace(-DODGE / 2, DODGE / 2, len(rows)) if len(rows) > 1 else np.zeros(1)
    ends = [
        (row, color, _row_line(axes, row, line, color, offset))
        for (row, line), color, offset in zip(rows.items(), colors, offsets, strict=True)
    ]
    for row, heights in baselines.items():
        axes.plot(heights, "--", color=COLLAPSE, linewidth=0.9, gid=TITLE + row)
        ends.append((row, COLLAPSE, heights))
    axes.set_xticks(range(len(columns)), columns, fontsize=9 if sum(map(len, columns)) <= MAX_LETTERS else 7)
    axes.set_xlim(-0.35, len(columns) - 0.65)
    label_ends(axes, axes.get_xlim()[1], ends)
    return _finish(axes, table.title, table.unit)


def _row_line(
    axes: Axes, name: str, cells: Sequence[CellResult | None], color: str, offset: float
) -> NDArray[np.float64]:
    """A row: marks with bars of the spread, crosses where a seed is lost, hollow marks for the paper; its heights."""
    x = np.arange(len(cells)) + offset
    y, spread, paper = (
        np.array([np.nan if cell is None else value(cell) for cell in cells], dtype=np.float64)
        for value in (lambda cell: cell.mean, lambda cell: cell.spread, _paper)
    )
    lost = np.array([cell is not None and cell.lost > 0 for cell in cells])
    axes.plot(x, y, color=color, solid_capstyle="butt", gid=TITLE + name)
    axes.vlines(x, y - spread, y + spread, color=color, alpha=0.55)
    axes.plot(x, np.where(lost, np.nan, y), "o", color=color, markersize=5)
    axes.plot(x, np.where(lost, y, np.nan), "x", color=color, markersize=6, markeredgewidth=2)
    axes.plot(x, paper, "o", color=color, markersize=6, markerfacecolor="white", markeredgewidth=1.2)
    return np.where(np.isnan(y), paper, y)


def _means(cells: Sequence[CellResult | None]) -> NDArray[np.float64]:
    """NaN where there is none."""
    return np.array([np.nan if cell is None else cell.mean for cell in cells], dtype=np.float64)


def _paper(cell: CellResult) -> float | None:
    return None if cell.printed is None else cell.printed.mean


def sort_columns(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Numbers from the smallest on, 0 at the left end; words in the order in which they come."""
    try:
        return tuple(sorted(columns, key=float))
    except ValueError:
        return columns


def line_colors(jobs: Sequence[Job]) -> list[str]:
    """The color of each line's method; where two lines share one, colors that just differ."""
    names = [job.method for job in jobs]
    if None in names or len(set(names)) < len(names):
        return [class_color(n) for n in range(len(jobs))]
    return [method_color(name) for name in names if name is not None]


MAX_POINTS = 30
"""Of a line: more can't be told apart at this size."""
LOSSES = {"sim1": "cosine loss (Sim-1)", "loss": "loss"}
"""The first of them that a learner has is drawn: not every learner has a cosine loss."""


class MeanCurve(NamedTuple):
    """A curve over seeds."""

    x: NDArray[np.float64]
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    """Sample standard deviation, NaN of a single seed."""


class Panels(NamedTuple):
    """Charts side by side whose lines have the same names and colors."""

    legend: tuple[tuple[str, str], ...]
    """(name, color); empty where the charts name their lines."""
    charts: tuple[Chart, ...]


Grid = Mapping[str, Mapping[str, CellText]]
"""The cell behind each line of each panel."""


def learning_panels(tables: Sequence[PageTable], results: Mapping[str, Result], large: bool) -> list[Panels]:
    """Panels for each table of a target whose runs have curves; each set of runs is drawn once."""
    drawn_keys: set[tuple[str, ...]] = set()
    groups = [_grid_panels(_merge_panels(table, drawn_keys), results, large) for table in tables]
    return [panels for panels in groups if panels.charts]


def _grid_panels(grid: Grid, results: Mapping[str, Result], large: bool) -> Panels:
    firsts = {line: cell.result.cell.jobs[0] for lines in grid.values() for line, cell in lines.items()}
    colors = dict(zip(firsts, line_colors(list(firsts.values())), strict=True))
    charts: list[Chart | None] = []
    for panel, lines in grid.items():
        curves = {line: _curves(cell, results) for line, cell in lines.items()}
        measures = dict.fromkeys(cell.result.cell.measure for cell in lines.values())
        for name, label in _curves_to_draw(curves, measures):
            means = {line: mean_over_seeds([each[name] for each in of if name in each]) for line, of in curves.items()}
            charts.append(curve_chart(panel or label, label, means, colors, large))
    legend = () if large else tuple(colors.items())
    return Panels(legend=legend, charts=tuple(chart for chart in charts if chart is not None))


def _merge_panels(table: PageTable, drawn_keys: set[tuple[str, ...]]) -> Grid:
    """Lines differ by column where the methods do, else where there is more to tell apart; panels by the rest.

    Panels of the same runs are merged; runs that were drawn before are left out.
    """
    by_column = _variety(table, "column") > _variety(table, "row")
    grid: dict[str, dict[str, CellText]] = {}
    for cell in table.run_cells:
        row, column = cell.result.cell.row, cell.result.cell.column
        panel, line = (row, column) if by_column else (column, row)
        grid.setdefault(panel, {})[line] = cell
    alike: dict[tuple[str, ...], list[str]] = {}
    for panel, lines in grid.items():
        alike.setdefault(tuple(curve_keys(cell)[0] for cell in lines.values()), []).append(panel)
    fresh = {keys: panels for keys, panels in alike.items() if keys not in drawn_keys}
    drawn_keys.update(fresh)
    of = "" if by_column else table.result.table.columns_are
    return {_panel_name(panels, of): grid[panels[0]] for panels in fresh.values()}


def _variety(table: PageTable, axis: str) -> tuple[int, int]:
    """How many methods there are along an axis, and how many jobs."""
    across = "row" if axis == "column" else "column"
    first = getattr(table.run_cells[0].result.cell, across)
    cells = [cell for cell in table.run_cells if getattr(cell.result.cell, across) == first]
    return len({cell.result.cell.jobs[0].method for cell in cells}), len({cell.keys for cell in cells})


def _panel_name(panels: Sequence[str], of: str) -> str:
    """A panel's name with what it is a value of; of several, the words that all begin with."""
    if len(panels) == 1:
        return f"{of} {panels[0]}".strip()
    together = takewhile(lambda words: len(set(words)) == 1, zip(*(name.split() for name in panels), strict=False))
    return " ".join(words[0] for words in together)


def _curves(cell: CellText, results: Mapping[str, Result]) -> list[Mapping[str, Curve]]:
    """Of each seed that has any."""
    return [results[key].curves for key in curve_keys(cell) if key in results and results[key].curves]


def curve_keys(cell: CellText) -> list[str]:
    """By seed, the key of the run that has the curves: its own, or that of the run that it begins with."""
    jobs = zip(cell.result.cell.jobs, cell.keys, strict=True)
    return [own if job.requires is None else job.requires.key for job, own in jobs]


def _curves_to_draw(
    curves: Mapping[str, Sequence[Mapping[str, Curve]]], measures: Iterable[str]
) -> list[tuple[str, str]]:
    """(curve, label) to draw: an accuracy, then a loss."""
    there = {name for every in curves.values() for each in every for name in each}
    readouts = [measure.rpartition("/")[0] for measure in measures]
    accuracies = {"knn": "kNN (%)", **{readout: f"{readout} (%)" for readout in readouts}}
    firsts = [[(name, label) for name, label in of.items() if name in there][:1] for of in (accuracies, LOSSES)]
    return [pair for first in firsts for pair in first]


def curve_chart(
    title: str, label: str, curves: Mapping[str, MeanCurve], colors: Mapping[str, str], large: bool = True
) -> Chart | None:
    """Curves over the images seen, their spread as a band; None where there is no value."""
    curves = {name: curve for name, curve in curves.items() if len(curve.x)}
    if not curves:
        return None
    axes = _plain_axes(LARGE if large else SMALL, "images seen", label, curves if large else ())
    for name, (x, mean, spread) in curves.items():
        axes.plot(x, mean, color=colors[name], linewidth=1.7, solid_capstyle="butt", gid=TITLE + name)
        wide = ~np.isnan(spread)
        x, low, high = x[wide], (mean - spread)[wide], (mean + spread)[wide]
        axes.fill(np.append(x, x[::-1]), np.append(high, low[::-1]), color=colors[name], alpha=0.14, linewidth=0)
    axes.margins(x=0)
    if large:
        label_ends(axes, axes.get_xlim()[1], [(name, colors[name], curve.mean) for name, curve in curves.items()])
    return _finish(axes, title, label)


def mean_over_seeds(curves: Sequence[Curve]) -> MeanCurve:
    """Mean and sample standard deviation at every x, thinned; values that are not finite are left out."""
    values: dict[float, list[float]] = {}
    for x, y in (point for curve in curves for point in curve):
        if np.isfinite(y):
            values.setdefault(x, []).append(y)
    every = -(-len(values) // MAX_POINTS) or 1
    xs = [x for n, x in enumerate(sorted(values)) if n % every == 0 or n == len(values) - 1]
    means = [np.mean(values[x]) for x in xs]
    spreads = [np.std(values[x], ddof=1) if len(values[x]) > 1 else np.nan for x in xs]
    return MeanCurve(*(np.array(each, dtype=np.float64) for each in (xs, means, spreads)))


def run_charts(result: Result) -> list[Chart]:
    """Of one run: its accuracies, and the terms of its loss."""
    readouts = [name for name in result.curves if name == "knn" or "/" in name]
    losses = [name for name in TERMS if name in result.curves] or [name for name in result.curves if name == "loss"]
    colors = {name: class_color(n) for n, name in enumerate(readouts)}
    kinds = (("accuracy", "%", colors), ("terms of the loss", "", {name: TERMS.get(name, INK) for name in losses}))
    means = {name: mean_over_seeds([result.curves[name]]) for name in (*readouts, *losses)}
    charts = [curve_chart(title, label, {name: means[name] for name in of}, of) for title, label, of in kinds]
    return [each for each in charts if each is not None]


FIGURES: Mapping[str, tuple[str, tuple[Version, ...], Callable[[Version, float], Figure]]] = {
    "figure:vecfield_PhiNet": ("PhiNet under four weight decays", ("published", "corrected"), regimes),
    "figure:simsiam": (
        "SimSiam above and below its threshold", ("published",),
        lambda _, sigma2: line(around_threshold(SimSiam(sigma2=sigma2, rho=1.0))),
    ),
    "figure:comparison": (
        "PhiNet beside SimSiam from the same start", ("published", "corrected"),
        lambda version, sigma2: comparison(PhiNet(sigma2=sigma2, rho=COMPARED_RHO, version=version)),
    ),
}  # fmt: skip
"""By the figure's label in the paper: title, for which equations it is drawn (SimSiam's are the same), how."""


def state_spaces(result: TargetResult) -> list[Chart]:
    """The figures that a target's place names; all three where it names none of them."""
    jobs = [job for table in result.tables for each in table.cells for job in each.cell.jobs]
    sigma2 = next((job.sigma2 for job in jobs if isinstance(job, DynamicsJob)), 1.5)
    labels = [label for label in FIGURES if label in result.target.place] or list(FIGURES)
    return [
        Chart(title=f"{title}, equations as {version}" if len(versions) > 1 else title, figure=draw(version, sigma2))
        for title, versions, draw in map(FIGURES.__getitem__, labels)
        for version in versions
    ]
