"""Learning curves: how runs came to their numbers, over the images that they have seen, mean and spread over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from phinets.config.result import Curve, Result
from phinets.config.work import begins_with, key
from phinets.reports.page.chart import Chart, Plot, Point, Series, chart
from phinets.reports.page.lines import line_colors, method_of
from phinets.reports.page.tables import CellShown, TableShown
from phinets.reports.palette import INK, TERMS, class_color

MOST_POINTS = 30
"""Of a line: more are not seen at this size."""
LOSSES = {"sim1": "cosine loss (Sim-1)", "loss": "loss"}
"""In the order in which they are looked for: not every learner has a cosine loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """Charts side by side whose lines have the same names and colors."""

    legend: tuple[tuple[str, str], ...]
    """(name, color)."""
    charts: tuple[Chart, ...]


Grid = Mapping[str, Mapping[str, CellShown]]
"""The cell behind each line of each panel."""


def learning(tables: Sequence[TableShown], results: Mapping[str, Result], large: bool) -> list[Panels]:
    """Panels for each of a target's tables whose runs have curves; runs that were shown already don't come again."""
    shown: set[tuple[str, ...]] = set()
    made = [_of_grid(_merged(table, shown), results, large) for table in tables]
    return [panels for panels in made if panels is not None]


def _of_grid(grid: Grid, results: Mapping[str, Result], large: bool) -> Panels | None:
    firsts = {line: cell.found.cell.works[0] for lines in grid.values() for line, cell in lines.items()}
    colors = dict(zip(firsts, line_colors(list(firsts.values())), strict=True))
    charts: list[Chart] = []
    for panel, lines in grid.items():
        curves = {line: _curves(cell, results) for line, cell in lines.items()}
        health_metrics = dict.fromkeys(cell.found.cell.measure for cell in lines.values())
        for name, label in _told(curves, health_metrics):
            series = tuple(
                Series(name=line, color=colors[line], points=over_seeds([each[name] for each in of if name in each]))
                for line, of in curves.items()
            )
            drawn = _panel(panel or label, label, series, large)
            charts += [drawn] if drawn is not None else []
    return Panels(legend=tuple(colors.items()), charts=tuple(charts)) if charts else None


def _merged(table: TableShown, shown: set[tuple[str, ...]]) -> Grid:
    """Lines differ by column where the methods do, else where there is more to tell apart; panels by the rest.

    Panels of the same runs are one; there are none of runs that were shown.
    """
    by_column = _variety(table, "column") > _variety(table, "row")
    grid: dict[str, dict[str, CellShown]] = {}
    for cell in table.cells:
        row, column = cell.found.cell.row, cell.found.cell.column
        panel, line = (row, column) if by_column else (column, row)
        grid.setdefault(panel, {})[line] = cell
    alike: dict[tuple[str, ...], list[str]] = {}
    for panel, lines in grid.items():
        alike.setdefault(tuple(cell.keys[0] for cell in lines.values()), []).append(panel)
    fresh = {keys: panels for keys, panels in alike.items() if keys not in shown}
    shown.update(fresh)
    of = "" if by_column else table.found.table.columns_are
    return {_named_together(panels, of): grid[panels[0]] for panels in fresh.values()}


def _variety(table: TableShown, axis: str) -> tuple[int, int]:
    """How many methods there are along an axis, and how many pieces of work."""
    across = "row" if axis == "column" else "column"
    first = getattr(table.cells[0].found.cell, across)
    cells = [cell for cell in table.cells if getattr(cell.found.cell, across) == first]
    return len({method_of(cell.found.cell.works[0]) for cell in cells}), len({cell.keys for cell in cells})


def _named_together(panels: Sequence[str], of: str) -> str:
    """A panel's name with what it is a value of; of several, the words that all begin with."""
    if len(panels) == 1:
        return f"{of} {panels[0]}".strip()
    together = takewhile(lambda words: len(set(words)) == 1, zip(*(name.split() for name in panels), strict=False))
    return " ".join(words[0] for words in together)


def _curves(cell: CellShown, results: Mapping[str, Result]) -> list[Mapping[str, Curve]]:
    """Of each seed that has any: its own, or those of the run that it begins with."""
    found = []
    for work, own in zip(cell.found.cell.works, cell.keys, strict=True):
        first = begins_with(work)
        result = results.get(own if first is None else key(first))
        if result is not None and result.curves:
            found.append(result.curves)
    return found


def _told(curves: Mapping[str, Sequence[Mapping[str, Curve]]], health_metrics: Iterable[str]) -> list[tuple[str, str]]:
    """Which curves are drawn, each with what it says: an accuracy, then a loss."""
    there = {name for every in curves.values() for each in every for name in each}
    readouts = [measure.rpartition("/")[0] for measure in health_metrics]
    accuracies = {"knn": "kNN (%)", **{readout: f"{readout} (%)" for readout in readouts}}
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
    every = -(-len(values) // MOST_POINTS) or 1
    kept = [x for n, x in enumerate(sorted(values)) if n % every == 0 or n == len(values) - 1]
    return tuple(_point(x, values[x]) for x in kept)


def _point(x: float, ys: Sequence[float]) -> Point:
    return Point(x=x, y=float(np.mean(ys)), spread=float(np.std(ys, ddof=1)) if len(ys) > 1 else None)


def own_charts(result: Result) -> tuple[Chart, ...]:
    """Of one run: its accuracies, and the terms of its loss."""
    readouts = [name for name in result.curves if name == "knn" or "/" in name]
    losses = [name for name in TERMS if name in result.curves] or [n for n in ("loss",) if n in result.curves]
    made = [
        _panel("accuracy", "%", _named(result, {name: class_color(n) for n, name in enumerate(readouts)}), True),
        _panel("terms of the loss", "", _named(result, {name: TERMS.get(name, INK) for name in losses}), True),
    ]
    return tuple(drawn for drawn in made if drawn is not None)


def _named(result: Result, colors: Mapping[str, str]) -> tuple[Series, ...]:
    return tuple(
        Series(name=name, color=color, points=over_seeds([result.curves[name]])) for name, color in colors.items()
    )
