"""Training a detector: the step that changes its weights, and the loop around it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from phinets.config.detection import DetectorOptimization
from phinets.config.errors import UserError
from phinets.detection.c4 import Detector
from phinets.detection.loader import Sample
from phinets.training.checkpoint import Keeper
from phinets.training.journal import Journal
from phinets.training.loader import prefetch
from phinets.training.loop import DivergedError
from phinets.views import random_stream

TERMS = {
    "loss_objectness": "objectness",
    "loss_rpn_box_reg": "anchors",
    "loss_classifier": "classes",
    "loss_box_reg": "boxes",
}
"""torchvision's names of the four losses, and ours."""


@dataclass(frozen=True)
class DetectorTrainState:
    """A detector and its optimizer: what a checkpoint restores."""

    detector: Detector
    optimizer: torch.optim.Optimizer
    device: torch.device

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, beside the config and the step's number."""
        return {"detector": self.detector.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what `state` returned."""
        try:
            self.detector.load_state_dict(state["detector"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise UserError(f"the checkpoint does not fit this detector: {error}.") from error


def detector_train_state(
    detector: Detector, training: DetectorOptimization, device: torch.device
) -> DetectorTrainState:
    """The detector on its device, with SGD on every weight."""
    detector = detector.to(device)
    optimizer = torch.optim.SGD(
        detector.parameters(), lr=training.peak_lr, momentum=training.momentum, weight_decay=training.weight_decay
    )
    return DetectorTrainState(detector, optimizer, device)


def detector_step(
    train_state: DetectorTrainState, micro_batches: Sequence[Sequence[Sample]], *, lr: float, seed: int
) -> dict[str, float]:
    """One step of SGD on the sum of the four losses; the gradient is the mean over the micro-batches.

    torch's global generator samples the anchors and regions in the loss; `seed` seeds it, and it is restored after.
    """
    train_state.detector.train()
    for group in train_state.optimizer.param_groups:
        group["lr"] = lr
    train_state.optimizer.zero_grad(set_to_none=True)
    total, count = dict.fromkeys(TERMS.values(), 0.0), len(micro_batches)
    with torch.random.fork_rng(devices=[train_state.device] if train_state.device.type == "cuda" else []):
        torch.manual_seed(seed)
        for samples in micro_batches:
            losses = train_state.detector([Sample(*(value.to(train_state.device) for value in s)) for s in samples])
            (torch.stack(list(losses.values())).sum() / count).backward()
            for name, value in losses.items():
                total[TERMS[name]] += float(value.detach()) / count
    train_state.optimizer.step()
    return {"loss": sum(total.values()), **total}


@dataclass(kw_only=True)
class DetectorLoop:
    """The training loop of a detector."""

    train_state: DetectorTrainState
    batch_of: Callable[[int], Sequence[Sample]]
    """The samples of a step."""
    training: DetectorOptimization
    accumulate: int
    seed: int
    journal: Journal
    keeper: Keeper
    save: Callable[[int], None]
    """Writes a checkpoint, given the number of steps done."""
    stop_requested: Callable[[], bool]
    on_step: Callable[[Mapping[str, Any]], None]
    """Called with each row of the journal."""
    stopped: bool = False
    """Whether a stop request ended the loop."""

    def run(self, first: int = 0) -> int:
        """Train from step `first` to the end or a stop request; returns the number of steps done."""
        for step, samples in enumerate(self._batches(first), first):
            self._step(step, samples)
            done = step + 1
            self.stopped = self.stop_requested()
            last = done == self.training.iterations
            if last or self.stopped or self.keeper.is_due(done) or self.keeper.timer_expired():
                self.save(done)
            if self.stopped:
                return done
        return self.training.iterations

    def _batches(self, first: int) -> Iterator[Sequence[Sample]]:
        """The samples of every step. A checkpoint is written before an error in an image is raised."""
        done = first
        try:
            for samples in prefetch(partial(self.batch_of, step) for step in range(first, self.training.iterations)):
                yield samples
                done += 1
        except UserError:
            if done > first:
                self.save(done)
            raise

    def _step(self, step: int, samples: Sequence[Sample]) -> None:
        size, lr = len(samples) // self.accumulate, self.training.rate(step)
        micro_batches = [samples[i * size : (i + 1) * size] for i in range(self.accumulate)]
        seed = random_stream(self.seed, "sampling", step).initial_seed()
        losses = detector_step(self.train_state, micro_batches, lr=lr, seed=seed)
        if not math.isfinite(losses["loss"]):
            raise DivergedError(f"the loss is not finite after step {step + 1}.")
        row = {"kind": "step", "step": step + 1, **losses, "lr": lr}
        self.journal.write([row])
        self.on_step(row)
