"""Schedules: pure functions of the step."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from phinets.training.loader import MicroBatch, ViewLoader


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateSchedule:
    """When things happen, counted in optimizer steps from 0."""

    steps_per_epoch: int
    epochs: int
    warmup_epochs: float
    peak_lr: float
    shape: Literal["cosine", "constant"] = "cosine"

    @property
    def total(self) -> int:
        """Steps of the whole run."""
        return self.steps_per_epoch * self.epochs

    @property
    def warmup(self) -> int:
        """Steps of the warm-up."""
        return round(self.steps_per_epoch * self.warmup_epochs)

    def rate(self, step: int) -> float:
        """The learning rate of `step`."""
        if step < self.warmup:
            return self.peak_lr * (step + 1) / self.warmup
        if self.shape == "constant":
            return self.peak_lr
        return self.peak_lr * half_cosine((step - self.warmup) / max(1, self.total - self.warmup))


def half_cosine(share: float) -> float:
    """½(1 + cos π·share): 1 at 0, ½ at ½, 0 at 1."""
    return 0.5 * (1.0 + math.cos(math.pi * share))


@dataclass(frozen=True, slots=True)
class TaskSchedule:
    """One task: what is shown, and how long and how fast is learned from it."""

    loader: ViewLoader
    timetable: LearningRateSchedule


@dataclass(frozen=True, slots=True)
class RunSchedule:
    """Legs that share their batch; steps are counted through.

    Step s of a leg is shown and paced as if its leg stood alone, but for its random numbers, which are drawn for the
    step of the whole course: what comes later changes nothing about what came before.
    """

    legs: tuple[TaskSchedule, ...]

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
        return self.legs[0].loader.batch

    @property
    def parts(self) -> int:
        """Parts that a batch is computed in."""
        return self.legs[0].loader.parts

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of a warm-up."""
        return self.legs[0].timetable.peak_lr

    def leg_at(self, step: int) -> int:
        """Which leg a step belongs to."""
        return bisect_right(self.ends, step)

    def feed_at(self, step: int) -> ViewLoader:
        """What shows a step's images."""
        return self.legs[self.leg_at(step)].loader

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

    def stream(self, first: int, last: int) -> Iterator[MicroBatch]:
        """The parts of every step from `first` up to, not with, `last`, in turn."""
        for leg, start, end in zip(self.legs, self.starts, self.ends, strict=True):
            if start < last and end > first:
                yield from leg.loader.stream(max(first, start), min(last, end))
