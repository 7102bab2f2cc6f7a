"""A target is tables, a table is cells, a cell is the same job for each seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Literal

from phinets.config.jobs import Job
from phinets.paper.rules import Claim
from phinets.paper.scales import Scale

FigureKind = Literal["table", "lines", "curves", "dynamics"]
"""How a target is shown beside its tables: not at all, lines over the columns, learning curves, state spaces."""
Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One number of a table: the mean over seeds of one measure."""

    row: str
    column: str
    measure: str
    """Which number of the results: knn, linear, task-knn/fast/average, …"""
    jobs: tuple[Job, ...]
    """The same but for the seed."""
    chance: float | None = None
    """The score of guessing, which a collapsed or diverged seed counts as; None: it counts as measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table, or one panel of a figure."""

    name: str
    """The key of the paper's own numbers in numbers.yaml, if it prints any."""
    title: str
    cells: tuple[Cell, ...]
    unit: str = "%"
    better: Better | None = "higher"
    """Which numbers are best; None where there is no better."""
    lower_rows: tuple[str, ...] = ()
    """Rows in which the lower numbers are best, whatever holds for the others: forgetting beside accuracy."""
    best_in: Literal["row", "column"] = "column"
    """Whether the cells of a column or those of a row compete for the best."""
    columns_are: str = ""
    """What the columns vary: weight decay, batch size, EMA β."""
    baselines: tuple[str, ...] = ()
    """Rows of the untrained encoder and of raw pixels, which do not compete."""

    @property
    def rows(self) -> tuple[str, ...]:
        """In the order of the paper."""
        return tuple(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> tuple[str, ...]:
        """In the order of the paper."""
        return tuple(dict.fromkeys(cell.column for cell in self.cells))

    def better_in(self, row: str) -> Better | None:
        """Which numbers are best in a row."""
        return "lower" if row in self.lower_rows else self.better

    @property
    def at(self) -> Mapping[tuple[str, str], Cell]:
        """The cells by row and column."""
        return {(cell.row, cell.column): cell for cell in self.cells}


@dataclass(frozen=True, slots=True)
class Target:
    """A table or figure of the paper that can be re-run."""

    name: str
    place: str
    """Where the paper has it: its table or figure, by its label in the paper's source."""
    title: str
    """What it shows, in one line."""
    tables: Callable[[Scale], tuple[Table, ...]]
    """Its tables at a scale."""
    claims: tuple[Claim, ...] = ()
    figure: FigureKind = "table"
    notes: str = ""
    """What a reader must know: what the paper leaves open, what replaces what at small scales."""

    def jobs(self, scale: Scale) -> dict[str, Job]:
        """All its jobs by key, each once and after the job that it requires.

        One seed of every cell comes before the second seed of any.
        """
        by_cell = (cell.jobs for table in self.tables(scale) for cell in table.cells)
        jobs: dict[str, Job] = {}
        for job in filter(None, chain.from_iterable(zip_longest(*by_cell))):
            for one in filter(None, (job.requires, job)):
                jobs.setdefault(one.key, one)
        return jobs


def with_seeds(scale: Scale, seeds: int | None) -> Scale:
    """The same scale with another number of seeds."""
    return scale if seeds is None else replace(scale, seeds=seeds)
