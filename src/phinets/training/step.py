"""The train state of a run, and `train_step`, which changes a learner's weights during pretraining."""

from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError
from phinets.config.run import TrainConfig
from phinets.methods import Learner, Losses, distil, learner
from phinets.runtime import distributed
from phinets.runtime.batch_norm import synchronize_norms
from phinets.runtime.devices import Precision
from phinets.training.optimizers import build_optimizer, set_rates
from phinets.training.parallel_views import ParallelViews, parallel_views
from phinets.views import Views, random_stream

_OPTIONS = signature(DistributedDataParallel).parameters
_BUFFERS = "forward_sync_buffers" if "forward_sync_buffers" in _OPTIONS else "broadcast_buffers"
"""What torch calls the synchronization of buffers before each forward, in its different versions."""


@dataclass(frozen=True, kw_only=True)
class BaseTrainState:
    """A module, its optimizer and its precision: what a checkpoint restores."""

    learner: nn.Module
    optimizer: torch.optim.Optimizer
    precision: Precision

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, beside the config and the step number."""
        return {
            "learner": self.learner.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.precision.scaler.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Load a stored state."""
        try:
            self.learner.load_state_dict(state["learner"])
            self.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise UserError(f"the checkpoint does not fit this run's learner: {error}.") from error
        if state["scaler"]:  # empty where the precision needs no scaling
            self.precision.scaler.load_state_dict(state["scaler"])

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.precision.device

    def train(self) -> None:
        """Set training mode."""
        self.learner.train()

    def is_finite(self) -> bool:
        """Whether every weight is finite."""
        return all(bool(torch.isfinite(p).all()) for p in self.learner.parameters())


@dataclass(frozen=True, kw_only=True)
class TrainState(BaseTrainState):
    """A learner, its optimizer and its precision."""

    learner: Learner
    model: nn.Module
    """The module that is called: the learner or, in a distributed run, its DistributedDataParallel wrapper."""
    parallel_views: ParallelViews | None = None
    """Encodes the views of a step in two threads; None: f encodes them in turn."""

    def step(self, batches: Sequence[Views], *, rate: float, peak: float) -> Losses:
        """`train_step` on these micro-batches."""
        return train_step(self, batches, rate=rate, peak=peak)


def build_train_state(config: TrainConfig, learner: Learner, precision: Precision) -> TrainState:
    """The learner with its optimizer; called once the learner has all of its modules."""
    optimizer = build_optimizer(learner, config.optimization)
    model = wrap_distributed(learner, precision.device, config.source.image_size)
    plain = model is learner and not config.compute.compile
    views = parallel_views(learner, precision) if plain else None
    return TrainState(learner=learner, optimizer=optimizer, precision=precision, model=model, parallel_views=views)


def build_learner(config: TrainConfig, device: torch.device, dtype: torch.dtype) -> Learner:
    """The learner on its device, with weights drawn from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(config.seed, "init").initial_seed())
        model = bare_learner(config)
    model = model.to(device, dtype)
    if distributed.world_size() > 1:
        synchronize_norms(model, device)
    if config.compute.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if config.compute.compile:
        _compile(model, config.source.image_size, device, dtype)
    return model


def untrained_learner(config: TrainConfig, like: Learner) -> Learner:
    """The learner of a run before its first step, on the device and in the precision of `like`."""
    weights = next(like.parameters())
    config = replace(config, compute=replace(config.compute, compile=False))
    return build_learner(config, weights.device, weights.dtype)


def bare_learner(config: TrainConfig) -> Learner:
    """The learner that a config describes, with weights from torch's generator."""
    size = config.source.image_size
    model = learner(config.method, backbone=config.backbone, image_size=size, options=config.learner)
    if isinstance(config, ContinualConfig) and config.memory.distil == "cassle":
        distil(model, weight=config.memory.distil_weight, hidden=config.memory.distil_hidden)
    return model


def _compile(model: Learner, size: int, device: torch.device, dtype: torch.dtype) -> None:
    """Compile the encoders, and run f once, so that a failure shows before anything is written."""
    for encoder in filter(None, (model.f, model.slow)):
        encoder.compile()
    try:
        with torch.no_grad():
            model.f.eval()(torch.zeros(2, 3, size, size, device=device, dtype=dtype))
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(f"torch.compile does not work here: {first}. Leave out --compile.") from error
    finally:
        model.train()


def wrap_distributed(learner: Learner, device: torch.device, image_size: int) -> nn.Module:
    """The learner in a wrapper that averages gradients over processes; in a single process, the learner itself."""
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
    """Whether some parameter gets no gradient, such as those of g where Sim-2 has weight 0; found by a trial step."""
    twin = deepcopy(learner)
    dtype = next(learner.parameters()).dtype
    images = torch.rand(4, 3, image_size, image_size, generator=random_stream(0, "trial")).to(device, dtype)
    twin(Views(images, images.flip(0), images)).total.backward()
    return any(p.requires_grad and p.grad is None for p in twin.parameters())


def train_step(train_state: TrainState, batches: Sequence[Views], *, rate: float, peak: float) -> Losses:
    """One optimizer step on the micro-batches of a batch, then the learner's `after_step` (EMA, queue).

    The gradient is the mean over the micro-batches. That is the gradient of the whole batch where the loss is a mean
    over images, which it is not with batch norm and Barlow Twins' correlation.
    """
    set_rates(train_state.optimizer, rate=rate, peak=peak)
    train_state.optimizer.zero_grad(set_to_none=True)
    count = len(batches)
    with nullcontext() if train_state.parallel_views is None else train_state.parallel_views.step():
        losses = [_backward(train_state, views, i + 1 == count, count) for i, views in enumerate(batches)]
        train_state.precision.step(train_state.optimizer)
        train_state.learner.after_step()
    return mean_losses(losses)


def _backward(train_state: TrainState, views: Views, last: bool, count: int) -> Losses:
    """Add a micro-batch's gradient; the processes average the gradients of a batch in its last one only."""
    model = train_state.model
    with nullcontext() if last or not isinstance(model, DistributedDataParallel) else model.no_sync():
        with train_state.precision.autocast():
            losses: Losses = model(views)
        train_state.precision.backward(losses.total / count)
        if train_state.parallel_views is not None:
            train_state.parallel_views.backward()
    return Losses(losses.total.detach(), losses.terms, losses.codes)


def mean_losses(losses: Sequence[Losses]) -> Losses:
    """The losses of a batch from those of its micro-batches."""
    if len(losses) == 1:
        return losses[0]
    terms = {name: torch.stack([one.terms[name] for one in losses]).mean() for name in losses[0].terms}
    codes = [one.codes for one in losses if one.codes is not None]
    return Losses(torch.stack([one.total for one in losses]).mean(), terms, torch.cat(codes) if codes else None)
