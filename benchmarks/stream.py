"""The cost of drawing images while training: `stream:shapes` beside `shapes` in memory, in one run.

Both train the same learner, in turn, round after round; the ratio is the median over the rounds of the ratio within a
round. `drawing` is what drawing alone gives on the one core that makes the views.

    python benchmarks/stream.py                                 # resnet-tiny with the default recipe's heads
    python benchmarks/stream.py --batch 512 --steps 5
"""

import json
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import torch
import tyro

from phinets.config.run import PretrainConfig
from phinets.data import load
from phinets.runs.cost import BenchmarkCase, loader, new_train_state, ratio_of_times, time_rounds
from phinets.runs.recipes import SMALL_HEADS
from phinets.runtime.devices import pick_device
from phinets.training.loader import ViewLoader, prefetch
from phinets.training.step import TrainState, train_step

IN_MEMORY, STREAM = "shapes", "stream:shapes"


@dataclass(frozen=True)
class Options:
    """Images per second while learning from images in memory, and from images that are drawn as they arrive."""

    method: str = "x-phinet/cosine"
    """Which learner."""
    backbone: str = "resnet-tiny"
    """Which encoder."""
    batch: int = 128
    """Images per step."""
    steps: int = 12
    """Steps in a turn."""
    rounds: int = 7
    """How often each takes its turn."""
    device: str = "auto"
    """Where."""
    json: bool = False
    """Print one JSON document."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    device = pick_device(options.device)
    config = PretrainConfig(method=options.method, backbone=options.backbone, batch=options.batch, learner=SMALL_HEADS)
    train_state = new_train_state(config, device)
    loaders = {name: build_loader(name, config, options.steps, device) for name in (IN_MEMORY, STREAM)}
    waits: dict[str, list[float]] = {name: [] for name in loaders}
    turns = {name: case_of(train_state, made, waits[name]) for name, made in loaders.items()}
    times = time_rounds(turns, options.rounds, device)
    n = options.steps * options.batch
    document = {
        "setting": f"{options.method}, {options.backbone}, batch {options.batch}, {device}",
        "images_per_second": {name: n / median(times[name]) for name in loaders},
        "time_to_shapes": ratio_of_times(times, STREAM, IN_MEMORY),
        "waited": {name: median(waits[name]) / median(times[name]) for name in loaders},
        "drawing": n / median(drawing_seconds(loaders[STREAM]) for _ in range(options.rounds)),
    }
    print(json.dumps(document) if options.json else table(document))


def build_loader(name: str, config: PretrainConfig, steps: int, device: torch.device) -> ViewLoader:
    """The loader of these data."""
    source = replace(config.source, train_images=steps * config.batch, test_images=1)
    return replace(loader(config, device), images=load(name, source).train.images)


def case_of(train_state: TrainState, loader: ViewLoader, waits: list[float]) -> BenchmarkCase:
    """One epoch; appends the seconds of data wait to `waits`."""
    return BenchmarkCase(
        lambda: waits.append(train_epoch(train_state, loader)), train_state.optimizer.zero_grad, lambda: 0
    )


def train_epoch(train_state: TrainState, loader: ViewLoader) -> float:
    """One epoch; returns the seconds in which a step waited for its views."""
    waited, start = 0.0, perf_counter()
    for batch in loader.batches(0, loader.steps_per_epoch):
        waited += perf_counter() - start
        train_step(train_state, [batch.views], rate=1e-3, peak=1e-3)
        start = perf_counter()
    return waited


def drawing_seconds(loader: ViewLoader) -> float:
    """Seconds in which all images are drawn, a batch at a time, by the thread that makes views."""
    began = perf_counter()
    for _ in prefetch(
        partial(loader.images.fetch, rows) for rows in torch.arange(len(loader.images)).split(loader.batch)
    ):
        pass
    return perf_counter() - began


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    speeds, waited = document["images_per_second"], document["waited"]
    lines = [document["setting"]]
    lines += [f"{name:14}{speeds[name]:9.0f} images/s, {100 * waited[name]:4.1f} % waiting" for name in speeds]
    lines.append(f"time of {STREAM} to {IN_MEMORY}: {document['time_to_shapes']:.3f}")
    lines.append(f"drawing alone: {document['drawing']:.0f} images/s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
