"""The loop around the step: feed, step, journal, look, save. It decides when; what is done is given to it."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any, Protocol

import torch
from torch import Tensor

from phinets.config.errors import CommonError
from phinets.data import BadImage, BadImages, Images
from phinets.methods import Losses
from phinets.runtime import distributed
from phinets.runtime.devices import synchronize
from phinets.runtime.distributed import Agreement
from phinets.training.checkpoint import Keeper
from phinets.training.journal import Journal
from phinets.training.loader import Clocked, MicroBatch
from phinets.training.schedule import RunSchedule
from phinets.training.step import TrainState, train_step
from phinets.views import Views

SETTLE_EVERY = 10  # steps whose losses are fetched from the device together


class DivergedError(CommonError):
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


class LoopCallback(Protocol):
    """Who looks on: told of steps as they are settled, of each look, and of what a person should know."""

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        """The newest line of the journal."""

    def on_eval(self, row: Mapping[str, Any]) -> None:
        """What a look found."""

    def on_message(self, text: str) -> None:
        """A sentence for a person."""


class Memory(Protocol):
    """What a learner keeps of the images that it has seen, to learn from them again."""

    def recalled(self, step: int, number: int, part: MicroBatch) -> Views:
        """What is learned from in part `number` of a step, in place of the part's own views."""

    def keep(self, step: int, parts: Sequence[MicroBatch], images: Images) -> None:
        """Told after the step what was seen in it: its parts, whose rows count in `images`."""


