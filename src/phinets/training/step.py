"""The one function that changes weights."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from phinets.config.errors import UserError
from phinets.methods import Learner, Losses
from phinets.runtime import distributed
from phinets.runtime.devices import Precision
from phinets.training.optimizers import set_rates
from phinets.views import Views, random_stream

_BUFFERS = next(
    name
    for name in ("forward_sync_buffers", "broadcast_buffers")
    if name in signature(DistributedDataParallel).parameters
)
"""What torch calls the exchange of buffers before each forward; the name has changed between its versions."""


@dataclass(frozen=True, kw_only=True)
class TrainState:
    """The one who learns."""

    learner: Learner
    optimizer: torch.optim.Optimizer
    precision: Precision
    model: nn.Module
    """What is called: the learner itself or, in a team, the wrapper that averages its gradients."""

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, beside the config and the step's number."""
        return {
            "learner": self.learner.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.precision.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Become what `state` was taken from."""
        try:
            self.learner.load_state_dict(state["learner"])
            self.optimizer.load_state_dict(state["optimizer"])
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


def wrap_distributed(learner: Learner, device: torch.device, image_size: int) -> nn.Module:
    """The learner as its share of a team, whose gradients are the mean over all; alone, the learner itself."""
    if distributed.world_size() == 1:
        return learner
    unsynchronized: dict[str, Any] = {_BUFFERS: False}
    return DistributedDataParallel(
        learner,
        device_ids=[device] if device.type == "cuda" else None,
        **unsynchronized,  # norms and queues are the same everywhere by themselves
        find_unused_parameters=has_idle_parameters(learner, device, image_size),
    )


def has_idle_parameters(learner: Learner, device: torch.device, image_size: int) -> bool:
    """Whether some parameter takes no part in the loss, such as g where Sim-2 weighs nothing; found by trying."""
    twin = deepcopy(learner)
    dtype = next(learner.parameters()).dtype
    images = torch.rand(4, 3, image_size, image_size, generator=random_stream(0, "trial")).to(device, dtype)
    twin(Views(images, images.flip(0), images)).total.backward()
    return any(p.requires_grad and p.grad is None for p in twin.parameters())


def train_step(train_state: TrainState, parts: Iterable[Views], *, count: int = 1, rate: float, peak: float) -> Losses:
    """One optimizer step on a batch of views that comes in `count` equal parts, and what follows slowly follows.

    The gradient is the mean of the parts' own: that of the whole batch wherever the loss is a mean over images, which
    batch norm and Barlow Twins' correlation are not.
    """
    set_rates(train_state.optimizer, rate=rate, peak=peak)
    train_state.optimizer.zero_grad(set_to_none=True)
    seen = [_learn_from(train_state, views, i + 1 == count, count) for i, views in enumerate(parts)]
    assert len(seen) == count
    train_state.precision.step(train_state.optimizer)
    train_state.learner.after_step()
    return seen[0] if count == 1 else _joined(seen)


def _learn_from(train_state: TrainState, views: Views, last: bool, count: int) -> Losses:
    with train_state.exchange(last):
        with train_state.precision.autocast():
            losses: Losses = train_state.model(views)
        train_state.precision.backward(losses.total / count)
    return Losses(losses.total.detach(), losses.terms, losses.codes)


def _joined(seen: list[Losses]) -> Losses:
    """The losses of a batch from those of its parts."""
    terms = {name: torch.stack([part.terms[name] for part in seen]).mean() for name in seen[0].terms}
    codes = [part.codes for part in seen if part.codes is not None]
    return Losses(torch.stack([part.total for part in seen]).mean(), terms, torch.cat(codes) if codes else None)
