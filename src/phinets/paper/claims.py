"""Claims: what the paper says of a table or figure, each with the rule that decides whether it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

VerdictWord = Literal["holds", "does not hold", "can't tell"]
Place = tuple[str, str, str]
"""Table, row, column."""
Values = Mapping[Place, tuple[float | None, ...]]
"""What was measured, by seed; None where a seed has no number (yet)."""


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

    def effect(self, values: Values) -> Effect | None:
        """The effect in what was measured; None where a cell is missing."""

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
