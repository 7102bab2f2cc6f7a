"""Charts of the page: a table as lines over its columns, learning curves, and both as whole numbers on a canvas.

The template writes a canvas as SVG. It counts half pixels; paths use relative steps, which keeps them short.
Colors are CSS variables, so that charts follow the light or dark theme.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, takewhile

import numpy as np

from phinets.config.jobs import Curve, Job, Result
from phinets.paper.findings import CellFound, TableFound
from phinets.reports.continual import spread
from phinets.reports.page.tables import PageCell, PageTable, short
from phinets.reports.palette import INK, TERMS, class_color, method_color

LETTER, LINE = 12, 27
"""Width of a letter and height of a line, roughly."""
MARGIN = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value over x; without y there is none, and the line has a gap."""

    x: float
    y: float | None
    spread: float | None = None
    """Half the length of its bar, or of the band there."""
    lost: bool = False
    """Whether a seed collapsed or diverged: its mark is a cross."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """From where to where it reaches."""
        if self.y is None:
            return None
        half = self.spread or 0.0
        return self.y - half, self.y + half


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line."""

    name: str
    color: str
    points: tuple[Point, ...]
    beside: tuple[Point, ...] = ()
    """Hollow marks: what the paper prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What a chart shows."""

    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    names: tuple[str, ...] = ()
    """What stands at x = 0, 1, 2, …; empty where x is a number."""
    smooth: bool = False
    """Whether lines are many points without marks, their spread a band; else marks with bars."""
    has_labels: bool = True
    """Whether each line bears its name at its end."""
    wide: int = 820
    high: int = 480


Spot = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series on the canvas."""

    name: str
    color: str
    path: str
    band: str
    bars: str
    marks: tuple[Spot, ...]
    crosses: tuple[Spot, ...]
    beside: tuple[Spot, ...]
    label_y: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A plot on the canvas."""

    plot: Plot
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: tuple[tuple[int, str], ...]
    y_ticks: tuple[tuple[int, str], ...]
    lines: tuple[Line, ...]


def chart(plot: Plot) -> Chart | None:
    """The plot on a canvas; None where it has no value to show."""
    every = [point for series in plot.series for point in (*series.points, *series.beside)]
    ends = [end for point in every for end in point.ends or ()]
    if not ends:
        return None
    low, high = _with_room(min(ends), max(ends))
    y_ticks = ticks(low, high)
    longest = max((len(series.name) for series in plot.series), default=0)
    left = MARGIN + LETTER * max(len(short(tick)) for tick in y_ticks) + LINE
    right = plot.wide - (MARGIN + (LETTER * longest + 10 if plot.has_labels else 2 * LETTER))
    top, bottom = MARGIN + LINE, plot.high - 2 * LINE - MARGIN
    x_low, x_high = _x_ends(plot, every)
    box = _Box(x_low, x_high, low, high, left, right, top, bottom)
    named = _even(list(enumerate(plot.names)), right - left)
    x_ticks = named if plot.names else [(tick, short(tick)) for tick in ticks(x_low, x_high, 4)]
    lines = [_line(series, plot, box) for series in plot.series]
    return Chart(
        plot=plot,
        left=left,
        right=right,
        top=top,
        bottom=bottom,
        x_ticks=tuple((box.x(value), text) for value, text in x_ticks),
        y_ticks=tuple((box.y(value), short(value)) for value in y_ticks),
        lines=tuple(_place_labels(lines, plot, box)),
    )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def path(spots: Sequence[Spot]) -> str:
    """The way from spot to spot in SVG's words: M40 12l8-3 9 1."""
    if not spots:
        return ""
    (x, y), steps = spots[0], [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(spots)]
    words = "".join(f"{dx:+d}{dy:+d}" for dx, dy in steps).replace("+", " ").lstrip()
    return f"M{x} {y}" + (f"l{words}" if words else "")


