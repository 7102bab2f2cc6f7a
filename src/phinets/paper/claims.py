"""Claims: what the paper says of a table or figure, each with the rule that decides whether it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

VerdictWord = Literal["holds", "does not hold", "can't tell"]
Place = tuple[str, str, str]
"""Table, row, column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured in the cells of a target's tables, by seed, in the order of the tables."""

    values: Mapping[Place, tuple[float | None, ...]]
    """None where a seed has no number: it failed, diverged, or is not there yet."""
    lost: Mapping[Place, tuple[bool | None, ...]]
    """Whether the seed collapsed or diverged; None where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How large what a claim speaks of is, and how sure that is."""

    size: float
    """In the unit of the table; positive speaks for the claim."""
    low: float
    high: float
    """95 % bootstrap interval."""
    seeds: int
    """The fewest seeds of any cell that it rests on."""
    unit: str = "points"


class Rule(Protocol):
    """Decides about a claim."""

    def describe(self) -> str:
        """The rule in words, with its margin."""

    def places(self, evidence: Evidence) -> tuple[Place, ...]:
        """The cells that it rests on, whether they have numbers or not."""

    def effect(self, evidence: Evidence) -> Effect | None:
        """The effect in what was measured; None where a cell has no number at all."""

    def verdict(self, effect: Effect) -> VerdictWord:
        """What follows from the effect and its interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence of the paper that can be checked."""

    name: str
    says: str
    """In short, in our words."""
    where: str
    """The place in the paper."""
    rule: Rule
