"""The training loop: fetch a batch, step, and report to a driver when losses, an evaluation or a checkpoint are due.

The loop decides when something happens; the driver (`runs.trainer.Trainer`) does it. Every process of a distributed
run executes the same loop.
"""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from phinets.config.errors import CommonError, UserError
from phinets.data import BadImage, Images
from phinets.methods import Losses
from phinets.runtime import distributed
from phinets.runtime.devices import synchronize
from phinets.runtime.distributed import Agreement
from phinets.training.checkpoint import Keeper
from phinets.training.loader import MicroBatch
from phinets.views import Views

if TYPE_CHECKING:
    from phinets.training.detector import DetectorSchedule, DetectorTrainState
    from phinets.training.schedule import RunSchedule
    from phinets.training.step import TrainState

REPORT_EVERY = 10
"""Steps whose losses are fetched from the device together."""


class DivergedError(CommonError):
    """The loss or a weight is no longer finite."""


@dataclass(slots=True)
class Pace:
    """Training speed, without evaluations and checkpoints."""

    images: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def images_per_second(self) -> float:
        """Training images per second."""
        return self.images / self.seconds if self.seconds else 0.0

    @property
    def data_wait(self) -> float:
        """Share of the training time in which the step waited for its batch."""
        return self.waited / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class SlowdownWatch:
    """Notices once when training falls below half the speed of its first minute in this process."""

    window: float = 60.0
    """Seconds of training that a speed is measured over."""
    _start: tuple[int, float] | None = None
    _first_speed: float | None = None
    _reported: bool = False

    def __call__(self, pace: Pace) -> str | None:
        """A message, the first time that the speed of a window is below half that of the first."""
        self._start = self._start or (pace.images, pace.seconds)
        images, seconds = pace.images - self._start[0], pace.seconds - self._start[1]
        if self._reported or seconds < self.window:
            return None
        speed, self._start = images / seconds, (pace.images, pace.seconds)
        self._first_speed = self._first_speed or speed
        if speed >= self._first_speed / 2:
            return None
        self._reported = True
        return (
            f"Training has slowed down from {self._first_speed:.0f} images/s in its first minute to {speed:.0f}. Other "
            "programs probably use the processor, the memory or the disk: stop them, or stop this run and resume it "
            "later. The results do not depend on the speed."
        )


class StepReport(NamedTuple):
    """One finished step."""

    done: int
    """Steps finished so far, this one included."""
    losses: dict[str, float]
    """`loss` and its terms, the mean over all processes."""
    lr: float
    bad: list[BadImage]
    """Images of the step's batch that could not be used, of all processes."""


class Driver(Protocol):
    """What the loop calls. `done` counts finished steps."""

    def on_boundary(self, step: int) -> None:
        """Called before a step of `boundaries`: between two tasks, or where a task is evaluated."""

    def on_steps(self, reports: Sequence[StepReport], pace: Pace) -> None:
        """Called with the newest steps, oldest first."""

    def evaluate(self, done: int, codes: Tensor) -> None:
        """Called when an evaluation is due, with the codes z of the last batch, gathered from all processes."""

    def save(self, done: int) -> None:
        """Called when a checkpoint is due."""

    def stop_requested(self) -> bool:
        """Whether this process was asked to stop."""


