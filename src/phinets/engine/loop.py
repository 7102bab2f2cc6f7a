"""The loop around the step: feed, step, journal, look, save. It decides when; what is done is given to it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.engine.device import Precision, synchronise
from phinets.engine.feed import Feed
from phinets.engine.journal import Journal
from phinets.engine.schedules import Timetable
from phinets.engine.step import train_step
from phinets.methods import Learner, Losses

SETTLE_EVERY = 10  # steps whose losses are fetched from the device together


class DivergedError(UserError):
    """The loss is no longer a number."""


@dataclass(slots=True)
class Pace:
    """How fast it went, looks and saves aside."""

    images: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    @property
    def images_per_second(self) -> float:
        """Images learned from per second of training."""
        return self.images / self.seconds if self.seconds else 0.0

    @property
    def data_wait(self) -> float:
        """Share of the training time in which the step waited for its views."""
        return self.waited / self.seconds if self.seconds else 0.0


class LoopWatcher(Protocol):
    """Who looks on: told of steps as they are settled, and of each look."""

    def stepped(self, row: Mapping[str, Any], pace: Pace) -> None:
        """The newest line of the journal."""

    def looked(self, row: Mapping[str, Any]) -> None:
        """What a look found."""


@dataclass(kw_only=True)
class Loop:
    """Everything that one training needs, and `run`, which does it."""

    learner: Learner
    optimiser: torch.optim.Optimizer
    feed: Feed
    timetable: Timetable
    precision: Precision
    journal: Journal
    look: Callable[[Tensor], Mapping[str, float]]
    """Judges the learner as it is, given the newest codes z."""
    save: Callable[[int], None]
    """Keeps the learner as it is, given how many steps it has made."""
    watcher: LoopWatcher
    every: int
    """Steps between two looks; 0 looks at the end only."""
    pace: Pace = field(default_factory=Pace)

    def run(self, first: int = 0) -> Pace:
        """Train from step `first` to the end of the timetable."""
        self.learner.train()
        pending: list[tuple[int, Losses]] = []
        since = perf_counter()
        for step, views, waited in self.feed.steps(first, self.timetable.total):
            losses = train_step(
                self.learner,
                self.optimiser,
                views,
                rate=self.timetable.rate(step),
                peak=self.timetable.peak_lr,
                precision=self.precision,
            )
            pending.append((step, losses))
            self.pace.waited += waited
            look_now = self._is_look(step + 1)
            if look_now or len(pending) == SETTLE_EVERY:
                self._settle(pending, since)
                if look_now:
                    self._look(step + 1, losses)
                pending, since = [], perf_counter()
        return self.pace

    def _is_look(self, done: int) -> bool:
        return done == self.timetable.total or (self.every > 0 and done % self.every == 0)

    def _settle(self, pending: list[tuple[int, Losses]], since: float) -> None:
        """Fetch the losses of the last steps, refuse what is not a number, write the journal."""
        rows = [self._row(step, losses) for step, losses in pending]
        synchronise(self.precision.device)
        self.pace.seconds += perf_counter() - since
        self.pace.images += len(rows) * self.feed.batch
        good = [row for row in rows if math.isfinite(row["loss"])]
        self.journal.write(good)
        if len(good) < len(rows):
            bad = next(row["step"] for row in rows if not math.isfinite(row["loss"]))
            raise DivergedError(f"the loss is no longer a finite number after step {bad}.")
        self.watcher.stepped(rows[-1], self.pace)

    def _row(self, step: int, losses: Losses) -> dict[str, Any]:
        rate = self.timetable.rate(step)
        numbers = {"loss": losses.total.detach(), **losses.terms}
        return {
            "kind": "step",
            "step": step + 1,
            "epoch": (step + 1) / self.feed.steps_per_epoch,
            **{name: float(value) for name, value in numbers.items()},
            "lr": rate,
        }

    def _look(self, done: int, losses: Losses) -> None:
        assert losses.codes is not None
        if not all(bool(torch.isfinite(p).all()) for p in self.learner.parameters()):
            raise DivergedError(f"the weights are no longer finite numbers after step {done}.")
        row = {"kind": "look", "step": done, "epoch": done / self.feed.steps_per_epoch, **self.look(losses.codes)}
        self.journal.write([row])
        self.watcher.looked(row)
        self.save(done)
