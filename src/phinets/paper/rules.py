"""Claims of the paper, and the rules that test them on the cells of a table.

A rule compares names on one axis of a table (`along`) in the settings on the other axis (`at`; empty: all). It turns
the cells into contrasts by seed, which `phinets.paper.statistics` tests.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from phinets.paper.statistics import Array, Effect, binomial_effect, spearman, t_effect, t_interval

VerdictWord = Literal["holds", "does not hold", "can't tell", "uninformative"]
Place = tuple[str, str, str]
"""Table, row, column."""
Seeds = tuple[float | None, ...]
"""A number for each seed; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measurements in the cells of a target's tables, by seed, in the order of the tables."""

    values: Mapping[Place, Seeds]
    """None where a seed failed or is missing. A collapsed or diverged seed has the score of chance."""
    lost: Mapping[Place, tuple[bool | None, ...]] = field(default_factory=dict)
    """Whether the seed collapsed or diverged; None where that is unknown."""
    gains: Mapping[Place, Seeds] = field(default_factory=dict)
    """Accuracy of the run less that of its untrained encoder, in points."""


class Rule(ABC):
    """Tests a claim."""

    __slots__ = ()

    needs_learning: ClassVar[bool] = True
    """Whether runs that learned nothing say nothing about the claim."""

    @abstractmethod
    def describe(self) -> str:
        """The rule in words, with its margin."""

    @abstractmethod
    def settings_cells(self, evidence: Evidence) -> tuple[tuple[Place, ...], ...]:
        """The cells that it depends on, whether they have numbers or not, those of each setting together."""

    @abstractmethod
    def effect(self, evidence: Evidence) -> Effect | None:
        """The measured effect; None where no seed has a number in every cell."""

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """All cells that it depends on."""
        return tuple(place for cells in self.settings_cells(evidence) for place in cells)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper that can be tested."""

    name: str
    where: str
    """The place in the paper: a section, or the caption of a table or figure."""
    quote: str
    """The paper's own sentence, without its LaTeX."""
    tests: str
    """What the rule tests, in our words."""
    rule: Rule


