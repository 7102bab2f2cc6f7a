"""Tables and claims of the page, and how it writes numbers.

A cell has our value above the paper's, and the runs behind it; a claim has a verdict and its effect as a bar.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import copysign, sqrt

from phinets.config.jobs import Result
from phinets.paper.claims import Effect, VerdictWord
from phinets.paper.findings import CellFound, ClaimFound, TableFound, TargetFound
from phinets.reports.paper_cells import CellWritten, effect_words, lines


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
class PageCell:
    """A cell of a table."""

    found: CellFound
    written: CellWritten
    behind: tuple[Behind, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of its work, by seed."""
        return tuple(each.key for each in self.behind)


Rows = tuple[tuple[str, tuple[PageCell | None, ...]], ...]
"""Each with its name; None where the table has no cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table, its rows in the paper's order."""

    found: TableFound
    anchor: str
    rows: Rows

    @property
    def cells(self) -> list[PageCell]:
        """Row by row."""
        return [cell for _, cells in self.rows for cell in cells if cell is not None]

    @property
    def seeds(self) -> str:
        """How many seeds most of its cells have: what need not be said in each."""
        counts = Counter(cell.written.seeds for cell in self.cells if cell.written.seeds)
        return counts.most_common(1)[0][0] if counts else ""

    @property
    def has_paper(self) -> bool:
        """Whether the paper prints any of its numbers."""
        return any(cell.printed is not None for cell in self.found.cells)


def tables(found: TargetFound) -> list[PageTable]:
    """The tables of a target."""
    return [
        PageTable(found=table, anchor=f"{anchor(found)}-{n}", rows=_rows(table, found.results))
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


def _cell(found: CellFound, written: CellWritten, results: Mapping[str, Result]) -> PageCell:
    behind = tuple(_behind(found, n, results) for n in range(len(found.cell.jobs)))
    return PageCell(found=found, written=written, behind=behind)


def _behind(found: CellFound, n: int, results: Mapping[str, Result]) -> Behind:
    job = found.cell.jobs[n]
    key = job.key
    result = results.get(key)
    value = number(found.values[n])
    return Behind(seed=job.seed, key=key, value=value, state=state(result), there=result is not None)


def state(result: Result | None) -> str:
    """What became of a piece of work, in a word."""
    if result is None:
        return "missing"
    if result.failed is not None:
        return "failed"
    return result.health if result.lost and result.health is not None else "done"


ORDER: tuple[VerdictWord, ...] = ("holds", "does not hold", "can't tell")
SIGNS = {"holds": "yes", "does not hold": "no", "can't tell": "open"}
"""The name of each verdict's sign, and of its color."""
MIDDLE = 120
"""Half the width of a bar, in half pixels."""
EDGE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An effect and its interval around zero, on the canvas of a bar."""

    low: int
    high: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageClaim:
    """A line of the overview."""

    found: ClaimFound
    anchor: str
    at: str
    """The anchor of its target."""
    target: str
    sign: str
    bar: Bar | None

    @property
    def effect(self) -> Effect | None:
        """Its size."""
        return self.found.effect

    @property
    def interval(self) -> str:
        """The effect with its interval, in words: +1.32 [+0.40, +2.21] points."""
        return with_minus_sign(effect_words(self.effect))

    @property
    def rank(self) -> int:
        """Where its verdict stands when they are sorted."""
        return ORDER.index(self.found.verdict)


def claims(found: Sequence[TargetFound]) -> list[PageClaim]:
    """The claims of some targets, their bars on one axis for each unit."""
    reach: dict[str, float] = {}
    for effect in (claim.effect for target in found for claim in target.claims):
        if effect is not None:
            reach[effect.unit] = max(reach.get(effect.unit, 0.0), *map(abs, (effect.low, effect.high, effect.size)))
    return [
        PageClaim(
            found=claim,
            anchor=f"{anchor(target)}-{claim.claim.name}",
            at=anchor(target),
            target=target.target.name,
            sign=SIGNS[claim.verdict],
            bar=None if claim.effect is None else bar(claim.effect, reach[claim.effect.unit]),
        )
        for target in found
        for claim in target.claims
    ]


def anchor(found: TargetFound) -> str:
    """Where a target stands on the page."""
    return f"{found.scale.name}-{found.target.name}"


def bar(effect: Effect, reach: float) -> Bar:
    """An effect on an axis that goes by square roots, so that small ones are seen beside large ones."""

    def place(value: float) -> int:
        share = copysign(sqrt(abs(value) / reach), value) if reach else 0.0
        return round(MIDDLE + share * (MIDDLE - EDGE))

    return Bar(low=place(effect.low), high=place(effect.high), size=place(effect.size))


def tally(shown: Iterable[PageClaim]) -> list[tuple[VerdictWord, str, int]]:
    """How many claims have each verdict: (word, sign, count)."""
    words = [claim.found.verdict for claim in shown]
    return [(word, SIGNS[word], words.count(word)) for word in ORDER]


MINUS = "−"
SMALLEST, LARGE = 0.005, 10_000
"""Between them, numbers are written with two decimals."""


def short(value: float) -> str:
    """A number at an axis: 0.5, 20, 5k, 1.5M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return with_minus_sign(f"{value / size:.4g}{letter}")
    return with_minus_sign(f"{value:.4g}")


def with_minus_sign(text: str) -> str:
    """With a minus sign in place of a hyphen."""
    return text.replace("-", MINUS)


def number(value: float | None) -> str:
    """A number in a table: two decimals as in the paper, none where it is large, two digits where it is tiny."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if 0 < size < SMALLEST:
        return with_minus_sign(f"{value:.2g}")
    return with_minus_sign(f"{value:,.{0 if size >= LARGE else 2}f}")


def duration(seconds: float) -> str:
    """A time: 0.4 s, 12 s, 3 min 20 s, 5 h 12 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def sentence(words: str) -> str:
    """With a capital at its beginning."""
    return words[:1].upper() + words[1:]


def count_noun(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 run, 2 runs."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
