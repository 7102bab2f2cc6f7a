"""A learner and what changes its weights: all that a checkpoint must bring back."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from phinets.config.errors import UserError
from phinets.engine.device import Precision
from phinets.methods import Learner


@dataclass(frozen=True, kw_only=True)
class Trainee:
    """The one who learns."""

    learner: Learner
    optimiser: torch.optim.Optimizer
    precision: Precision
    model: nn.Module
    """What is called: the learner itself or, in a team, the wrapper that averages its gradients."""

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, beside the config and the step's number."""
        return {
            "learner": self.learner.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.precision.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `state` was taken from."""
        try:
            self.learner.load_state_dict(state["learner"])
            self.optimiser.load_state_dict(state["optimiser"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise UserError(f"the checkpoint does not fit this run's learner: {error}.") from error
        if state["scaler"]:  # empty where the precision needs no scaling
            self.precision.scaler.load_state_dict(state["scaler"])

    def exchange(self, now: bool) -> AbstractContextManager[None]:
        """The context of a backward pass: whether a team exchanges gradients in it, or only adds them up."""
        if now or not isinstance(self.model, DistributedDataParallel):
            return nullcontext()
        return self.model.no_sync()

    def is_finite(self) -> bool:
        """Whether every weight is still a number."""
        return all(bool(torch.isfinite(p).all()) for p in self.learner.parameters())
