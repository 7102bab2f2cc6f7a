"""Schedules: pure functions of the step."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """When things happen, counted in optimiser steps from 0."""

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
