"""What a run does beside its steps: how it is judged before, between and after them, and what it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from phinets.config.record import ContinualRecord, RunRecord
from phinets.engine.loop import Pace
from phinets.experiments.bench import Bench

Row = dict[str, Any]
R = TypeVar("R", bound=RunRecord | ContinualRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run whose last step is made and judged."""

    folder: Path
    environment: dict[str, Any]
    journal: list[Row]
    pace: Pace
    seconds: float


class Programme(Protocol[R]):
    """One kind of run."""

    @property
    def bench(self) -> Bench:
        """What it is made of."""

    @property
    def turns(self) -> frozenset[int]:
        """The steps before which something is done."""

    def baseline(self) -> list[Row]:
        """What the learner must beat, judged before the first step, as lines of the journal."""

    def between(self, step: int) -> list[Row]:
        """What is judged before a step that is a turn, as lines of the journal; by the first process only."""

    def turn(self, step: int) -> None:
        """What changes before a step that is a turn; by every process."""

    def closing(self) -> list[Row]:
        """The last judgement, as lines of the journal."""

    def record(self, ended: Ended) -> R:
        """What the run has come to."""

    def pictures(self, record: R) -> Mapping[str, bytes]:
        """Its pictures, by the names of their files."""
