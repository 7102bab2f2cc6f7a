"""Twenty steps of every method, by as many processes as there are.

torchrun --nproc-per-node 2 tests/runtime/every_method.py CONFIG OUT
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from phinets.config.methods import METHODS
from phinets.config.run import PretrainConfig
from phinets.runs.pretrain import Pretrain
from phinets.runtime import distributed
from phinets.runtime.distributed import process_group
from phinets.training.run_folder import read_config_of
from phinets.training.step import train_step


def trajectory(config: PretrainConfig) -> dict[str, Any]:
    """The losses of a run's steps, and the learner that they led to."""
    run_parts = Pretrain.build(config).run_parts
    losses = []
    for step, part in enumerate(run_parts.schedule.batches(0, run_parts.schedule.total)):
        rate, peak = run_parts.schedule.rate(step), run_parts.schedule.peak_lr
        made = train_step(run_parts.train_state, [part.views], rate=rate, peak=peak)
        losses.append(distributed.mean_over_ranks(torch.stack([made.total, *made.terms.values()])))
    return {"losses": torch.stack(losses), "learner": run_parts.train_state.learner.state_dict()}


if __name__ == "__main__":
    described = read_config_of(PretrainConfig, Path(sys.argv[1]))
    with process_group():
        found = {name: trajectory(replace(described, method=name)) for name in METHODS}
        if distributed.is_rank_zero():
            torch.save(found, sys.argv[2])
