"""A statement of the paper on dynamics and its check, for the printed equations and for the corrected ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phinets.config.errors import look_up
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
    """The numbers behind the verdicts, by version; plain values."""
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


Result = tuple[bool, str, Any]
"""Whether a statement holds, the words of its verdict, and its numbers."""
Evaluation = Callable[[Version, float], Result]
"""From the version of the equations and σ² to the result."""
CLAIMS: dict[str, Callable[[float], ClaimCheck]] = {}
"""Every statement by name: from σ² to its check. First those on eigenvalues, then those on matrices."""


def claim(
    where: str, *, needs: str = "", in_paper: bool = True, name: str = "", statement: str = ""
) -> Callable[[Evaluation], Evaluation]:
    """Register an evaluation as the check of a statement: by default under its name, its docstring the statement."""

    def register(evaluate: Evaluation) -> Evaluation:
        key = name or evaluate.__name__.replace("_", "-")
        words = statement or (evaluate.__doc__ or "").removesuffix(".")

        def check(sigma2: float) -> ClaimCheck:
            results = {version: evaluate(version, sigma2) for version in VERSIONS}
            verdicts: dict[str, Verdict] = {k: Verdict(holds=holds, why=why) for k, (holds, why, _) in results.items()}
            numbers: dict[str, Any] = {version: values for version, (_, _, values) in results.items()}
            return ClaimCheck(statement=words, where=where, needs=needs, in_paper=in_paper, numbers=numbers, **verdicts)

        CLAIMS[key] = check
        return evaluate

    return register


def check_paper(sigma2: float = 1.5, only: Sequence[str] = ()) -> dict[str, ClaimCheck]:
    """Check the paper's statements on dynamics.

    Args:
        sigma2: σ² ≥ 0, the variance of the augmentation.
        only: names of statements; empty: all.

    Returns:
        The result of each statement, by name.

    Raises:
        UserError: a name is unknown.
    """
    names = list(only) or list(CLAIMS)
    return {name: look_up("statement", name, CLAIMS)(sigma2) for name in names}


def format_numbers(values: Sequence[float], digits: int = 4) -> str:
    """Numbers with commas: 0.1085, 0.004648."""
    return ", ".join(f"{value:.{digits}g}" for value in values)
