"""A table as lines over its columns, with the paper's numbers beside ours; and which colour a line has."""

from collections.abc import Sequence

from phinets.config.work import Costing, Deriving, Work
from phinets.paper.findings import CellFound, TableFound
from phinets.reports.page.chart import Chart, Plot, Point, Series, chart
from phinets.reports.palette import class_colour, method_colour


def lines(found: TableFound) -> Chart | None:
    """A line for each row; the columns stand side by side, since weight decay 0 has no place on an axis of powers."""
    table, at = found.table, found.at
    of_rows = [[at.get((row, column)) for column in table.columns] for row in table.rows]
    firsts = [next((cell.cell.works[0] for cell in cells if cell is not None), None) for cells in of_rows]
    colours = line_colours(firsts)
    series = tuple(
        Series(name=row, colour=colour, points=_points(cells), beside=_printed(cells))
        for row, colour, cells in zip(table.rows, colours, of_rows, strict=True)
    )
    return chart(
        Plot(
            title=table.title,
            series=series,
            x_label=table.columns_are,
            y_label=table.unit,
            names=table.columns,
        )
    )


def line_colours(works: Sequence[Work | None]) -> list[str]:
    """The colour of each line's method; where two lines share one, colours that just differ."""
    names = [method_of(work) for work in works]
    if None in names or len(set(names)) < len(names):
        return [class_colour(n) for n in range(len(works))]
    return [method_colour(name) for name in names if name is not None]


def method_of(work: Work | None) -> str | None:
    """The learner, where there is one."""
    return None if work is None or isinstance(work, Costing | Deriving) else work.run.method


def _points(cells: Sequence[CellFound | None]) -> tuple[Point, ...]:
    return tuple(
        Point(x=n, y=None) if cell is None else Point(x=n, y=cell.mean, spread=cell.spread, lost=cell.lost > 0)
        for n, cell in enumerate(cells)
    )


def _printed(cells: Sequence[CellFound | None]) -> tuple[Point, ...]:
    return tuple(
        Point(x=n, y=cell.printed.mean)
        for n, cell in enumerate(cells)
        if cell is not None and cell.printed is not None and cell.printed.mean is not None
    )
