"""Rules: how a claim is decided from the numbers of a table.

The names that a rule compares are on one axis of the table (`along`), the settings in which it does so on the other
(`at`; empty: all that the table has of them). Each effect comes with an interval (`paper/bootstrap.py`), for which
seeds are drawn, and settings too where a mean over them stands for settings like these. Where a claim is about these
very settings (the worst, the range, the peak), only seeds are. With a single seed in a cell only `Stated` can tell.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from phinets.paper.bootstrap import Array, estimated
from phinets.paper.claims import Effect, Evidence, Place, VerdictWord
from phinets.paper.comparing import OnATable, above, by_more_than, difference, listed, over_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Higher(OnATable):
    """Some are higher than others: mean of `over` − best of `under`, over the settings or in the worst of them.

    The best of `under` is sought in each setting anew. Where lower is better, all signs turn.
    """

    over: tuple[str, ...]
    under: tuple[str, ...]
    margin: float = 0.0
    by: Literal["mean", "worst"] = "mean"
    better: Literal["higher", "lower"] = "higher"

    @property
    def compared(self) -> tuple[str, ...]:
        """Both sides."""
        return self.over + self.under

    def describe(self) -> str:
        """In words."""
        best = " (the best of them)" if len(self.under) > 1 else ""
        where = "on average over the settings" if self.by == "mean" else "in the setting that speaks least for it"
        compared = f"{' and '.join(self.over)} {self.better} than {listed(self.under)}"
        return f"{compared}{best} {where}{by_more_than(self.margin)}"

    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where `over` is better."""
        sign, first = (1.0 if self.better == "higher" else -1.0), len(self.over)

        def statistic(means: Array, drawn: Array) -> Array:
            ahead = (sign * means[:, :first]).mean(axis=1) - (sign * means[:, first:]).max(axis=1)
            return over_settings(ahead, drawn) if self.by == "mean" else np.asarray(ahead.min(axis=1))

        return self.estimated(evidence, statistic, settings_too=self.by == "mean")

    def verdict(self, effect: Effect) -> VerdictWord:
        """By the side of the margin that the whole interval is on."""
        return above(effect, self.margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable(OnATable):
    """Two are about the same: one − other, on average over the settings, is within ± `within`."""

    one: str
    other: str
    within: float

    @property
    def compared(self) -> tuple[str, ...]:
        """Both."""
        return self.one, self.other

    def describe(self) -> str:
        """In words."""
        return f"{self.one} and {self.other} differ by less than {self.within:g} on average over the settings"

    def effect(self, evidence: Evidence) -> Effect | None:
        """The difference."""
        return self.estimated(evidence, difference, settings_too=True)

    def verdict(self, effect: Effect) -> VerdictWord:
        """Holds where the interval lies inside ± within, does not hold where it lies outside altogether."""
        if effect.seeds < 2:
            return "can't tell"
        if -self.within < effect.low and effect.high < self.within:
            return "holds"
        return "does not hold" if effect.low > self.within or effect.high < -self.within else "can't tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(OnATable):
    """One falls behind another by at least `by`: (other − name) − by, on average over the settings."""

    name: str
    other: str
    by: float

    @property
    def compared(self) -> tuple[str, ...]:
        """The other, and the one that falls."""
        return self.other, self.name

    def describe(self) -> str:
        """In words."""
        return f"{self.name} lower than {self.other} by at least {self.by:g} on average over the settings"

    def effect(self, evidence: Evidence) -> Effect | None:
        """How much more than `by` it falls."""
        return self.estimated(evidence, lambda means, drawn: difference(means, drawn) - self.by, settings_too=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadier(OnATable):
    """One changes less over the settings: smallest range of the others − its own range (largest mean − smallest)."""

    one: str
    other: tuple[str, ...]
    margin: float = 0.0

    @property
    def compared(self) -> tuple[str, ...]:
        """The one, and the others."""
        return self.one, *self.other

    def describe(self) -> str:
        """In words."""
        return f"{self.one} has a smaller range over the settings than {listed(self.other)}{by_more_than(self.margin)}"

    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where it is steadier than the steadiest of the others."""

        def statistic(means: Array, drawn: Array) -> Array:
            ranges = np.ptp(means, axis=2)
            return np.asarray(ranges[:, 1:].min(axis=1) - ranges[:, 0])

        return self.estimated(evidence, statistic, settings_too=False)

    def verdict(self, effect: Effect) -> VerdictWord:
        """By the side of the margin that the whole interval is on."""
        return above(effect, self.margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(OnATable):
    """A number rises (or falls) along the settings in their order: least-squares slope per setting.

    A draw of a single setting has no slope and is not counted.
    """

    name: str
    rises: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        """The one."""
        return (self.name,)

    def describe(self) -> str:
        """In words."""
        return f"{self.name} {'rises' if self.rises else 'falls'} along the settings (least-squares slope per setting)"

    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where it goes the way that is claimed; None with fewer than two settings."""
        if len(self.settings(evidence)) < 2:
            return None

        def statistic(means: Array, drawn: Array) -> Array:
            along = np.arange(drawn.shape[1], dtype=float)[None]
            x, y = (value - over_settings(value, drawn)[:, None] for value in (along, means[:, 0]))
            spread = (drawn * x**2).sum(axis=1)
            slope = np.where(spread > 0, (drawn * x * y).sum(axis=1) / np.where(spread > 0, spread, 1.0), np.nan)
            return slope if self.rises else -slope

        return self.estimated(evidence, statistic, "points a setting", settings_too=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks(OnATable):
    """A number is best in the middle: best of the inner settings − better of the two ends."""

    name: str

    @property
    def compared(self) -> tuple[str, ...]:
        """The one."""
        return (self.name,)

    def describe(self) -> str:
        """In words."""
        return f"{self.name} is higher in some inner setting than at both ends"

    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where the middle is higher; None with fewer than three settings."""
        if len(self.settings(evidence)) < 3:
            return None

        def statistic(means: Array, drawn: Array) -> Array:
            return np.asarray(means[:, 0, 1:-1].max(axis=1) - means[:, 0, [0, -1]].max(axis=1))

        return self.estimated(evidence, statistic, settings_too=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(OnATable):
    """Most seeds collapse or diverge (or do not): their share over all cells − ½."""

    names: tuple[str, ...]
    lost: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        """All of them."""
        return self.names

    def describe(self) -> str:
        """In words."""
        return f"more than half of the seeds of {listed(self.names)} {'collapse' if self.lost else 'do not collapse'}"

    def effect(self, evidence: Evidence) -> Effect | None:
        """In shares of the seeds beyond half."""
        cells = self.cells(evidence, evidence.lost)
        if cells is None:
            return None
        sign = 1.0 if self.lost else -1.0

        def statistic(means: Array, drawn: Array) -> Array:
            return sign * (over_settings(means.mean(axis=1), drawn) - 0.5)

        return estimated(cells, statistic, "of the seeds beyond half", settings_too=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Statements that were checked one by one: cells are 1 (holds) or 0. All must hold. Needs no seeds."""

    table: str
    rows: tuple[str, ...]
    column: str

    def describe(self) -> str:
        """In words."""
        return f"every statement holds ({self.column})"

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """A cell for each statement."""
        return tuple((self.table, row, self.column) for row in self.rows)

    def effect(self, evidence: Evidence) -> Effect | None:
        """The share of the statements that hold."""
        cells = [evidence.values.get(place, ()) for place in self.places(evidence)]
        if not cells or any(not cell or None in cell for cell in cells):
            return None
        share = sum(all(value == 1 for value in cell) for cell in cells) / len(cells)
        return Effect(size=share, low=share, high=share, seeds=min(map(len, cells)), unit="of the statements")

    def verdict(self, effect: Effect) -> VerdictWord:
        """Holds where all do."""
        return "holds" if effect.size == 1 else "does not hold"
