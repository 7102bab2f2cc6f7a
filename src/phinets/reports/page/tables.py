"""Tables as the page shows them: ours above the paper's in each cell, and the runs behind it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from phinets.config.result import Result
from phinets.config.work import Deriving, key, seed
from phinets.paper.findings import CellFound, TableFound, TargetFound
from phinets.paper.numbers import Printed
from phinets.reports.page.verdicts import anchor
from phinets.reports.page.writing import number


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
    behind: tuple[Behind, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of its work, by seed."""
        return tuple(each.key for each in self.behind)

    @property
    def ours(self) -> str:
        """Mean with spread; of a statement on dynamics, whether it holds."""
        if self.found.mean is not None and isinstance(self.found.cell.works[0], Deriving):
            return "holds" if self.found.mean == 1 else "does not"
        return with_spread(self.found.mean, self.found.spread)

    @property
    def paper(self) -> str | None:
        """What the paper prints."""
        printed: Printed | None = self.found.printed
        return None if printed is None else with_spread(printed.mean, printed.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShown:
    """A table, its rows in the paper's order."""

    found: TableFound
    anchor: str
    rows: tuple[tuple[str, tuple[CellShown | None, ...]], ...]

    @property
    def cells(self) -> list[CellShown]:
        """Row by row."""
        return [cell for _, cells in self.rows for cell in cells if cell is not None]

    @property
    def seeds(self) -> int:
        """How many seeds with a number most of its cells have: what need not be said in each."""
        return Counter(cell.n for cell in self.found.cells if cell.n).most_common(1)[0][0] if self.has_ours else 0

    @property
    def has_ours(self) -> bool:
        """Whether there is any number."""
        return any(cell.n for cell in self.found.cells)

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


def _rows(found: TableFound, results: Mapping[str, Result]) -> tuple[tuple[str, tuple[CellShown | None, ...]], ...]:
    shown = {
        place: CellShown(found=cell, behind=tuple(_behind(cell, n, results) for n in range(len(cell.cell.works))))
        for place, cell in found.at.items()
    }
    return tuple((row, tuple(shown.get((row, column)) for column in found.table.columns)) for row in found.table.rows)


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


def with_spread(mean: float | None, spread: float | None) -> str:
    """87.30 ± 0.13."""
    return number(mean) if spread is None or mean is None else f"{number(mean)} ± {number(spread)}"
