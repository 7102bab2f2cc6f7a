"""Schedules: pure functions of the step."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.run import TrainConfig
from phinets.data import Images
from phinets.runtime import distributed
from phinets.runtime.devices import Precision
from phinets.training.loader import MicroBatch, ViewLoader


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRateSchedule:
    """The learning rate of every optimizer step of a task, counted from 0."""

    steps_per_epoch: int
    epochs: int
    warmup_epochs: float
    peak_lr: float
    shape: Literal["cosine", "constant"] = "cosine"

    @property
    def total(self) -> int:
        """Steps of the task."""
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
    """One task: its batches and its learning rates."""

    loader: ViewLoader
    lr: LearningRateSchedule


@dataclass(frozen=True)
class RunSchedule:
    """Tasks that share their batch size; steps are counted through.

    Batches and learning rates of a task are as if it stood alone, except for random numbers, which belong to the step
    of the whole run: later tasks change nothing about earlier ones.
    """

    tasks: tuple[TaskSchedule, ...]

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The number of finished steps at the end of each task."""
        return tuple(accumulate(task.lr.total for task in self.tasks))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first step of each task."""
        return (0, *self.ends[:-1])

    @property
    def total(self) -> int:
        """Steps of the whole run."""
        return self.ends[-1]

    @property
    def batch(self) -> int:
        """Images per step."""
        return self.tasks[0].loader.batch

    @property
    def micro_batches(self) -> int:
        """Micro-batches per step."""
        return self.tasks[0].loader.micro_batches

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of a warm-up."""
        return self.tasks[0].lr.peak_lr

    def task_at(self, step: int) -> int:
        """The index of the task that a step belongs to."""
        return bisect_right(self.ends, step)

    def loader_at(self, step: int) -> ViewLoader:
        """The loader of a step's task."""
        return self.tasks[self.task_at(step)].loader

    def rate(self, step: int) -> float:
        """The learning rate of a step: each task's schedule starts again."""
        task = self.task_at(step)
        return self.tasks[task].lr.rate(step - self.starts[task])

    def epochs(self, done: int) -> float:
        """Epochs finished after `done` steps, over all tasks."""
        total = 0.0
        for task, start in zip(self.tasks, self.starts, strict=True):
            total += min(max(0, done - start), task.lr.total) / task.lr.steps_per_epoch
        return total

    def batches(self, first: int, last: int) -> Iterator[MicroBatch]:
        """The micro-batches of the steps from `first` to `last` − 1."""
        for task, start, end in zip(self.tasks, self.starts, self.ends, strict=True):
            if start < last and end > first:
                yield from task.loader.batches(max(first, start), min(last, end))


class TaskImages(NamedTuple):
    """The training images of one task."""

    images: Images
    name: str
    epochs: int


def build_schedule(
    config: TrainConfig, tasks: Sequence[TaskImages], anchor: Anchor | None, precision: Precision
) -> RunSchedule:
    """Loader and learning rates of each task; steps and epochs are counted through.

    Raises:
        UserError: a task has fewer images than a batch.
    """
    schedules: list[TaskSchedule] = []
    steps = epochs = 0
    rank, ranks = distributed.rank(), distributed.world_size()
    for task in tasks:
        loader = ViewLoader(
            images=task.images,
            plan=config.plan,
            anchor=anchor,
            batch=config.batch,
            seed=config.seed,
            size=config.source.image_size,
            device=precision.device,
            dtype=precision.weights,
            channels_last=config.compute.channels_last,
            micro_batches=config.compute.accumulate,
            rank=rank,
            ranks=ranks,
            first_step=steps,
            first_epoch=epochs,
        )
        if not loader.steps_per_epoch:
            count = len(task.images)
            raise UserError(
                f"the batch of {config.batch} is larger than the data: {task.name} has {count} training images. "
                f"Use --batch {count} or less, or more --train-images."
            )
        lr = LearningRateSchedule(
            steps_per_epoch=loader.steps_per_epoch,
            epochs=task.epochs,
            warmup_epochs=config.optimization.warmup_epochs,
            peak_lr=config.peak_lr,
            shape=config.optimization.schedule,
        )
        schedules.append(TaskSchedule(loader, lr))
        steps, epochs = steps + lr.total, epochs + task.epochs
    return RunSchedule(tuple(schedules))
