"""Twenty steps of every method, by as many processes as there are.

torchrun --nproc-per-node 2 tests/team/every_method.py CONFIG OUT
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from phinets import team
from phinets.config.methods import METHODS
from phinets.config.run import RunConfig
from phinets.engine.distributed import joined
from phinets.engine.step import train_step
from phinets.experiments.folder import read_config_of
from phinets.experiments.pretraining import pretraining


def trajectory(config: RunConfig) -> dict[str, Any]:
    """The losses of a run's steps, and the learner that they led to."""
    bench = pretraining(config).bench
    losses = []
    for step, part in enumerate(bench.course.stream(0, bench.course.total)):
        rate, peak = bench.course.rate(step), bench.course.peak_lr
        made = train_step(bench.trainee, [part.views], rate=rate, peak=peak)
        losses.append(team.mean(torch.stack([made.total, *made.terms.values()])))
    return {"losses": torch.stack(losses), "learner": bench.trainee.learner.state_dict()}


if __name__ == "__main__":
    described = read_config_of(RunConfig, Path(sys.argv[1]))
    with joined():
        found = {name: trajectory(replace(described, method=name)) for name in METHODS}
        if team.is_first():
            torch.save(found, sys.argv[2])
