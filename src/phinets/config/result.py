"""What a piece of work came to, as a value that reports can read without torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from phinets.config.errors import UserError
from phinets.config.work import Work, key, work_from_plain, work_to_plain

Curve = tuple[tuple[float, float], ...]
"""Points (images seen, value)."""
Health = Literal["healthy", "collapsing", "collapsed", "diverged"]
LOST = ("collapsed", "diverged")
"""Ends that count as collapse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Work that was done, or that failed: then `failed` says why, and there are no numbers."""

    work: Work
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    """Percent, points, seconds, bytes by name: knn, linear, task-knn/fast/average, …"""
    health: Health | None = None
    """What the collapse meter said at the end, where something was learned."""
    curves: Mapping[str, Curve] = field(default_factory=dict)
    """How numbers changed on the way: knn, loss, sim1, …"""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What is told in words or nested values: the statements on dynamics."""
    protocol: str = ""
    """How the numbers were got, in words."""
    seconds: float = 0.0
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Versions, commit, device: env.json."""
    failed: str | None = None
    """Why there are no numbers."""

    @property
    def key(self) -> str:
        """Of the work."""
        return key(self.work)

    @property
    def lost(self) -> bool:
        """Whether what was learned has collapsed, or ran out of the finite numbers."""
        return self.health in LOST

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "key": self.key,
            "work": work_to_plain(self.work),
            "numbers": dict(self.numbers),
            "health": self.health,
            "curves": {name: [list(point) for point in curve] for name, curve in self.curves.items()},
            "notes": dict(self.notes),
            "protocol": self.protocol,
            "seconds": self.seconds,
            "environment": dict(self.environment),
            "failed": self.failed,
        }


def result_from_plain(plain: Mapping[str, Any]) -> Result:
    """The result that was written by `Result.plain`."""
    try:
        curves = {name: tuple((float(x), float(y)) for x, y in curve) for name, curve in plain["curves"].items()}
        names = ("numbers", "health", "notes", "protocol", "seconds", "environment", "failed")
        return Result(work=work_from_plain(plain["work"]), curves=curves, **{name: plain[name] for name in names})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"this is no result of `phinets reproduce`: {error}.") from error
