"""Training a detector: the step that changes its weights, and the loop around it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from phinets.config.detection import DetectorTraining
from phinets.config.errors import UserError
from phinets.detection.c4 import Detector
from phinets.detection.lessons import Shown
from phinets.training.checkpoint import Keeper
from phinets.training.journal import Journal
from phinets.training.loader import ahead
from phinets.views import random_stream

TERMS = {
    "loss_objectness": "objectness",
    "loss_rpn_box_reg": "anchors",
    "loss_classifier": "classes",
    "loss_box_reg": "boxes",
}
"""torchvision's names for the four losses, and ours."""


@dataclass(frozen=True)
class DetectorTrainState:
    """A detector and what changes its weights: all that a checkpoint must bring back."""

    detector: Detector
    optimizer: torch.optim.Optimizer
    device: torch.device

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, beside the config and the step's number."""
        return {"detector": self.detector.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become what `state` was taken from."""
        try:
            self.detector.load_state_dict(state["detector"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise UserError(f"the checkpoint does not fit this detector: {error}.") from error


def detector_train_state(detector: Detector, how: DetectorTraining, device: torch.device) -> DetectorTrainState:
    """The detector on its device, with SGD on every weight."""
    detector = detector.to(device)
    optimizer = torch.optim.SGD(
        detector.parameters(), lr=how.peak_lr, momentum=how.momentum, weight_decay=how.weight_decay
    )
    return DetectorTrainState(detector, optimizer, device)


def detector_step(
    train_state: DetectorTrainState, parts: Sequence[Sequence[Shown]], *, rate: float, draws: int
) -> dict[str, float]:
    """One step of SGD on the sum of the four losses, the gradient being the mean over the parts of the batch.

    Which anchors and regions count is drawn by torch's own generator, which `draws` seeds and which is put back.
    """
    train_state.detector.train()
    for group in train_state.optimizer.param_groups:
        group["lr"] = rate
    train_state.optimizer.zero_grad(set_to_none=True)
    total = dict.fromkeys(TERMS.values(), 0.0)
    with torch.random.fork_rng(devices=[train_state.device] if train_state.device.type == "cuda" else []):
        torch.manual_seed(draws)
        for part in parts:
            losses = train_state.detector([Shown(*(value.to(train_state.device) for value in shown)) for shown in part])
            (torch.stack(list(losses.values())).sum() / len(parts)).backward()
            for name, value in losses.items():
                total[TERMS[name]] += float(value.detach()) / len(parts)
    train_state.optimizer.step()
    return {"loss": sum(total.values()), **total}


@dataclass(kw_only=True)
class DetectorLoop:
    """Everything that one training of a detector needs, and `run`, which does it."""

    train_state: DetectorTrainState
    lesson: Callable[[int], Sequence[Shown]]
    """The pictures of a step."""
    how: DetectorTraining
    accumulate: int
    seed: int
    journal: Journal
    keeper: Keeper
    save: Callable[[int], None]
    """Keeps the detector as it is, given how many steps it has made."""
    stop: Callable[[], bool]
    """Whether somebody has asked this process to stop."""
    watch: Callable[[Mapping[str, Any]], None]
    """Is told each line of the journal."""
    stopped: bool = False
    """Whether it was left because somebody asked."""

    def run(self, first: int = 0) -> int:
        """Train from step `first` to the end, or until asked to stop; how many steps are made."""
        for step, pictures in enumerate(self._lessons(first), first):
            self._step(step, pictures)
            done = step + 1
            self.stopped = self.stop()
            last = done == self.how.iterations
            if last or self.stopped or self.keeper.is_due(done) or self.keeper.clock_asks():
                self.save(done)
            if self.stopped:
                return done
        return self.how.iterations

    def _lessons(self, first: int) -> Iterator[Sequence[Shown]]:
        """The pictures of every step. Where some can't be had, the steps made so far are kept before that is said."""
        done = first
        try:
            for pictures in ahead(partial(self.lesson, step) for step in range(first, self.how.iterations)):
                yield pictures
                done += 1
        except UserError:
            if done > first:
                self.save(done)
            raise

    def _step(self, step: int, pictures: Sequence[Shown]) -> None:
        size = len(pictures) // self.accumulate
        parts = [pictures[i * size : (i + 1) * size] for i in range(self.accumulate)]
        draws = random_stream(self.seed, "sampling", step).initial_seed()
        losses = detector_step(self.train_state, parts, rate=self.how.rate(step), draws=draws)
        if not math.isfinite(losses["loss"]):
            raise UserError(
                f"the detector has diverged: the loss is no longer a finite number after step {step + 1}. Begin anew "
                f"with a lower learning rate (--lr {self.how.lr / 4:g}) or a longer warm-up (--warmup)."
            )
        row = {"kind": "step", "step": step + 1, **losses, "lr": self.how.rate(step)}
        self.journal.write([row])
        self.watch(row)
