"""Tables and claims of the page, and how it writes numbers.

A cell has our value above the paper's, and the runs behind it; a claim has a verdict and its effect as a bar.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from phinets.config.jobs import Result
from phinets.paper.findings import ClaimResult, TableResult, TargetResult
from phinets.paper.rules import VerdictWord
from phinets.paper.statistics import Effect
from phinets.reports.paper_tables import CellText, Line, effect_words, lines, second_readout, shown_tables


class PageTable(NamedTuple):
    """A table, its rows in the paper's order."""

    result: TableResult
    anchor: str
    rows: tuple[Line, ...]

    @property
    def second_readout(self) -> str | None:
        """The readout by which it repeats the table before it, if it does."""
        return second_readout(self.result)

    @property
    def cells(self) -> list[CellText]:
        """Row by row, with the baselines."""
        return [cell for row in self.rows for cell in row.cells if cell is not None]

    @property
    def run_cells(self) -> list[CellText]:
        """Row by row, without the baselines."""
        return [cell for row in self.rows for cell in row.cells if cell is not None and not row.baseline]

    @property
    def seeds(self) -> str:
        """How many seeds most of its cells have: what need not be said in each."""
        counts = Counter(cell.seeds for cell in self.cells if cell.seeds)
        return counts.most_common(1)[0][0] if counts else ""


def tables(result: TargetResult) -> list[PageTable]:
    """The tables of a target."""
    return [PageTable(table, f"{anchor(result)}-{n}", lines(table)) for n, table in enumerate(shown_tables(result), 1)]


def seed_runs(cell: CellText, results: Mapping[str, Result]) -> list[tuple[int, str, str, str]]:
    """(seed, key, value, state) of each run behind a cell."""
    runs = zip(cell.result.cell.jobs, cell.keys, cell.result.values, strict=True)
    return [(job.seed, key, number(value), state(results.get(key))) for job, key, value in runs]


def state(result: Result | None) -> str:
    """The state of a job, in a word."""
    if result is None:
        return "missing"
    if result.failed is not None:
        return "failed"
    return result.health if result.lost and result.health is not None else "done"


SIGNS: Mapping[VerdictWord, str] = {
    "holds": "yes", "does not hold": "no", "can't tell": "open", "uninformative": "unlearned",
}  # fmt: skip
"""The name of each verdict's sign, and of its color."""
MIDDLE = 120
"""Half the width of a bar, in half pixels."""
EDGE = 8


class Bar(NamedTuple):
    """An effect and its interval around zero, on the canvas of a bar."""

    low: int
    high: int
    size: int


class PageClaim(NamedTuple):
    """A line of the overview."""

    result: ClaimResult
    anchor: str
    at: str
    """The anchor of its target."""
    target: str
    bar: Bar | None

    @property
    def sign(self) -> str:
        """The name of its verdict's sign."""
        return SIGNS[self.result.verdict]

    @property
    def rank(self) -> int:
        """The place of its verdict among all."""
        return list(SIGNS).index(self.result.verdict)

    @property
    def second_sign(self) -> str:
        """The name of the sign of its verdict by the other readout; empty where there is none."""
        return "" if self.result.second is None else SIGNS[self.result.second.verdict]


def claims(results: Sequence[TargetResult]) -> list[PageClaim]:
    """The claims of some targets, their bars on one axis for each unit."""
    reach: dict[str, float] = {}
    for effect in (claim.effect for target in results for claim in target.claims):
        if effect is not None:
            reach[effect.unit] = max(reach.get(effect.unit, 0.0), *map(abs, (effect.low, effect.high, effect.size)))
    return [
        PageClaim(
            result=claim,
            anchor=f"{anchor(target)}-{claim.claim.name}",
            at=anchor(target),
            target=target.target.name,
            bar=None if claim.effect is None else bar(claim.effect, reach[claim.effect.unit]),
        )
        for target in results
        for claim in target.claims
    ]


def anchor(result: TargetResult) -> str:
    """Where a target stands on the page."""
    return f"{result.scale.name}-{result.target.name}"


def interval(effect: Effect | None) -> str:
    """An effect with its interval, in words: +1.32 [+0.40, +2.21] points."""
    return with_minus_sign(effect_words(effect))


def bar(effect: Effect, reach: float) -> Bar:
    """An effect on an axis that goes by square roots, so that small ones are seen beside large ones."""

    def place(value: float) -> int:
        share = math.copysign(math.sqrt(abs(value) / reach), value) if reach else 0.0
        return round(MIDDLE + share * (MIDDLE - EDGE))

    return Bar(*map(place, (effect.low, effect.high, effect.size)))


def tally(claims: Iterable[PageClaim]) -> list[tuple[VerdictWord, str, int]]:
    """How many claims have each verdict: (word, sign, count)."""
    words = [claim.result.verdict for claim in claims]
    return [(word, sign, words.count(word)) for word, sign in SIGNS.items()]


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
    return text.replace("-", "−")


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
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def count_noun(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun: 1 run, 2 runs."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
