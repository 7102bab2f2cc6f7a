"""A few steps over two tasks with mixup replay and distillation, by as many processes as there are.

torchrun --nproc-per-node 2 tests/runtime/replay_ranks.py OUT
"""

import sys
from typing import Any

import torch

import phinets
from phinets.config.continual import ReplayOptions
from phinets.config.methods import LearnerOptions
from phinets.config.run import Optimization
from phinets.config.views import PLANS
from phinets.continual.replay import Replay
from phinets.data import InMemory
from phinets.methods import distil
from phinets.runtime import distributed
from phinets.runtime.batch_norm import synchronize_norms
from phinets.runtime.devices import Precision
from phinets.runtime.distributed import process_group
from phinets.training.loader import ViewLoader
from phinets.training.optimizers import build_optimizer
from phinets.training.step import TrainState, train_step, wrap_distributed

FAMILIES = ("x-phinet/cosine", "barlow-twins", "moco-v2")
CPU, SIZE, BATCH, STEPS, BORDER = torch.device("cpu"), 16, 16, 10, 5
SMALL = LearnerOptions(projector=(16, 12), h_hidden=(8,), g_hidden=(8,), queue=32)


def trajectory(method: str) -> dict[str, Any]:
    """The losses of the steps, and the learner and the buffer that they led to."""
    train_state, replay = _trainee(method), Replay(ReplayOptions(replay="mixup", buffer=24), _feed(method))
    loader, losses = replay.loader, []
    for step, part in enumerate(loader.batches(0, STEPS)):
        if step == BORDER:
            train_state.learner.begin_task(1)
        made = train_step(train_state, [replay.mix(step, 0, part)], rate=0.05, peak=0.05)
        replay.add(step, [part], loader.images)
        losses.append(distributed.mean_over_ranks(torch.stack([made.total, *made.terms.values()])))
    return {"losses": torch.stack(losses), "learner": train_state.learner.state_dict(), "buffer": replay.state()}


def _feed(method: str) -> ViewLoader:
    pixels = torch.randint(0, 256, (64, 3, SIZE, SIZE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    anchor = phinets.learner(method, backbone="resnet-tiny", image_size=SIZE).anchor
    shared: dict[str, Any] = {"dtype": torch.float64, "rank": distributed.rank(), "ranks": distributed.world_size()}
    images = InMemory(pixels)
    return ViewLoader(
        images=images, plan=PLANS["ucl"], anchor=anchor, batch=BATCH, seed=1, size=SIZE, device=CPU, **shared
    )


def _trainee(method: str) -> TrainState:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        learner = distil(phinets.learner(method, backbone="resnet-tiny", image_size=SIZE, options=SMALL), hidden=(8,))
    learner = learner.double()
    if distributed.world_size() > 1:
        synchronize_norms(learner, CPU)
    return TrainState(
        learner=learner,
        optimizer=build_optimizer(learner, Optimization()),
        precision=Precision("fp64", CPU),
        model=wrap_distributed(learner, CPU, SIZE),
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    with process_group():
        every = distributed.gather_objects([{name: trajectory(name) for name in FAMILIES}])
        if distributed.is_rank_zero():
            torch.save(every, sys.argv[1])