@dataclass(frozen=True, slots=True)
class _Box:
    """From values to the canvas."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    left: int
    right: int
    top: int
    bottom: int

    def x(self, value: float) -> int:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return round(self.left + share * (self.right - self.left))

    def y(self, value: float) -> int:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return round(self.bottom - share * (self.bottom - self.top))

    def spots(self, points: Iterable[Point]) -> tuple[Spot, ...]:
        return tuple((self.x(point.x), self.y(point.y)) for point in points if point.y is not None)


def _with_room(low: float, high: float) -> tuple[float, float]:
    """The same with a little room on both sides."""
    room = 0.06 * (high - low) or max(abs(high) * 0.05, 0.5)
    return low - room, high + room


def _x_ends(plot: Plot, points: Sequence[Point]) -> tuple[float, float]:
    if plot.names:
        return -0.35, len(plot.names) - 0.65
    xs = [point.x for point in points]
    return min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1


def _even(names: list[tuple[int, str]], wide: int) -> list[tuple[float, str]]:
    """As many names as have room side by side: all, every second, every third."""
    longest = max((len(name) for _, name in names), default=0)
    every = -(-(LETTER * (longest + 1)) * len(names) // max(1, wide)) or 1
    return [(float(n), name) for n, name in names if n % every == 0]


def _line(series: Series, plot: Plot, box: _Box) -> Line:
    runs = [list(group) for has_value, group in groupby(series.points, lambda point: point.y is not None) if has_value]
    wide = [point for run in runs for point in run if point.spread]
    return Line(
        name=series.name,
        color=series.color,
        path="".join(path(box.spots(run)) for run in runs if len(run) > 1),
        band="".join(_band(run, box) for run in runs) if plot.smooth and wide else "",
        bars="" if plot.smooth else "".join(_bar(point, box) for point in wide),
        marks=() if plot.smooth else box.spots(point for point in series.points if not point.lost),
        crosses=box.spots(point for point in series.points if point.lost),
        beside=box.spots(series.beside),
        label_y=None,
    )


def _band(run: Sequence[Point], box: _Box) -> str:
    ends = [(box.x(point.x), point.ends) for point in run]
    above = [(x, box.y(end[1])) for x, end in ends if end is not None]
    below = [(x, box.y(end[0])) for x, end in reversed(ends) if end is not None]
    return f"{path([*above, *below])}z"


def _bar(point: Point, box: _Box) -> str:
    low, high = point.ends or (0.0, 0.0)
    return f"M{box.x(point.x)} {box.y(low)}V{box.y(high)}"


def _place_labels(lines: Sequence[Line], plot: Plot, box: _Box) -> list[Line]:
    """Each with the place of its name, beside its last value."""
    if not plot.has_labels:
        return list(lines)
    last = [_last(series) for series in plot.series]
    ends = sorted((box.y(value), n) for n, value in enumerate(last) if value is not None)
    free = spread([float(y) for y, _ in ends], LINE, (box.top, box.bottom))
    places = {n: round(place) for (_, n), place in zip(ends, free, strict=True)}
    return [replace(line, label_y=places[n]) if n in places else line for n, line in enumerate(lines)]


def _last(series: Series) -> float | None:
    values = [point.y for point in (*series.beside, *series.points) if point.y is not None]
    return values[-1] if values else None


DODGE = 0.24
"""Share of the way from one column to the next that the lines of a column take up."""


def lines(found: TableFound) -> list[Chart]:
    """A line for each row, a chart for each measure.

    Columns stand side by side, since weight decay 0 has no place on an axis of powers.
    """
    measures = dict.fromkeys(cell.cell.measure for cell in found.cells)
    charts = [_measure_chart(found, measure) for measure in measures]
    return [each for each in charts if each is not None]


def _measure_chart(found: TableFound, measure: str) -> Chart | None:
    table, at = found.table, found.at
    columns = sort_columns(table.columns)
    cells = {row: [at.get((row, column)) for column in columns] for row in table.rows}
    rows = {row: line for row, line in cells.items() if any(c is not None and c.cell.measure == measure for c in line)}
    colors = line_colors([next(cell.cell.jobs[0] for cell in line if cell is not None) for line in rows.values()])
    series = tuple(
        Series(name=row, color=color, points=_points(line, offset), beside=_paper_points(line, offset))
        for (row, line), color, offset in zip(rows.items(), colors, _offsets(len(rows)), strict=True)
    )
    return chart(Plot(title=table.title, series=series, x_label=table.columns_are, y_label=table.unit, names=columns))


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


def _offsets(n: int) -> list[float]:
    """The horizontal offset of each of n lines, so that their bars do not cover each other."""
    return [DODGE * (k / (n - 1) - 0.5) if n > 1 else 0.0 for k in range(n)]


def _points(cells: Sequence[CellFound | None], offset: float) -> tuple[Point, ...]:
    return tuple(
        Point(x=n + offset, y=None)
        if cell is None
        else Point(x=n + offset, y=cell.mean, spread=cell.spread, lost=cell.lost > 0)
        for n, cell in enumerate(cells)
    )


def _paper_points(cells: Sequence[CellFound | None], offset: float) -> tuple[Point, ...]:
    return tuple(
        Point(x=n + offset, y=cell.printed.mean)
        for n, cell in enumerate(cells)
        if cell is not None and cell.printed is not None and cell.printed.mean is not None
    )


MAX_POINTS = 30
"""Of a line: more are not seen at this size."""
LOSSES = {"sim1": "cosine loss (Sim-1)", "loss": "loss"}
"""In the order in which they are looked for: not every learner has a cosine loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Charts side by side whose lines have the same names and colors."""

    legend: tuple[tuple[str, str], ...]
    """(name, color)."""
    charts: tuple[Chart, ...]


Grid = Mapping[str, Mapping[str, PageCell]]
"""The cell behind each line of each panel."""


def learning_panels(tables: Sequence[PageTable], results: Mapping[str, Result], large: bool) -> list[Panels]:
    """Panels for each table of a target whose runs have curves; each set of runs is drawn once."""
    drawn_keys: set[tuple[str, ...]] = set()
    groups = [_grid_panels(_merge_panels(table, drawn_keys), results, large) for table in tables]
    return [panels for panels in groups if panels is not None]


def _grid_panels(grid: Grid, results: Mapping[str, Result], large: bool) -> Panels | None:
    firsts = {line: cell.found.cell.jobs[0] for lines in grid.values() for line, cell in lines.items()}
    colors = dict(zip(firsts, line_colors(list(firsts.values())), strict=True))
    charts: list[Chart] = []
    for panel, lines in grid.items():
        curves = {line: _curves(cell, results) for line, cell in lines.items()}
        measures = dict.fromkeys(cell.found.cell.measure for cell in lines.values())
        for name, label in _curves_to_draw(curves, measures):
            series = tuple(
                Series(
                    name=line, color=colors[line], points=mean_over_seeds([each[name] for each in of if name in each])
                )
                for line, of in curves.items()
            )
            each = _panel(panel or label, label, series, large)
            charts += [each] if each is not None else []
    return Panels(legend=tuple(colors.items()), charts=tuple(charts)) if charts else None


def _merge_panels(table: PageTable, drawn_keys: set[tuple[str, ...]]) -> Grid:
    """Lines differ by column where the methods do, else where there is more to tell apart; panels by the rest.

    Panels of the same runs are one; there are none of runs that were shown.
    """
    by_column = _variety(table, "column") > _variety(table, "row")
    grid: dict[str, dict[str, PageCell]] = {}
    for cell in table.cells:
        row, column = cell.found.cell.row, cell.found.cell.column
        panel, line = (row, column) if by_column else (column, row)
        grid.setdefault(panel, {})[line] = cell
    alike: dict[tuple[str, ...], list[str]] = {}
    for panel, lines in grid.items():
        alike.setdefault(tuple(cell.keys[0] for cell in lines.values()), []).append(panel)
    fresh = {keys: panels for keys, panels in alike.items() if keys not in drawn_keys}
    drawn_keys.update(fresh)
    of = "" if by_column else table.found.table.columns_are
    return {_panel_name(panels, of): grid[panels[0]] for panels in fresh.values()}


def _variety(table: PageTable, axis: str) -> tuple[int, int]:
    """How many methods there are along an axis, and how many pieces of work."""
    across = "row" if axis == "column" else "column"
    first = getattr(table.cells[0].found.cell, across)
    cells = [cell for cell in table.cells if getattr(cell.found.cell, across) == first]
    return len({cell.found.cell.jobs[0].method for cell in cells}), len({cell.keys for cell in cells})


def _panel_name(panels: Sequence[str], of: str) -> str:
    """A panel's name with what it is a value of; of several, the words that all begin with."""
    if len(panels) == 1:
        return f"{of} {panels[0]}".strip()
    together = takewhile(lambda words: len(set(words)) == 1, zip(*(name.split() for name in panels), strict=False))
    return " ".join(words[0] for words in together)


