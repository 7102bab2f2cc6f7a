"""What became of one statement of the paper."""

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
    """The numbers in a few words."""

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'fails'}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A statement beside what was computed about it."""

    statement: str
    where: str
    """The place in the paper."""
    published: Verdict
    """For the equations as printed."""
    corrected: Verdict
    """For the equations that follow from the loss."""
    numbers: Mapping[str, Any]
    """All that the verdicts rest on; plain values."""
    needs: str = ""
    """Which starting values or settings it takes, and how words like ≫ were read."""
    in_paper: bool = True
    """Whether the paper says it, or it is a question that the paper leaves open."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        sides = {name: {"holds": side.holds, "why": side.why} for name, side in self.sides.items()}
        told = {"statement": self.statement, "where": self.where, "in_paper": self.in_paper}
        return {**told, **sides, "needs": self.needs, "numbers": self.numbers}

    @property
    def sides(self) -> dict[str, Verdict]:
        """The two verdicts by version."""
        return {"published": self.published, "corrected": self.corrected}


Claim = Callable[[float], Finding]
"""From σ² to the finding."""


def on_both(judge: Callable[[Version], tuple[Verdict, Any]]) -> dict[str, Any]:
    """The fields `published`, `corrected` and `numbers` of a finding, from one judge of a version."""
    found = {version: judge(version) for version in VERSIONS}
    fields: dict[str, Any] = {version: verdict for version, (verdict, _) in found.items()}
    return fields | {"numbers": {version: numbers for version, (_, numbers) in found.items()}}


def listed(values: object, digits: int = 4) -> str:
    """Numbers in a row: 0.1085, 0.004648."""
    assert isinstance(values, list | tuple)
    return ", ".join(f"{value:.{digits}g}" for value in values)
