"""Claims as the page shows them: the verdict in a word and a shape, the effect as a bar around zero."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import copysign, sqrt

from phinets.paper.claims import Effect, VerdictWord
from phinets.paper.findings import ClaimFound, TargetFound
from phinets.reports.page.writing import signed
from phinets.reports.paper_cells import effect_words

ORDER: tuple[VerdictWord, ...] = ("holds", "does not hold", "can't tell")
SIGNS = {"holds": "yes", "does not hold": "no", "can't tell": "open"}
"""The name of each verdict's sign, and of its color."""
MIDDLE = 120
"""Half the width of a bar, in half pixels."""
EDGE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An effect and its interval around zero, on the canvas of a bar."""

    low: int
    high: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimShown:
    """A line of the overview."""

    found: ClaimFound
    anchor: str
    at: str
    """The anchor of its target."""
    target: str
    sign: str
    bar: Bar | None

    @property
    def effect(self) -> Effect | None:
        """Its size."""
        return self.found.effect

    @property
    def interval(self) -> str:
        """The effect with its interval, in words: +1.32 [+0.40, +2.21] points."""
        return signed(effect_words(self.effect))

    @property
    def rank(self) -> int:
        """Where its verdict stands when they are sorted."""
        return ORDER.index(self.found.verdict)


def claims(found: Sequence[TargetFound]) -> list[ClaimShown]:
    """The claims of some targets, their bars on one axis for each unit."""
    reach: dict[str, float] = {}
    for effect in (claim.effect for target in found for claim in target.claims):
        if effect is not None:
            reach[effect.unit] = max(reach.get(effect.unit, 0.0), *map(abs, (effect.low, effect.high, effect.size)))
    return [
        ClaimShown(
            found=claim,
            anchor=f"{anchor(target)}-{claim.claim.name}",
            at=anchor(target),
            target=target.target.name,
            sign=SIGNS[claim.verdict],
            bar=None if claim.effect is None else bar(claim.effect, reach[claim.effect.unit]),
        )
        for target in found
        for claim in target.claims
    ]


def anchor(found: TargetFound) -> str:
    """Where a target stands on the page."""
    return f"{found.scale.name}-{found.target.name}"


def bar(effect: Effect, reach: float) -> Bar:
    """An effect on an axis that goes by square roots, so that small ones are seen beside large ones."""

    def place(value: float) -> int:
        share = copysign(sqrt(abs(value) / reach), value) if reach else 0.0
        return round(MIDDLE + share * (MIDDLE - EDGE))

    return Bar(low=place(effect.low), high=place(effect.high), size=place(effect.size))


def tally(shown: Iterable[ClaimShown]) -> list[tuple[VerdictWord, str, int]]:
    """How many claims have each verdict: (word, sign, count)."""
    words = [claim.found.verdict for claim in shown]
    return [(word, SIGNS[word], words.count(word)) for word in ORDER]
