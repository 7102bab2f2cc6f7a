"""Rules: how a claim is decided from the numbers of a table.

The names that a rule compares are on one axis of the table (`along`), the settings in which it does so on the other
(`at`; empty: all that the table has of them). Intervals: `paper/bootstrap.py`. With a single seed in a cell nothing but
`Stated` can tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phinets.paper.bootstrap import Array, Statistic, estimated
from phinets.paper.claims import Effect, Evidence, Place, VerdictWord

Axis = Literal["rows", "columns"]
Better = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnATable:
    """What the rules have in common: where they look, and what follows from an interval."""

    table: str
    along: Axis = "rows"
    at: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[str, ...]:
        """What is compared."""
        raise NotImplementedError

    def settings(self, evidence: Evidence) -> tuple[str, ...]:
        """Where it is compared: `at`, or every setting in which all the names have a cell."""
        if self.at:
            return self.at
        here = [(row, column) for table, row, column in evidence.values if table == self.table]
        others = dict.fromkeys(column if self.along == "rows" else row for row, column in here)
        return tuple(s for s in others if all(self._place(name, s) in evidence.values for name in self.compared))

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """Every name in every setting."""
        settings = self.settings(evidence)
        return tuple(self._place(name, setting) for name in self.compared for setting in settings)

    def verdict(self, effect: Effect) -> VerdictWord:
        """By which side of the margin the whole interval is on."""
        return above(effect, getattr(self, "margin", 0.0))

    def _place(self, name: str, setting: str) -> Place:
        return (self.table, name, setting) if self.along == "rows" else (self.table, setting, name)

    def _estimated(
        self, evidence: Evidence, statistic: Statistic, unit: str = "points", *, settings_too: bool
    ) -> Effect | None:
        """The effect by a statistic of the cells' means; None where a cell has no number."""
        cells = self._cells(evidence, evidence.values)
        return None if cells is None else estimated(cells, statistic, unit, settings_too=settings_too)

    def _cells(self, evidence: Evidence, found: Mapping[Place, tuple[float | bool | None, ...]]) -> Array | None:
        """(names, settings, seeds), NaN where a seed has no number; None where a whole cell has none."""
        rows = [found.get(place, ()) for place in self.places(evidence)]
        if not rows or any(all(value is None for value in row) for row in rows):
            return None
        seeds = max(map(len, rows))
        filled = [
            [np.nan if value is None else float(value) for value in (*row, *[None] * seeds)[:seeds]] for row in rows
        ]
        return np.array(filled).reshape(len(self.compared), -1, seeds)


def above(effect: Effect, margin: float) -> VerdictWord:
    """Holds where the whole interval is above the margin, does not hold where it is below."""
    if effect.seeds < 2 or effect.low <= margin <= effect.high:
        return "can't tell"
    return "holds" if effect.low > margin else "does not hold"


def over_settings(by_setting: Array, drawn: Array) -> Array:
    """The mean over the settings as often as they are drawn: (draws, settings) → (draws,)."""
    return np.asarray((by_setting * drawn).sum(axis=1) / drawn.sum(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Higher(_OnATable):
    """Some are higher than others: mean of `over` − best of `under`, over the settings or in the worst of them.

    The best of `under` is sought in each setting anew. Where lower is better, all signs turn. The worst setting is one
    of those that the claim is about: then settings are not drawn.
    """

    over: tuple[str, ...]
    under: tuple[str, ...]
    margin: float = 0.0
    by: Literal["mean", "worst"] = "mean"
    better: Better = "higher"

    @property
    def compared(self) -> tuple[str, ...]:
        """Both sides."""
        return self.over + self.under

    def describe(self) -> str:
        """In words."""
        best = "best" if len(self.under) > 1 else "one"
        where = "on average over the settings" if self.by == "mean" else "in the setting that speaks least for it"
        return (
            f"{_listed(self.over)} {self.better} than {_listed(self.under)}"
            f"{' (the best of them)' * (best == 'best')} {where}, by more than {self.margin:g}"
        )

    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where `over` is better."""
        sign, first = (1.0 if self.better == "higher" else -1.0), len(self.over)

        def statistic(means: Array, drawn: Array) -> Array:
            ahead = (sign * means[:, :first]).mean(axis=1) - (sign * means[:, first:]).max(axis=1)
            return over_settings(ahead, drawn) if self.by == "mean" else np.asarray(ahead.min(axis=1))

        return self._estimated(evidence, statistic, settings_too=self.by == "mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable(_OnATable):
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
        return self._estimated(evidence, _difference, settings_too=True)

    def verdict(self, effect: Effect) -> VerdictWord:
        """Holds where the interval lies inside ± within, does not hold where it lies outside altogether."""
        if effect.seeds < 2:
            return "can't tell"
        if -self.within < effect.low and effect.high < self.within:
            return "holds"
        return "does not hold" if effect.low > self.within or effect.high < -self.within else "can't tell"


def _difference(means: Array, drawn: Array) -> Array:
    """First name − second, over the settings."""
    return over_settings(means[:, 0] - means[:, 1], drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(_OnATable):
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
        return self._estimated(evidence, lambda means, drawn: _difference(means, drawn) - self.by, settings_too=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadier(_OnATable):
    """One changes less over the settings: smallest range of the others − its own range (largest mean − smallest).

    The settings are those that the claim is about: they are not drawn.
    """

    one: str
    other: tuple[str, ...]
    margin: float = 0.0

    @property
    def compared(self) -> tuple[str, ...]:
        """The one, and the others."""
        return self.one, *self.other

    def describe(self) -> str:
        """In words."""
        return (
            f"{self.one} has a smaller range over the settings than {_listed(self.other)}, by more than {self.margin:g}"
        )

    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where it is steadier than the steadiest of the others."""

        def statistic(means: Array, drawn: Array) -> Array:
            ranges = np.ptp(means, axis=2)
            return np.asarray(ranges[:, 1:].min(axis=1) - ranges[:, 0])

        return self._estimated(evidence, statistic, settings_too=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(_OnATable):
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

        return self._estimated(evidence, statistic, "points a setting", settings_too=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks(_OnATable):
    """A number is best in the middle: best of the inner settings − better of the two ends. Settings are not drawn."""

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

        return self._estimated(evidence, statistic, settings_too=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(_OnATable):
    """Most seeds collapse or diverge (or do not): their share over all cells − ½."""

    names: tuple[str, ...]
    lost: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        """All of them."""
        return self.names

    def describe(self) -> str:
        """In words."""
        return f"more than half of the seeds of {_listed(self.names)} {'collapse' if self.lost else 'do not collapse'}"

    def effect(self, evidence: Evidence) -> Effect | None:
        """In shares of the seeds."""
        cells = self._cells(evidence, evidence.lost)
        if cells is None:
            return None
        sign = 1.0 if self.lost else -1.0

        def statistic(means: Array, drawn: Array) -> Array:
            return sign * (over_settings(means.mean(axis=1), drawn) - 0.5)

        return estimated(cells, statistic, "of the seeds", settings_too=True)


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


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
