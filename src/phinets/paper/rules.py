"""Claims of the paper, and the rules that decide from the numbers of a table whether they hold.

A rule compares names on one axis of a table (`along`) in the settings on the other axis (`at`; empty: all). Each effect
has a bootstrap interval. It resamples seeds, and settings too where a mean over them stands for settings like these.
Where a claim is about these very settings (the worst, the range, the peak), it resamples seeds only. With a single seed
in a cell only `AllHold` can decide.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

VerdictWord = Literal["holds", "does not hold", "can't tell"]
Place = tuple[str, str, str]
"""Table, row, column."""
Array = NDArray[np.float64]
Statistic = Callable[[Array, Array], Array]
"""From means (draws, names, settings) and weights of the settings (draws, settings) to effects (draws,)."""
DRAWS = 2_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measurements in the cells of a target's tables, by seed, in the order of the tables."""

    values: Mapping[Place, tuple[float | None, ...]]
    """None where a seed has no number: it failed, diverged, or is missing."""
    lost: Mapping[Place, tuple[bool | None, ...]]
    """Whether the seed collapsed or diverged; None where that is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The size of what a claim is about, with its uncertainty."""

    size: float
    """In the unit of the table; positive supports the claim."""
    low: float
    high: float
    """95 % bootstrap interval."""
    seeds: int
    """The fewest seeds of any cell behind it."""
    unit: str = "points"


class Rule(ABC):
    """Decides about a claim."""

    __slots__ = ()

    @abstractmethod
    def describe(self) -> str:
        """The rule in words, with its margin."""

    @abstractmethod
    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """The cells that it depends on, whether they have numbers or not."""

    @abstractmethod
    def effect(self, evidence: Evidence) -> Effect | None:
        """The measured effect; None where a cell has no number at all."""

    @abstractmethod
    def verdict(self, effect: Effect) -> VerdictWord:
        """What follows from the effect and its interval."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper that can be checked."""

    name: str
    where: str
    """The place in the paper."""
    says: str
    """In short, in our words."""
    rule: Rule
    quote: str = ""
    """The paper's sentence, without its LaTeX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRule(Rule):
    """A rule that compares names on one axis of a table in the settings on its other axis."""

    unit: ClassVar[str] = "points"
    min_settings: ClassVar[int] = 1
    """With fewer settings there is no effect."""

    table: str
    along: Literal["rows", "columns"] = "rows"
    """The axis that the names are on."""
    at: tuple[str, ...] = ()
    """The settings, in their order; empty: all in which every name has a cell."""
    margin: float = 0.0
    """The effect must exceed it."""

    @property
    @abstractmethod
    def compared(self) -> tuple[str, ...]:
        """The names, in the order of the cells."""

    @abstractmethod
    def statistic(self, means: Array, weights: Array) -> Array:
        """The effects (draws,) from means (draws, names, settings) and weights of the settings (draws, settings)."""

    @property
    def resamples_settings(self) -> bool:
        """Whether the bootstrap draws settings too."""
        return True

    def settings(self, evidence: Evidence) -> tuple[str, ...]:
        """Where the names are compared."""
        if self.at:
            return self.at
        here = [(row, column) for table, row, column in evidence.values if table == self.table]
        others = dict.fromkeys(column if self.along == "rows" else row for row, column in here)
        return tuple(s for s in others if all(self._place(name, s) in evidence.values for name in self.compared))

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """Every name in every setting."""
        settings = self.settings(evidence)
        return tuple(self._place(name, setting) for name in self.compared for setting in settings)

    def effect(self, evidence: Evidence) -> Effect | None:
        """By the statistic of the cells' means; None where a cell has no number."""
        cells = self._cells(evidence)
        if cells is None or cells.shape[1] < self.min_settings:
            return None
        return bootstrap(cells, self.statistic, self.unit, resample_settings=self.resamples_settings)

    def verdict(self, effect: Effect) -> VerdictWord:
        """Holds where the whole interval is above the margin, does not hold where it is below; never by one seed."""
        if effect.seeds < 2 or effect.low <= self.margin <= effect.high:
            return "can't tell"
        return "holds" if effect.low > self.margin else "does not hold"

    def _place(self, name: str, setting: str) -> Place:
        return (self.table, name, setting) if self.along == "rows" else (self.table, setting, name)

    def _seeds(self, evidence: Evidence) -> Mapping[Place, tuple[float | bool | None, ...]]:
        return evidence.values

    def _cells(self, evidence: Evidence) -> Array | None:
        """(names, settings, seeds), NaN where a seed has no number; None where a whole cell has none."""
        by_place = self._seeds(evidence)
        rows = [by_place.get(place, ()) for place in self.places(evidence)]
        seeds = max(map(len, rows), default=0)
        cells = np.array([[*row, *[None] * (seeds - len(row))] for row in rows], dtype=float)
        if not rows or np.isnan(cells).all(axis=1).any():
            return None
        return cells.reshape(len(self.compared), -1, seeds)


