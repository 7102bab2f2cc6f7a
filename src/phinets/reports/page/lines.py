"""A table as lines over its columns, with the paper's numbers beside ours; and which color a line has."""

from collections.abc import Sequence

from phinets.config.work import Costing, Deriving, Work
from phinets.paper.findings import CellFound, TableFound
from phinets.reports.page.chart import Chart, Plot, Point, Series, chart
from phinets.reports.palette import class_color, method_color

DODGE = 0.24
"""Share of the way from one column to the next that the lines of a column take up."""


def lines(found: TableFound) -> list[Chart]:
    """A line for each row, a chart for each measure.

    Columns stand side by side, since weight decay 0 has no place on an axis of powers.
    """
    health_metrics = dict.fromkeys(cell.cell.measure for cell in found.cells)
    made = [_of_measure(found, measure) for measure in health_metrics]
    return [drawn for drawn in made if drawn is not None]


def _of_measure(found: TableFound, measure: str) -> Chart | None:
    table, at = found.table, found.at
    columns = ascending(table.columns)
    cells = {row: [at.get((row, column)) for column in columns] for row in table.rows}
    of = {row: known for row, known in cells.items() if any(c is not None and c.cell.measure == measure for c in known)}
    colors = line_colors([next(cell.cell.works[0] for cell in known if cell is not None) for known in of.values()])
    series = tuple(
        Series(name=row, color=color, points=_points(known, aside), beside=_printed(known, aside))
        for (row, known), color, aside in zip(of.items(), colors, _asides(len(of)), strict=True)
    )
    return chart(Plot(title=table.title, series=series, x_label=table.columns_are, y_label=table.unit, names=columns))


def ascending(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Numbers from the smallest on, 0 at the left end; words in the order in which they come."""
    try:
        return tuple(sorted(columns, key=float))
    except ValueError:
        return columns


def line_colors(works: Sequence[Work]) -> list[str]:
    """The color of each line's method; where two lines share one, colors that just differ."""
    names = [method_of(work) for work in works]
    if None in names or len(set(names)) < len(names):
        return [class_color(n) for n in range(len(works))]
    return [method_color(name) for name in names if name is not None]


def method_of(work: Work) -> str | None:
    """The learner, where there is one."""
    return None if isinstance(work, Costing | Deriving) else work.run.method


def _asides(n: int) -> list[float]:
    """How far each of so many lines stands aside, so that their bars don't cover each other."""
    return [DODGE * (k / (n - 1) - 0.5) if n > 1 else 0.0 for k in range(n)]


def _points(cells: Sequence[CellFound | None], aside: float) -> tuple[Point, ...]:
    return tuple(
        Point(x=n + aside, y=None)
        if cell is None
        else Point(x=n + aside, y=cell.mean, spread=cell.spread, lost=cell.lost > 0)
        for n, cell in enumerate(cells)
    )


def _printed(cells: Sequence[CellFound | None], aside: float) -> tuple[Point, ...]:
    return tuple(
        Point(x=n + aside, y=cell.printed.mean)
        for n, cell in enumerate(cells)
        if cell is not None and cell.printed is not None and cell.printed.mean is not None
    )
