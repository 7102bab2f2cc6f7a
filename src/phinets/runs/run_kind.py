"""What a run does beside its steps: how it is judged before, between and after them, and what it leaves."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from phinets.config.record import ContinualRecord, RunRecord
from phinets.runs.monitor import health_of
from phinets.runs.setup import RunParts
from phinets.training.loop import Pace

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

    def last(self, kind: str) -> Row:
        """The last line of this kind in the journal."""
        return next(row for row in reversed(self.journal) if row["kind"] == kind)

    def learned(self, run_parts: RunParts, protocol: str) -> dict[str, Any]:
        """What every summary says (`config.record.Learned`)."""
        config, meter = run_parts.config, health_of(self.last("eval"))
        return {
            "method": config.method,
            "backbone": config.backbone,
            "data": config.learned_from,
            "seed": config.seed,
            "steps": run_parts.course.total,
            "verdict": meter.verdict,
            **asdict(meter),
            "bad_images": len(run_parts.bad_images.known),
            "seconds": self.seconds,
            "images_per_second": self.pace.images_per_second,
            "data_wait": self.pace.data_wait,
            "protocol": protocol,
        }


class Programme(Protocol[R]):
    """One kind of run."""

    @property
    def run_parts(self) -> RunParts:
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