class ReplayBuffer(Protocol):
    """Images of earlier steps that are trained on again."""

    def mix(self, step: int, number: int, batch: MicroBatch) -> Views:
        """The views to train on in micro-batch `number` of a step: its own, with replayed ones."""

    def add(self, step: int, batches: Sequence[MicroBatch], images: Images) -> None:
        """Offer the micro-batches of a finished step, whose rows index `images`."""

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a stored state."""


@dataclass(kw_only=True)
class Loop:
    """Train `train_state` along `schedule`."""

    train_state: "TrainState | DetectorTrainState"
    schedule: "RunSchedule | DetectorSchedule"
    driver: Driver
    keeper: Keeper
    """Says when a checkpoint is due."""
    eval_every: int
    """Steps between two evaluations; 0 evaluates at the ends of tasks only."""
    eval_steps: Container[int] = ()
    """Further steps after which there is an evaluation."""
    boundaries: Container[int] = ()
    """Steps before which the driver's `on_boundary` is called."""
    replay: ReplayBuffer | None = None
    pace: Pace = field(default_factory=Pace)
    stopped: bool = False
    """Whether the loop ended early because a process was asked to stop."""

    def run(self, first: int = 0) -> int:
        """Train from step `first` to the end, or until asked to stop; returns the number of finished steps."""
        self.train_state.train()
        self._pending: list[tuple[int, Losses]] = []
        self._bad: list[tuple[int, BadImage]] = []
        self._agreement = Agreement()
        self._last_saved = first
        self._since = perf_counter()
        total = self.schedule.total
        batches = self.schedule.batches(first, total)
        for step in range(first, total):
            if step in self.boundaries:
                self._cross_boundary(step)
            losses = self._train(step, self._fetch(step, batches))
            self._after_step(step + 1, losses)
            if self.stopped:
                return step + 1
        self.stopped = self._agreement.at_last(self.driver.stop_requested())
        return total

    def _fetch(self, step: int, batches: Iterator[Any]) -> list[Any]:
        """The micro-batches of a step; the time spent waiting for them counts as data wait."""
        start = perf_counter()
        try:
            fetched = list(islice(batches, self.schedule.micro_batches))
        except UserError:
            self._save_before_error(step)
            raise
        self.pace.waited += perf_counter() - start
        self._bad += ((step, image) for batch in fetched for image in batch.bad)
        return fetched

    def _save_before_error(self, done: int) -> None:
        """Keep the steps before a batch that can't be loaded; one of several processes can't do it alone."""
        if done > self._last_saved and distributed.world_size() == 1:
            if self._pending:
                self._report()
            self._require_finite(done)
            self.driver.save(done)

    def _train(self, step: int, batches: Sequence[Any]) -> Losses:
        replay = self.replay
        views = [batch.views for batch in batches]
        if replay is not None:
            views = [replay.mix(step, number, batch) for number, batch in enumerate(batches)]
        rate, peak = self.schedule.rate(step), self.schedule.peak_lr
        losses = self.train_state.step(views, rate=rate, peak=peak)
        if replay is not None:
            loader: Any = self.schedule.loader_at(step)
            replay.add(step, batches, loader.images)
        self._pending.append((step, losses))
        return losses

    def _cross_boundary(self, step: int) -> None:
        """Report the steps before the boundary first; the boundary's own time is not training time."""
        if self._pending:
            self._report()
        self.driver.on_boundary(step)
        self._since = perf_counter()

    def _after_step(self, done: int, losses: Losses) -> None:
        """Whatever is due after a step, in this order: report, evaluate, save."""
        time_to_save = distributed.is_rank_zero() and self.keeper.timer_expired()
        self.stopped, time_to_save = self._agreement(self.driver.stop_requested(), time_to_save)
        last = done in self.schedule.ends
        evaluate = losses.codes is not None and (
            last or (self.eval_every > 0 and done % self.eval_every == 0) or done in self.eval_steps
        )
        save = last or time_to_save or self.stopped or self.keeper.is_due(done)
        if not (evaluate or save or len(self._pending) == REPORT_EVERY):
            return
        self._report()
        if evaluate or save:
            self._require_finite(done)
        if evaluate and losses.codes is not None:
            self.driver.evaluate(done, distributed.gather_rows(losses.codes))
        if save:
            self.driver.save(done)
            self._last_saved = done
        self._since = perf_counter()

    def _report(self) -> None:
        """Fetch the losses of the pending steps, report them, and stop where one is not finite."""
        losses = self._fetch_losses()
        synchronize(self.train_state.device)
        self.pace.seconds += perf_counter() - self._since
        self.pace.images += len(losses) * self.schedule.batch
        bad = self._gather_bad()
        reports = [
            StepReport(step + 1, values, self.schedule.rate(step), [image for when, image in bad if when == step])
            for (step, _), values in zip(self._pending, losses, strict=True)
        ]
        finite = [math.isfinite(report.losses["loss"]) for report in reports]
        good = finite.index(False) if False in finite else len(reports)
        if good:
            self.driver.on_steps(reports[:good], self.pace)
        if good < len(reports):
            raise DivergedError(f"the loss is not finite after step {reports[good].done}.")
        self._pending, self._bad = [], []

    def _fetch_losses(self) -> list[dict[str, float]]:
        """The losses of the pending steps, the mean over all processes, fetched from the device together."""
        names = ("loss", *self._pending[0][1].terms)
        table = torch.stack([torch.stack([lo.total, *lo.terms.values()]).float() for _, lo in self._pending])
        return [dict(zip(names, values, strict=True)) for values in distributed.mean_over_ranks(table).tolist()]

    def _gather_bad(self) -> list[tuple[int, BadImage]]:
        """(step, bad image) of all processes; exchanged only where any process has one."""
        count = torch.tensor(float(len(self._bad)), device=self.train_state.device)
        return sorted(distributed.gather_objects(self._bad)) if float(distributed.mean_over_ranks(count)) else []

    def _require_finite(self, done: int) -> None:
        if not self.train_state.is_finite():
            raise DivergedError(f"the weights are not finite after step {done}.")
