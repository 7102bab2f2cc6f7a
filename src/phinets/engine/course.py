"""The course of a run: its tasks one after the other. A run on one body of images is a course of one."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from phinets.engine.feed import Feed, Part
from phinets.engine.schedules import Timetable


@dataclass(frozen=True, slots=True)
class Leg:
    """One task: what is shown, and how long and how fast is learned from it."""

    feed: Feed
    timetable: Timetable


@dataclass(frozen=True, slots=True)
class Course:
    """Legs that share their batch; steps are counted through.

    Step s of a leg is shown and paced as if its leg stood alone, but for its random numbers, which are drawn for the
    step of the whole course: what comes later changes nothing about what came before.
    """

    legs: tuple[Leg, ...]

    @property
    def ends(self) -> tuple[int, ...]:
        """After how many steps each leg is over."""
        return tuple(accumulate(leg.timetable.total for leg in self.legs))

    @property
    def starts(self) -> tuple[int, ...]:
        """The first step of each leg."""
        return (0, *self.ends[:-1])

    @property
    def total(self) -> int:
        """Steps of the whole course."""
        return self.ends[-1]

    @property
    def batch(self) -> int:
        """Images per step."""
        return self.legs[0].feed.batch

    @property
    def parts(self) -> int:
        """Parts that a batch is computed in."""
        return self.legs[0].feed.parts

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of a warm-up."""
        return self.legs[0].timetable.peak_lr

    def leg_at(self, step: int) -> int:
        """Which leg a step belongs to."""
        return bisect_right(self.ends, step)

    def feed_at(self, step: int) -> Feed:
        """What shows a step's images."""
        return self.legs[self.leg_at(step)].feed

    def rate(self, step: int) -> float:
        """The learning rate of a step: each leg's schedule begins anew."""
        leg = self.leg_at(step)
        return self.legs[leg].timetable.rate(step - self.starts[leg])

    def epochs(self, done: int) -> float:
        """Passes made after so many steps, over all legs."""
        passed = 0.0
        for leg, start in zip(self.legs, self.starts, strict=True):
            steps = min(max(0, done - start), leg.timetable.total)
            passed += steps / leg.timetable.steps_per_epoch
        return passed

    def stream(self, first: int, last: int) -> Iterator[Part]:
        """The parts of every step from `first` up to, not with, `last`, in turn."""
        for leg, start, end in zip(self.legs, self.starts, self.ends, strict=True):
            if start < last and end > first:
                yield from leg.feed.stream(max(first, start), min(last, end))