def complete_seeds(evidence: Evidence, places: tuple[Place, ...]) -> Array:
    """(places, seeds) of the seeds that have a number in every place."""
    rows = [evidence.values.get(place, ()) for place in places]
    seeds = min(map(len, rows), default=0)
    cells = np.array([row[:seeds] for row in rows], dtype=float).reshape(len(rows), seeds)
    return np.asarray(cells[:, ~np.isnan(cells).any(axis=0)])


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
    """The settings, in their order, of which those count that the scale runs; empty: all."""
    margin: float = 0.0
    """Every contrast must exceed it."""

    @property
    @abstractmethod
    def compared(self) -> tuple[str, ...]:
        """The names, in the order of the cells."""

    @abstractmethod
    def contrasts(self, cells: Array) -> Array:
        """(groups, contrasts, seeds) from cells (names, settings, seeds)."""

    def settings(self, evidence: Evidence) -> tuple[str, ...]:
        """Where the names are compared: the settings in which every name has a cell."""
        here = [(row, column) for table, row, column in evidence.values if table == self.table]
        others = self.at or dict.fromkeys(column if self.along == "rows" else row for row, column in here)
        return tuple(s for s in others if all(self._place(name, s) in evidence.values for name in self.compared))

    def settings_cells(self, evidence: Evidence) -> tuple[tuple[Place, ...], ...]:
        """Every name, setting by setting."""
        return tuple(tuple(self._place(name, s) for name in self.compared) for s in self.settings(evidence))

    def effect(self, evidence: Evidence) -> Effect | None:
        cells = self._cells(evidence)
        return None if cells is None else t_effect(self.contrasts(cells), self.unit, self.margin)

    def _place(self, name: str, setting: str) -> Place:
        return (self.table, name, setting) if self.along == "rows" else (self.table, setting, name)

    def _cells(self, evidence: Evidence) -> Array | None:
        """(names, settings, seeds); None where there are too few settings or no seed is complete."""
        settings = self.settings(evidence)
        places = tuple(self._place(name, setting) for name in self.compared for setting in settings)
        cells = complete_seeds(evidence, places)
        if len(settings) < self.min_settings or cells.size == 0:
            return None
        return cells.reshape(len(self.compared), len(settings), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Higher(TableRule):
    """Each of `over` is higher than each of `under`, on average over the settings or in every one of them.

    Where lower is better, all signs turn. With a factor, `over` is compared with that multiple of `under`.
    """

    over: tuple[str, ...]
    under: tuple[str, ...]
    by: Literal["mean", "every"] = "mean"
    better: Literal["higher", "lower"] = "higher"
    factor: float = 1.0

    @property
    def compared(self) -> tuple[str, ...]:
        return self.over + self.under

    def describe(self) -> str:
        where = "on average over the settings" if self.by == "mean" else "in every setting"
        times = f"{self.factor:g} times " if self.factor != 1 else ""
        each = " (each)" if len(self.compared) > 2 else ""
        margin = f" by more than {self.margin:g}" if self.margin else ""
        return f"{_join(self.over)} {self.better} than {times}{_join(self.under)}{each} {where}{margin}"

    def contrasts(self, cells: Array) -> Array:
        """A contrast for every pair, and for every setting where each counts; positive where `over` is better."""
        sign = 1.0 if self.better == "higher" else -1.0
        over, under = cells[: len(self.over)], cells[len(self.over) :]
        lead = sign * (over[:, None] - self.factor * under[None])
        lead = lead.mean(axis=2, keepdims=True) if self.by == "mean" else lead
        return lead.reshape(1, -1, cells.shape[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable(TableRule):
    """Two are about the same: their difference on average over the settings is within ± `within`."""

    one: str
    other: str
    within: float

    @property
    def compared(self) -> tuple[str, ...]:
        return self.one, self.other

    def describe(self) -> str:
        return f"{self.one} and {self.other} differ by less than {self.within:g} on average over the settings"

    def contrasts(self, cells: Array) -> Array:
        """Distances of the difference from both borders: two one-sided tests."""
        difference = (cells[0] - cells[1]).mean(axis=0)
        return np.stack((self.within - difference, self.within + difference))[None]

    def effect(self, evidence: Evidence) -> Effect | None:
        """With the difference itself as size. Only one border can be crossed, so failing needs no correction."""
        tested, cells = TableRule.effect(self, evidence), self._cells(evidence)
        if tested is None or cells is None:
            return None
        difference = (cells[0] - cells[1]).mean(axis=0)
        low, high = t_interval(difference)
        return replace(tested, size=float(difference.mean()), low=low, high=high, p_fails=tested.p_fails / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadier(TableRule):
    """One changes less over the settings than each of the others: their range by seed − its own."""

    min_settings: ClassVar[int] = 2

    one: str
    other: tuple[str, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        return self.one, *self.other

    def describe(self) -> str:
        each = " (each)" if len(self.other) > 1 else ""
        return f"{self.one} has a smaller range over the settings than {_join(self.other)}{each}"

    def contrasts(self, cells: Array) -> Array:
        ranges = np.ptp(cells, axis=1)
        return np.asarray((ranges[1:] - ranges[:1])[None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsteady(TableRule):
    """One changes more from setting to setting here (`at`) than elsewhere (`than`): mean step between neighbors."""

    min_settings: ClassVar[int] = 2

    name: str
    than: tuple[str, ...]

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.name,)

    def describe(self) -> str:
        return f"{self.name} changes more from one of {_join(self.at)} to the next than between {_join(self.than)}"

    def settings(self, evidence: Evidence) -> tuple[str, ...]:
        """Both groups, or none where the scale does not run all of them."""
        both = self.at + self.than
        return both if all(self._place(self.name, setting) in evidence.values for setting in both) else ()

    def contrasts(self, cells: Array) -> Array:
        steps = np.abs(np.diff(cells[0], axis=0))
        here, elsewhere = steps[: len(self.at) - 1], steps[len(self.at) :]
        return np.asarray((here.mean(axis=0) - elsewhere.mean(axis=0))[None, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(TableRule):
    """A number rises (or falls) along the settings in their order: least-squares slope per setting."""

    unit: ClassVar[str] = "points a setting"
    min_settings: ClassVar[int] = 2

    name: str
    rises: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.name,)

    def describe(self) -> str:
        return f"{self.name} {'rises' if self.rises else 'falls'} along the settings (least-squares slope per setting)"

    def contrasts(self, cells: Array) -> Array:
        """The slope of each seed, positive in the direction that is claimed."""
        x = np.arange(cells.shape[1], dtype=float)
        x -= x.mean()
        slopes = x @ cells[0] / (x @ x)
        return np.asarray((slopes if self.rises else -slopes)[None, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks(TableRule):
    """A number is best in the middle: some inner setting is higher than both ends."""

    min_settings: ClassVar[int] = 3

    name: str

    @property
    def compared(self) -> tuple[str, ...]:
        return (self.name,)

    def describe(self) -> str:
        return f"{self.name} is higher in some inner setting than at both ends"

    def contrasts(self, cells: Array) -> Array:
        """A group for each inner setting: its leads over both ends."""
        inner, ends = cells[0, 1:-1], cells[0, [0, -1]]
        return np.asarray(inner[:, None] - ends[None])


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse(TableRule):
    """Most runs collapse or diverge (or do not): an exact test of their share over all cells against ½."""

    unit: ClassVar[str] = "of the runs beyond half"
    needs_learning: ClassVar[bool] = False

    names: tuple[str, ...]
    lost: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        return self.names

    def describe(self) -> str:
        return f"more than half of the runs of {_join(self.names)} {'collapse' if self.lost else 'do not collapse'}"

    def contrasts(self, cells: Array) -> Array:
        raise NotImplementedError("runs are counted, not averaged")

    def effect(self, evidence: Evidence) -> Effect | None:
        """From the runs of which it is known."""
        cells = [[run for run in evidence.lost.get(place, ()) if run is not None] for place in self.places(evidence)]
        seeds = min(map(len, cells), default=0)
        if seeds == 0:
            return None
        runs = [run == self.lost for cell in cells for run in cell]
        return binomial_effect(sum(runs), len(runs), seeds, self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class HigherAt(Rule):
    """Each place is higher than the place beside it, which may be in another table."""

    pairs: tuple[tuple[Place, Place], ...]
    """(higher, lower)."""

    def describe(self) -> str:
        pairs = (f"{', '.join(over)} higher than {', '.join(under)}" for over, under in self.pairs)
        return "; ".join(pairs)

    def settings_cells(self, evidence: Evidence) -> tuple[tuple[Place, ...], ...]:
        return self.pairs

    def effect(self, evidence: Evidence) -> Effect | None:
        cells = complete_seeds(evidence, self.places(evidence))
        return None if cells.size == 0 else t_effect((cells[::2] - cells[1::2])[None])


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(Rule):
    """One of several rules at least: "sometimes"."""

    rules: tuple[TableRule, ...]

    def describe(self) -> str:
        return "; or ".join(rule.describe() for rule in self.rules)

    def settings_cells(self, evidence: Evidence) -> tuple[tuple[Place, ...], ...]:
        return tuple(cells for rule in self.rules for cells in rule.settings_cells(evidence))

    def effect(self, evidence: Evidence) -> Effect | None:
        """The one that speaks most for it; the claim fails only where every one fails."""
        effects = [rule.effect(evidence) for rule in self.rules]
        known = [effect for effect in effects if effect is not None]
        if len(known) < len(effects):
            return None
        return replace(
            max(known, key=lambda effect: effect.size),
            seeds=min(effect.seeds for effect in known),
            supports=any(effect.supports for effect in known),
            p_holds=min(1.0, len(known) * min(effect.p_holds for effect in known)),
            p_fails=max(effect.p_fails for effect in known),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agree(Rule):
    """Two groups of tables with the same cells rank them alike: rank correlation over all cells, by seed."""

    one: tuple[str, ...]
    other: tuple[str, ...]
    margin: float = 0.5

    def describe(self) -> str:
        tables = f"{_join(self.one)} with {_join(self.other)}"
        return f"the rank correlation of {tables} over all cells is above {self.margin:g}"

    def settings_cells(self, evidence: Evidence) -> tuple[tuple[Place, ...], ...]:
        partner = dict(zip(self.one, self.other, strict=True))
        here = [place for place in evidence.values if place[0] in partner]
        return tuple((place, (partner[place[0]], *place[1:])) for place in here)

    def effect(self, evidence: Evidence) -> Effect | None:
        cells = complete_seeds(evidence, self.places(evidence))
        if cells.size == 0:
            return None
        correlations = [spearman(list(seed[::2]), list(seed[1::2])) for seed in cells.T]
        return t_effect(np.array(correlations)[None, None], "of rank correlation", self.margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllHold(Rule):
    """Statements that were checked one by one: cells are 1 (holds) or 0. All must hold. Needs no seeds."""

    needs_learning: ClassVar[bool] = False

    table: str
    rows: tuple[str, ...]
    column: str

    def describe(self) -> str:
        return f"every statement holds ({self.column})"

    def settings_cells(self, evidence: Evidence) -> tuple[tuple[Place, ...], ...]:
        return (tuple((self.table, row, self.column) for row in self.rows),)

    def effect(self, evidence: Evidence) -> Effect | None:
        """The share of the statements that hold."""
        cells = [evidence.values.get(place, ()) for place in self.places(evidence)]
        if not cells or any(not cell or None in cell for cell in cells):
            return None
        share = sum(all(value == 1 for value in cell) for cell in cells) / len(cells)
        holds = share == 1
        return Effect(
            size=share,
            low=share,
            high=share,
            seeds=min(map(len, cells)),
            supports=holds,
            p_holds=float(not holds),
            p_fails=float(holds),
            unit="of the statements",
        )


def _join(names: tuple[str, ...]) -> str:
    """A, B and C."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
