"""Tables as the page shows them: ours above the paper's in each cell, and the runs behind it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from phinets.config.result import Result
from phinets.config.work import key, seed
from phinets.paper.findings import CellFound, TableFound, TargetFound
from phinets.reports.page.verdicts import anchor
from phinets.reports.page.writing import number
from phinets.reports.paper_cells import CellWritten, lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """One seed of a cell."""

    seed: int
    key: str
    value: str
    state: str
    """done, or what became of it: collapsed, diverged, failed, missing."""
    there: bool
    """Whether there is a result to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShown:
    """A cell of a table."""

    found: CellFound
    written: CellWritten
    behind: tuple[Behind, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of its work, by seed."""
        return tuple(each.key for each in self.behind)


Rows = tuple[tuple[str, tuple[CellShown | None, ...]], ...]
"""Each with its name; None where the table has no cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShown:
    """A table, its rows in the paper's order."""

    found: TableFound
    anchor: str
    rows: Rows

    @property
    def cells(self) -> list[CellShown]:
        """Row by row."""
        return [cell for _, cells in self.rows for cell in cells if cell is not None]

    @property
    def seeds(self) -> str:
        """How many seeds most of its cells have: what need not be said in each."""
        said = Counter(cell.written.seeds for cell in self.cells if cell.written.seeds)
        return said.most_common(1)[0][0] if said else ""

    @property
    def has_paper(self) -> bool:
        """Whether the paper prints any of its numbers."""
        return any(cell.printed is not None for cell in self.found.cells)


def tables(found: TargetFound) -> list[TableShown]:
    """The tables of a target."""
    return [
        TableShown(found=table, anchor=f"{anchor(found)}-{n}", rows=_rows(table, found.results))
        for n, table in enumerate(found.tables, 1)
    ]


def _rows(found: TableFound, results: Mapping[str, Result]) -> Rows:
    at = found.at
    return tuple(
        (
            line.name,
            tuple(
                None if written is None else _cell(at[line.name, column], written, results)
                for column, written in zip(found.table.columns, line.cells, strict=True)
            ),
        )
        for line in lines(found)
    )


def _cell(found: CellFound, written: CellWritten, results: Mapping[str, Result]) -> CellShown:
    behind = tuple(_behind(found, n, results) for n in range(len(found.cell.works)))
    return CellShown(found=found, written=written, behind=behind)


def _behind(found: CellFound, n: int, results: Mapping[str, Result]) -> Behind:
    work = found.cell.works[n]
    known = key(work)
    result = results.get(known)
    value = number(found.values[n])
    return Behind(seed=seed(work), key=known, value=value, state=state(result), there=result is not None)


def state(result: Result | None) -> str:
    """What became of a piece of work, in a word."""
    if result is None:
        return "missing"
    if result.failed is not None:
        return "failed"
    return result.health if result.lost and result.health is not None else "done"
