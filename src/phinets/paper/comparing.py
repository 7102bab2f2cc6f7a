"""What rules on a table have in common: the cells they look at, and what follows from an interval."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phinets.paper.bootstrap import Array, Statistic, estimated
from phinets.paper.claims import Effect, Evidence, Place, VerdictWord

Axis = Literal["rows", "columns"]
Seeds = tuple[float | bool | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnATable(ABC):
    """A rule that compares names on one axis of a table in the settings on its other axis."""

    table: str
    along: Axis = "rows"
    """The axis that the names are on."""
    at: tuple[str, ...] = ()
    """The settings, in their order; empty: all in which every name has a cell."""

    @property
    @abstractmethod
    def compared(self) -> tuple[str, ...]:
        """The names, in the order of the cells."""

    @abstractmethod
    def describe(self) -> str:
        """The rule in words, with its margin."""

    @abstractmethod
    def effect(self, evidence: Evidence) -> Effect | None:
        """Positive where it speaks for the claim; None where a cell has no number."""

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

    def verdict(self, effect: Effect) -> VerdictWord:
        """By the side of 0 that the whole interval is on."""
        return above(effect, 0.0)

    def _place(self, name: str, setting: str) -> Place:
        return (self.table, name, setting) if self.along == "rows" else (self.table, setting, name)

    def cells(self, evidence: Evidence, found: Mapping[Place, Seeds]) -> Array | None:
        """What was found, (names, settings, seeds), NaN where a seed has nothing; None where a whole cell has not."""
        rows = [found.get(place, ()) for place in self.places(evidence)]
        seeds = max(map(len, rows), default=0)
        filled = np.full((len(rows), seeds), np.nan)
        for into, row in zip(filled, rows, strict=True):
            into[: len(row)] = [np.nan if value is None else value for value in row]
        if not rows or np.isnan(filled).all(axis=1).any():
            return None
        return filled.reshape(len(self.compared), -1, seeds)

    def estimated(
        self, evidence: Evidence, statistic: Statistic, unit: str = "points", *, settings_too: bool
    ) -> Effect | None:
        """The effect by a statistic of the cells' means; None where a cell has no number."""
        cells = self.cells(evidence, evidence.values)
        return None if cells is None else estimated(cells, statistic, unit, settings_too=settings_too)


def above(effect: Effect, margin: float) -> VerdictWord:
    """Holds where the whole interval is above the margin, does not hold where it is below; never by one seed."""
    if effect.seeds < 2 or effect.low <= margin <= effect.high:
        return "can't tell"
    return "holds" if effect.low > margin else "does not hold"


def over_settings(by_setting: Array, drawn: Array) -> Array:
    """The mean over the settings as often as they are drawn: (draws, settings) → (draws,)."""
    return np.asarray((by_setting * drawn).sum(axis=1) / drawn.sum(axis=1))


def difference(means: Array, drawn: Array) -> Array:
    """First name − second, on average over the settings."""
    return over_settings(means[:, 0] - means[:, 1], drawn)


def listed(names: tuple[str, ...]) -> str:
    """A, B or C."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def by_more_than(margin: float) -> str:
    """A margin in words; nothing for 0."""
    return f" by more than {margin:g}" if margin else ""
