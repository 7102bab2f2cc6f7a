"""What one worker does in one go: a pretraining, and in turn whatever begins with its weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from phinets.config.result import Result
from phinets.config.work import Costing, Work, begins_with, key


@dataclass(frozen=True, slots=True)
class Unit:
    """Pieces of work that are done one after the other, on the same machine."""

    works: tuple[Work, ...]

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it: what costs time or memory is measured."""
        return any(isinstance(work, Costing) for work in self.works)


class Onlooker(Protocol):
    """Told how the work goes."""

    def began(self, works: Sequence[Work]) -> None:
        """These are about to be done."""

    def done(self, result: Result) -> None:
        """One of them is done, or has failed."""


def units(works: Mapping[str, Work]) -> list[Unit]:
    """The work by who does it, in the order in which it is first asked for; what is measured comes last."""
    grouped: dict[str, list[Work]] = {}
    for name, work in works.items():
        first = begins_with(work)
        grouped.setdefault(name if first is None else key(first), []).append(work)
    made = [Unit(tuple(group)) for group in grouped.values()]
    return sorted(made, key=lambda unit: unit.alone)
