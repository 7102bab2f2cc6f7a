"""Training a detector: the step that changes its weights, and the batches and learning rates of its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch

from phinets.config.detection import DetectorOptimization
from phinets.data import BadImage
from phinets.detection.c4 import Detector
from phinets.detection.loader import DetectionLoader, Sample
from phinets.methods import Losses
from phinets.runtime.devices import Precision
from phinets.training.loader import prefetch
from phinets.training.step import BaseTrainState, mean_losses
from phinets.views import random_stream

TERMS = {
    "loss_objectness": "objectness",
    "loss_rpn_box_reg": "anchors",
    "loss_classifier": "classes",
    "loss_box_reg": "boxes",
}
"""torchvision's names of the four losses, and ours."""


class DetectorInput(NamedTuple):
    """What a detector computes at once."""

    samples: Sequence[Sample]
    seed: int
    """Of the sampling of anchors and regions in the loss."""


class DetectorBatch(NamedTuple):
    """A micro-batch of the training loop."""

    views: DetectorInput
    bad: tuple[BadImage, ...] = ()
    """None: a damaged image is an error."""


@dataclass(frozen=True, kw_only=True)
class DetectorSchedule:
    """The micro-batches and learning rates of all steps, as `training.schedule.RunSchedule` has them for learners."""

    loader: DetectionLoader
    training: DetectorOptimization
    micro_batches: int = 1

    @property
    def total(self) -> int:
        """Steps of the whole training."""
        return self.training.iterations

    @property
    def ends(self) -> tuple[int, ...]:
        """One task."""
        return (self.total,)

    @property
    def batch(self) -> int:
        """Images per step."""
        return self.loader.batch

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of the warm-up."""
        return self.training.peak_lr

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.training.rate(step)

    def epochs(self, done: int) -> float:
        """Passes over the images after `done` steps."""
        return done * self.batch / len(self.loader.images)

    def loader_at(self, step: int) -> DetectionLoader:
        """The loader."""
        return self.loader

    def batches(self, first: int, last: int) -> Iterator[DetectorBatch]:
        """The micro-batches of the steps from `first` to `last` − 1, those of one step prefetched."""
        for batches in prefetch(partial(self._micro_batches, step) for step in range(first, last)):
            yield from batches

    def _micro_batches(self, step: int) -> list[DetectorBatch]:
        samples, size = self.loader.batch_of(step), self.batch // self.micro_batches
        seeds = (random_stream(self.loader.seed, "sampling", step * self.micro_batches + i) for i in range(self.batch))
        return [
            DetectorBatch(DetectorInput(samples[start : start + size], seed.initial_seed()))
            for start, seed in zip(range(0, self.batch, size), seeds, strict=False)
        ]


@dataclass(frozen=True, kw_only=True)
class DetectorTrainState(BaseTrainState):
    """A detector and its optimizer."""

    learner: Detector

    def step(self, batches: Sequence[DetectorInput], *, rate: float, peak: float) -> Losses:
        """One step of SGD on the sum of the four losses; the gradient is the mean over the micro-batches."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        losses = mean_losses([self._backward(batch, len(batches)) for batch in batches])
        self.optimizer.step()
        return losses

    def _backward(self, batch: DetectorInput, count: int) -> Losses:
        """Add a micro-batch's gradient. torch's global generator samples in the loss; it is restored after."""
        samples = [Sample(*(value.to(self.device) for value in sample)) for sample in batch.samples]
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(batch.seed)
            losses = self.learner(samples)
        total = torch.stack(list(losses.values())).sum()
        (total / count).backward()
        return Losses(total.detach(), {TERMS[name]: value.detach() for name, value in losses.items()})


def detector_train_state(
    detector: Detector, training: DetectorOptimization, device: torch.device
) -> DetectorTrainState:
    """The detector on its device, with SGD on every weight."""
    detector = detector.to(device)
    optimizer = torch.optim.SGD(
        detector.parameters(), lr=training.peak_lr, momentum=training.momentum, weight_decay=training.weight_decay
    )
    return DetectorTrainState(learner=detector, optimizer=optimizer, precision=Precision("fp32", device))