def bootstrap(cells: Array, statistic: Statistic, unit: str, *, resample_settings: bool) -> Effect:
    """The effect in cells (names, settings, seeds), and its percentile bootstrap interval.

    A draw takes as many seeds as there are, with replacement, the same ones in every cell, so that differences stay
    paired. With `resample_settings` it draws settings likewise (Owen's pigeonhole bootstrap). NaN is no number. A cell
    none of whose seeds is drawn keeps its own mean. The generator is always the same, so the same cells give the same
    interval.

    Few seeds say little: with two or three in one setting the interval reaches from the least difference to the
    largest, since 1/27 of all draws takes one of three seeds thrice. By chance alone it is on one side of 0 once in
    four times.
    """
    _, settings, seeds = cells.shape
    random = np.random.default_rng(0)
    seed_weights, setting_weights = _draw_weights(random, seeds), np.ones((DRAWS, settings))
    if resample_settings:
        setting_weights = _draw_weights(random, settings)
    size = statistic(_cell_means(cells, np.ones((1, seeds))), np.ones((1, settings)))
    outcomes = statistic(_cell_means(cells, seed_weights), setting_weights)
    low, high = np.nanquantile(outcomes, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    fewest = int((~np.isnan(cells)).sum(axis=-1).min())
    return Effect(size=float(size[0]), low=float(low), high=float(high), seeds=fewest, unit=unit)


def _draw_weights(random: np.random.Generator, n: int) -> Array:
    """How often each of n is drawn, in n draws with replacement: (draws, n)."""
    return random.multinomial(n, np.full(n, 1 / n), size=DRAWS).astype(float)


def _cell_means(cells: Array, weights: Array) -> Array:
    """The mean of each cell (draws, names, settings) with its seeds weighted (draws, seeds)."""
    present = ~np.isnan(cells)
    total = np.einsum("dk,nsk->dns", weights, np.where(present, cells, 0.0))
    count = np.einsum("dk,nsk->dns", weights, present.astype(float))
    own: Array = np.nanmean(cells, axis=-1)
    return np.where(count > 0, total / np.where(count > 0, count, 1.0), own)


def weighted_mean(by_setting: Array, weights: Array) -> Array:
    """The mean over the settings: (draws, settings) → (draws,)."""
    return np.asarray((by_setting * weights).sum(axis=1) / weights.sum(axis=1))


def difference(means: Array, weights: Array) -> Array:
    """First name − second, on average over the settings."""
    return weighted_mean(means[:, 0] - means[:, 1], weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Higher(TableRule):
    """Some are higher than others: mean of `over` − best of `under`, over the settings or in the worst of them.

    The best of `under` is chosen in each setting. Where lower is better, all signs turn.
    """

    over: tuple[str, ...]
    under: tuple[str, ...]
    by: Literal["mean", "worst"] = "mean"
    better: Literal["higher", "lower"] = "higher"

    @property
    def compared(self) -> tuple[str, ...]:
        return self.over + self.under

    @property
    def resamples_settings(self) -> bool:
        return self.by == "mean"

    def describe(self) -> str:
        best = " (the best of them)" if len(self.under) > 1 else ""
        where = "on average over the settings" if self.by == "mean" else "in the setting that speaks least for it"
        compared = f"{' and '.join(self.over)} {self.better} than {_join_or(self.under)}"
        return f"{compared}{best} {where}{_margin_words(self.margin)}"

    def statistic(self, means: Array, weights: Array) -> Array:
        """Positive where `over` is better."""
        means = means if self.better == "higher" else -means
        lead = means[:, : len(self.over)].mean(axis=1) - means[:, len(self.over) :].max(axis=1)
        return weighted_mean(lead, weights) if self.by == "mean" else np.asarray(lead.min(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable(TableRule):
    """Two are about the same: one − other, on average over the settings, is within ± `within`."""

    one: str
    other: str
    within: float

    @property
    def compared(self) -> tuple[str, ...]:
        return self.one, self.other

    def describe(self) -> str:
        return f"{self.one} and {self.other} differ by less than {self.within:g} on average over the settings"

    def statistic(self, means: Array, weights: Array) -> Array:
        return difference(means, weights)

    def verdict(self, effect: Effect) -> VerdictWord:
        """Holds where the interval lies inside ± within, does not hold where it lies outside."""
        if effect.seeds < 2:
            return "can't tell"
        if -self.within < effect.low and effect.high < self.within:
            return "holds"
        return "does not hold" if effect.low > self.within or effect.high < -self.within else "can't tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(TableRule):
    """One is lower than another by at least `by`: (other − name) − by, on average over the settings."""

    name: str
    other: str
    by: float

    @property
    def compared(self) -> tuple[str, ...]:
        return self.other, self.name

    def describe(self) -> str:
        return f"{self.name} lower than {self.other} by at least {self.by:g} on average over the settings"

    def statistic(self, means: Array, weights: Array) -> Array:
        """How much more than `by` it is lower."""
        return difference(means, weights) - self.by


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadier(TableRule):
    """One changes less over the settings: smallest range of the others − its own range (largest mean − smallest)."""

    one: str
    other: tuple[str, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.one, *self.other

    @property
    def resamples_settings(self) -> bool:
        return False

    def describe(self) -> str:
        others = _join_or(self.other)
        return f"{self.one} has a smaller range over the settings than {others}{_margin_words(self.margin)}"

    def statistic(self, means: Array, weights: Array) -> Array:
        """Positive where it is steadier than the steadiest of the others."""
        ranges = np.ptp(means, axis=2)
        return np.asarray(ranges[:, 1:].min(axis=1) - ranges[:, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(TableRule):
    """A number rises (or falls) along the settings in their order: least-squares slope per setting.

    A draw of a single setting has no slope and does not count.
    """

    unit: ClassVar[str] = "points a setting"
    min_settings: ClassVar[int] = 2

    name: str
    rises: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.name,)

    def describe(self) -> str:
        return f"{self.name} {'rises' if self.rises else 'falls'} along the settings (least-squares slope per setting)"

    def statistic(self, means: Array, weights: Array) -> Array:
        """Positive in the direction that is claimed."""
        along = np.arange(weights.shape[1], dtype=float)[None]
        x, y = (value - weighted_mean(value, weights)[:, None] for value in (along, means[:, 0]))
        spread = (weights * x**2).sum(axis=1)
        slope = np.where(spread > 0, (weights * x * y).sum(axis=1) / np.where(spread > 0, spread, 1.0), np.nan)
        return slope if self.rises else -slope


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks(TableRule):
    """A number is best in the middle: best of the inner settings − better of the two ends."""

    min_settings: ClassVar[int] = 3

    name: str

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def resamples_settings(self) -> bool:
        return False

    def describe(self) -> str:
        return f"{self.name} is higher in some inner setting than at both ends"

    def statistic(self, means: Array, weights: Array) -> Array:
        return np.asarray(means[:, 0, 1:-1].max(axis=1) - means[:, 0, [0, -1]].max(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse(TableRule):
    """Most seeds collapse or diverge (or do not): their share over all cells − ½."""

    unit: ClassVar[str] = "of the seeds beyond half"

    names: tuple[str, ...]
    lost: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return self.names

    def describe(self) -> str:
        return f"more than half of the seeds of {_join_or(self.names)} {'collapse' if self.lost else 'do not collapse'}"

    def statistic(self, means: Array, weights: Array) -> Array:
        beyond_half = weighted_mean(means.mean(axis=1), weights) - 0.5
        return beyond_half if self.lost else -beyond_half

    def _seeds(self, evidence: Evidence) -> Mapping[Place, tuple[float | bool | None, ...]]:
        return evidence.lost


@dataclass(frozen=True, slots=True, kw_only=True)
class AllHold(Rule):
    """Statements that were checked one by one: cells are 1 (holds) or 0. All must hold. Needs no seeds."""

    table: str
    rows: tuple[str, ...]
    column: str

    def describe(self) -> str:
        return f"every statement holds ({self.column})"

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        return tuple((self.table, row, self.column) for row in self.rows)

    def effect(self, evidence: Evidence) -> Effect | None:
        """The share of the statements that hold."""
        cells = [evidence.values.get(place, ()) for place in self.places(evidence)]
        if not cells or any(not cell or None in cell for cell in cells):
            return None
        share = sum(all(value == 1 for value in cell) for cell in cells) / len(cells)
        return Effect(size=share, low=share, high=share, seeds=min(map(len, cells)), unit="of the statements")

    def verdict(self, effect: Effect) -> VerdictWord:
        return "holds" if effect.size == 1 else "does not hold"


def _join_or(names: tuple[str, ...]) -> str:
    """A, B or C."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _margin_words(margin: float) -> str:
    return f" by more than {margin:g}" if margin else ""