def _curves(cell: PageCell, results: Mapping[str, Result]) -> list[Mapping[str, Curve]]:
    """Of each seed that has any: its own, or those of the run that it begins with."""
    curves = []
    for job, own in zip(cell.found.cell.jobs, cell.keys, strict=True):
        first = job.requires
        result = results.get(own if first is None else first.key)
        if result is not None and result.curves:
            curves.append(result.curves)
    return curves


def _curves_to_draw(
    curves: Mapping[str, Sequence[Mapping[str, Curve]]], measures: Iterable[str]
) -> list[tuple[str, str]]:
    """Which curves are drawn, each with what it says: an accuracy, then a loss."""
    there = {name for every in curves.values() for each in every for name in each}
    readouts = [measure.rpartition("/")[0] for measure in measures]
    accuracies = {"knn": "kNN (%)", **{readout: f"{readout} (%)" for readout in readouts}}
    return [
        *[(name, label) for name, label in accuracies.items() if name in there][:1],
        *[(name, label) for name, label in LOSSES.items() if name in there][:1],
    ]


def _panel(title: str, label: str, series: tuple[Series, ...], large: bool) -> Chart | None:
    wide, high = (820, 480) if large else (540, 350)
    plot = Plot(title=title, series=series, x_label="images seen", y_label=label, smooth=True, has_labels=large)
    return chart(replace(plot, wide=wide, high=high))


