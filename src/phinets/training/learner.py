"""The learner of a run: its weights from the seed, on its device."""

from typing import TypeVar

import torch

from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError
from phinets.config.run import TrainConfig
from phinets.methods import Learner, distil, learner
from phinets.runtime import distributed
from phinets.runtime.batch_norm import synchronize_norms
from phinets.views import random_stream

C = TypeVar("C", bound=TrainConfig)


def build_learner(config: TrainConfig, device: torch.device, dtype: torch.dtype) -> Learner:
    """The learner with the weights that the seed gives, on its device."""
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


def bare_learner(config: TrainConfig) -> Learner:
    """The learner that a config describes, with whatever weights torch's generator gives."""
    size = config.source.image_size
    model = learner(config.method, backbone=config.backbone, image_size=size, options=config.learner)
    if isinstance(config, ContinualConfig) and config.memory.distil == "cassle":
        distil(model, weight=config.memory.distil_weight, hidden=config.memory.distil_hidden)
    return model


def _compile(model: Learner, size: int, device: torch.device, dtype: torch.dtype) -> None:
    """Compile the encoders, and try f once, so that a machine that can't is found out before anything is written."""
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
