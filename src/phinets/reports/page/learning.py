"""Learning curves: how runs came to their numbers, over the images that they have seen, mean and spread over seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import fmean, stdev

from phinets.config.result import Curve, Result
from phinets.config.work import Work, begins_with, key
from phinets.paper.findings import TableFound, TargetFound
from phinets.reports.page.chart import Chart, Plot, Point, Series, chart
from phinets.reports.page.lines import line_colours, method_of
from phinets.reports.palette import INK, TERMS, class_colour

MOST_POINTS = 30
"""Of a line: more are not seen at this size."""
LOSSES = {"sim1": "cosine loss (Sim-1)", "loss": "loss"}
"""In the order in which they are looked for: not every learner has a cosine loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Charts side by side whose lines have the same names and colours."""

    legend: tuple[tuple[str, str], ...]
    """(name, colour)."""
    charts: tuple[Chart, ...]


Grid = Mapping[str, Mapping[str, tuple[Work, ...]]]
"""The work behind each line of each panel."""


def learning(found: TargetFound, large: bool = False) -> list[Panels]:
    """Panels for each table of a target whose runs have curves; runs that were shown already are not shown again."""
    shown: set[tuple[str, ...]] = set()
    made = [_of_table(table, _merged(_grid(table), shown), found.results, large) for table in found.tables]
    return [panels for panels in made if panels is not None]


def _of_table(found: TableFound, grid: Grid, results: Mapping[str, Result], large: bool) -> Panels | None:
    firsts = {line: works[0] for lines in grid.values() for line, works in lines.items()}
    colours = dict(zip(firsts, line_colours(list(firsts.values())), strict=True))
    charts: list[Chart] = []
    for panel, lines in grid.items():
        curves = {line: _curves(works, results) for line, works in lines.items()}
        for name, label in _told(curves, found.cells[0].cell.measure):
            series = tuple(
                Series(name=line, colour=colours[line], points=over_seeds([each[name] for each in of if name in each]))
                for line, of in curves.items()
            )
            drawn = _panel(panel or found.table.title, label, series, large)
            charts += [drawn] if drawn is not None else []
    return Panels(legend=tuple(colours.items()), charts=tuple(charts)) if charts else None


def _grid(found: TableFound) -> Grid:
    """Lines differ by column where the methods do, else where there is more to tell apart; panels by the rest."""
    by_column = _variety(found, "column") > _variety(found, "row")
    grid: dict[str, dict[str, tuple[Work, ...]]] = {}
    for cell in (each.cell for each in found.cells):
        panel, line = (cell.row, cell.column) if by_column else (cell.column, cell.row)
        grid.setdefault(panel, {})[line] = cell.works
    return grid


def _variety(found: TableFound, axis: str) -> tuple[int, int]:
    """How many methods there are along an axis, and how many pieces of work."""
    cells = [each.cell for each in found.cells]
    across = "row" if axis == "column" else "column"
    first = [cell for cell in cells if getattr(cell, across) == getattr(cells[0], across)]
    return len({method_of(cell.works[0]) for cell in first}), len({key(cell.works[0]) for cell in first})


def _merged(grid: Grid, shown: set[tuple[str, ...]]) -> Grid:
    """Panels of the same runs as one, and none of those that were shown."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for panel, lines in grid.items():
        alike.setdefault(tuple(key(works[0]) for works in lines.values()), []).append(panel)
    fresh = {keys: panels for keys, panels in alike.items() if keys not in shown}
    shown.update(fresh)
    return {_common(panels): grid[panels[0]] for panels in fresh.values()}


def _common(names: Sequence[str]) -> str:
    """The words that several names begin with."""
    together = takewhile(lambda words: len(set(words)) == 1, zip(*(name.split() for name in names), strict=False))
    return " ".join(words[0] for words in together)


def _curves(works: Sequence[Work], results: Mapping[str, Result]) -> list[Mapping[str, Curve]]:
    """Of each seed that has any: its own, or those of the run that it begins with."""
    found = []
    for work in works:
        first = begins_with(work)
        result = results.get(key(work if first is None else first))
        if result is not None and result.curves:
            found.append(result.curves)
    return found


def _told(curves: Mapping[str, Sequence[Mapping[str, Curve]]], measure: str) -> list[tuple[str, str]]:
    """Which curves are drawn, each with what it says: an accuracy, then a loss."""
    there = {name for every in curves.values() for each in every for name in each}
    readout = measure.rpartition("/")[0]
    accuracies = {"knn": "kNN (%)", readout: f"{readout} (%)"}
    return [
        *[(name, label) for name, label in accuracies.items() if name in there][:1],
        *[(name, label) for name, label in LOSSES.items() if name in there][:1],
    ]


def _panel(title: str, label: str, series: tuple[Series, ...], large: bool) -> Chart | None:
    wide, high = (820, 480) if large else (540, 350)
    plot = Plot(title=title, series=series, x_label="images seen", y_label=label, smooth=True, labelled=large)
    return chart(replace(plot, wide=wide, high=high))


def over_seeds(curves: Sequence[Curve]) -> tuple[Point, ...]:
    """Mean and sample standard deviation at every x, thinned; what is not finite counts as not there."""
    values: dict[float, list[float]] = {}
    for x, y in (point for curve in curves for point in curve):
        if math.isfinite(y):
            values.setdefault(x, []).append(y)
    points = [
        Point(x=x, y=fmean(ys), spread=stdev(ys) if len(ys) > 1 else None) for x, ys in sorted(values.items())
    ]
    every = -(-len(points) // MOST_POINTS) or 1
    return tuple(point for n, point in enumerate(points) if n % every == 0 or n == len(points) - 1)


def own_charts(result: Result) -> tuple[Chart, ...]:
    """Of one run: its accuracies, and the terms of its loss."""
    readouts = [name for name in result.curves if name == "knn" or "/" in name]
    losses = [name for name in TERMS if name in result.curves] or [n for n in ("loss",) if n in result.curves]
    made = [
        _panel("accuracy", "%", _named(result, {name: class_colour(n) for n, name in enumerate(readouts)}), True),
        _panel("terms of the loss", "", _named(result, {name: TERMS.get(name, INK) for name in losses}), True),
    ]
    return tuple(drawn for drawn in made if drawn is not None)


def _named(result: Result, colours: Mapping[str, str]) -> tuple[Series, ...]:
    return tuple(
        Series(name=name, colour=colour, points=over_seeds([result.curves[name]])) for name, colour in colours.items()
    )