def mean_over_seeds(curves: Sequence[Curve]) -> tuple[Point, ...]:
    """Mean and sample standard deviation at every x, thinned; what is not finite counts as not there."""
    values: dict[float, list[float]] = {}
    for x, y in (point for curve in curves for point in curve):
        if math.isfinite(y):
            values.setdefault(x, []).append(y)
    every = -(-len(values) // MAX_POINTS) or 1
    xs = [x for n, x in enumerate(sorted(values)) if n % every == 0 or n == len(values) - 1]
    return tuple(_point(x, values[x]) for x in xs)


def _point(x: float, ys: Sequence[float]) -> Point:
    return Point(x=x, y=float(np.mean(ys)), spread=float(np.std(ys, ddof=1)) if len(ys) > 1 else None)


def run_charts(result: Result) -> tuple[Chart, ...]:
    """Of one run: its accuracies, and the terms of its loss."""
    readouts = [name for name in result.curves if name == "knn" or "/" in name]
    losses = [name for name in TERMS if name in result.curves] or [n for n in ("loss",) if n in result.curves]
    charts = [
        _panel("accuracy", "%", _run_series(result, {name: class_color(n) for n, name in enumerate(readouts)}), True),
        _panel("terms of the loss", "", _run_series(result, {name: TERMS.get(name, INK) for name in losses}), True),
    ]
    return tuple(each for each in charts if each is not None)


def _run_series(result: Result, colors: Mapping[str, str]) -> tuple[Series, ...]:
    return tuple(
        Series(name=name, color=color, points=mean_over_seeds([result.curves[name]])) for name, color in colors.items()
    )