@dataclass(kw_only=True)
class Loop:
    """Everything that one training needs, and `run`, which does it. In a team, all processes run the same loop."""

    train_state: TrainState
    course: RunSchedule
    journal: Journal
    bad_images: BadImages
    keeper: Keeper
    look: Callable[[Tensor], Mapping[str, Any]]
    """Judges the learner as it is, given the newest codes z of the whole team."""
    save: Callable[[int], None]
    """Keeps the learner as it is, given how many steps it has made."""
    stop: Callable[[], bool]
    """Whether somebody has asked this process to stop."""
    callback: LoopCallback
    turns: Container[int] = ()
    """Steps before which `turn` is called."""
    turn: Callable[[int], None] = lambda step: None
    """What is done before such a step: where a stream is judged, and moves to its next task."""
    memory: Memory | None = None
    """What is learned from again; None where every image is seen in its own time only."""
    every: int
    """Steps between two looks; 0 looks at the end only."""
    eval_at_images: frozenset[int] = frozenset()
    """Further steps after which there is a look."""
    pace: Pace = field(default_factory=Pace)
    stopped: bool = False
    """Whether it was left because somebody asked."""

    def run(self, first: int = 0) -> int:
        """Train from step `first` to the end of the course, or until asked to stop; how many steps are made."""
        self.train_state.learner.train()
        self._pending: list[tuple[int, Losses]] = []
        self._bad: list[tuple[int, BadImage]] = []
        self._agreement = Agreement()
        self._since = perf_counter()
        parts = Clocked(self.course.stream(first, self.course.total))
        for step in range(first, self.course.total):
            self._turn(step)
            self._step(step, parts)
            if self.stopped:
                return step + 1
        self.stopped = self._agreement.at_last(self.stop())
        return self.course.total

    def _turn(self, step: int) -> None:
        """What happens between two steps comes after their lines in the journal, and is no part of the pace."""
        if step in self.turns:
            if self._pending:
                self._settle()
            self.turn(step)
            self._since = perf_counter()

    def _step(self, step: int, parts: Clocked[MicroBatch]) -> None:
        count = self.course.parts
        seen: list[MicroBatch] = []
        losses = train_step(
            self.train_state,
            self._views(step, islice(parts, count), seen),
            count=count,
            rate=self.course.rate(step),
            peak=self.course.peak_lr,
        )
        if self.memory is not None:
            self.memory.keep(step, seen, self.course.feed_at(step).images)
        self._pending.append((step, losses))
        self.pace.waited, parts.waited = self.pace.waited + parts.waited, 0.0
        self._afterwards(step + 1, losses)

    def _views(self, step: int, parts: Iterator[MicroBatch], seen: list[MicroBatch]) -> Iterator[Views]:
        for number, part in enumerate(parts):
            self._bad += ((step, one) for one in part.bad)
            if self.memory is None:
                yield part.views
            else:
                seen.append(part)
                yield self.memory.recalled(step, number, part)

    def _afterwards(self, done: int, losses: Losses) -> None:
        """Whatever is due after a step, in this order: journal, look, checkpoint."""
        self.stopped, clock = self._agreement(self.stop(), distributed.is_rank_zero() and self.keeper.clock_asks())
        last = done in self.course.ends
        look = last or (self.every > 0 and done % self.every == 0) or done in self.eval_at_images
        save = last or clock or self.stopped or self.keeper.is_due(done)
        if not (look or save or len(self._pending) == SETTLE_EVERY):
            return
        self._settle()
        if look:
            self._look(done, losses)
        if save:
            self._require_finite(done)
            self.save(done)
        self._since = perf_counter()

    def _settle(self) -> None:
        """Fetch the losses of the last steps, refuse what is not a number, write the journal."""
        numbers = self._numbers()
        synchronize(self.train_state.precision.device)
        self.pace.seconds += perf_counter() - self._since
        self.pace.images += len(numbers) * self.course.batch
        bad = self._everyone_s_bad()
        rows: list[dict[str, Any]] = []
        for (step, _), values in zip(self._pending, numbers, strict=True):
            rows += self.bad_rows(step + 1, [one for when, one in bad if when == step])
            if not math.isfinite(values["loss"]):
                self.journal.write(rows)
                raise DivergedError(f"the loss is no longer a finite number after step {step + 1}.")
            rows.append({**self._place("step", step + 1), **values, "lr": self.course.rate(step)})
        self.journal.write(rows)
        if bad:
            distributed.on_rank_zero(self.bad_images.require_few)
        self.callback.on_step(rows[-1], self.pace)
        self._pending, self._bad = [], []

    def _numbers(self) -> list[dict[str, float]]:
        """The losses of the pending steps, the mean over the team, fetched from the device together."""
        names = ("loss", *self._pending[0][1].terms)
        table = torch.stack([torch.stack([lo.total, *lo.terms.values()]).float() for _, lo in self._pending])
        return [dict(zip(names, values, strict=True)) for values in distributed.mean_over_ranks(table).tolist()]

    def _everyone_s_bad(self) -> list[tuple[int, BadImage]]:
        """The bad images that any process met; asked for only where there are some."""
        some = torch.tensor(float(len(self._bad)), device=self.train_state.precision.device)
        return sorted(distributed.gather_objects(self._bad)) if float(distributed.mean_over_ranks(some)) else []

    def _look(self, done: int, losses: Losses) -> None:
        assert losses.codes is not None
        self._require_finite(done)
        readings = self.look(distributed.gather_rows(losses.codes))
        row = {**self._place("eval", done), "images": done * self.course.batch, **readings}
        self.journal.write([*self.bad_rows(done), row])
        distributed.on_rank_zero(self.bad_images.require_few)
        self.callback.on_eval(row)

    def bad_rows(self, done: int, bad: Iterable[BadImage] = ()) -> list[dict[str, Any]]:
        """A line for every bad image that was not spoken of yet, and a word to the person."""
        self.bad_images.add(bad)
        fresh = self.bad_images.drain()
        for where, why in fresh:
            self.callback.on_message(f"'{where}' can't be used and is skipped: {why}.")
        return [{**self._place("bad-image", done), "path": where, "why": why} for where, why in fresh]

    def _place(self, kind: str, done: int) -> dict[str, Any]:
        return {"kind": kind, "step": done, "epoch": self.course.epochs(done)}

    def _require_finite(self, done: int) -> None:
        if not self.train_state.is_finite():
            raise DivergedError(f"the weights are no longer finite numbers after step {done}.")
