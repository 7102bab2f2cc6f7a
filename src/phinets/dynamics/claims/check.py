"""The result of checking one statement of the paper."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from phinets.dynamics.systems import Version

VERSIONS: tuple[Version, ...] = ("published", "corrected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a statement holds, and by what numbers."""

    holds: bool
    why: str
    """The numbers that decide."""

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'fails'}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimCheck:
    """A statement with its verdicts and the numbers behind them."""

    statement: str
    where: str
    """The place in the paper."""
    published: Verdict
    """For the equations as printed."""
    corrected: Verdict
    """For the equations that follow from the loss."""
    numbers: Mapping[str, Any]
    """The numbers behind the verdicts; plain values."""
    needs: str = ""
    """Conditions: initial values, settings, and the reading of words like ≫."""
    in_paper: bool = True
    """Whether the paper states it; False: a question that the paper leaves open."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        verdicts = {name: {"holds": verdict.holds, "why": verdict.why} for name, verdict in self.verdicts.items()}
        place = {"statement": self.statement, "where": self.where, "in_paper": self.in_paper}
        return {**place, **verdicts, "needs": self.needs, "numbers": self.numbers}

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The two verdicts by version."""
        return {"published": self.published, "corrected": self.corrected}


Claim = Callable[[float], ClaimCheck]
"""From σ² to the result."""


def both_versions(evaluate: Callable[[Version], tuple[Verdict, Any]]) -> dict[str, Any]:
    """The fields `published`, `corrected` and `numbers` of a `ClaimCheck`, from one function of the version."""
    results = {version: evaluate(version) for version in VERSIONS}
    fields: dict[str, Any] = {version: verdict for version, (verdict, _) in results.items()}
    return fields | {"numbers": {version: numbers for version, (_, numbers) in results.items()}}


def format_numbers(values: object, digits: int = 4) -> str:
    """Numbers with commas: 0.1085, 0.004648."""
    assert isinstance(values, list | tuple)
    return ", ".join(f"{value:.{digits}g}" for value in values)
