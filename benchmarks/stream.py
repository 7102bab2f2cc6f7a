"""What it costs that pictures are drawn while they arrive: `stream:shapes` beside `shapes` in memory, in one run.

Both feed the same learner, in turn, round after round; the ratio is the median over the rounds of the ratio within a
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
from phinets.runs.cost import Turn, contender, loader, ratio_of_times, take_turns
from phinets.runs.recipes import SMALL_HEADS
from phinets.runtime.devices import pick_device
from phinets.training.loader import Clocked, MicroBatch, ViewLoader, prefetch
from phinets.training.step import TrainState, train_step

KEPT, ARRIVING = "shapes", "stream:shapes"


@dataclass(frozen=True)
class Options:
    """Images per second while learning from pictures in memory, and from pictures that are drawn as they arrive."""

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
    train_state = contender(config, device)
    loaders = {name: feed_of(name, config, options.steps, device) for name in (KEPT, ARRIVING)}
    waits: dict[str, list[float]] = {name: [] for name in loaders}
    turns = {name: turn_of(train_state, made, waits[name]) for name, made in loaders.items()}
    times = take_turns(turns, options.rounds, device)
    n = options.steps * options.batch
    document = {
        "setting": f"{options.method}, {options.backbone}, batch {options.batch}, {device}",
        "images_per_second": {name: n / median(times[name]) for name in loaders},
        "time_to_shapes": ratio_of_times(times, ARRIVING, KEPT),
        "waited": {name: median(waits[name]) / median(times[name]) for name in loaders},
        "drawing": n / median(drawn(loaders[ARRIVING]) for _ in range(options.rounds)),
    }
    print(json.dumps(document) if options.json else table(document))


def feed_of(name: str, config: PretrainConfig, steps: int, device: torch.device) -> ViewLoader:
    """What shows these data."""
    source = replace(config.source, train_images=steps * config.batch, test_images=1)
    return replace(loader(config, device), images=load(name, source).train.images)


def turn_of(train_state: TrainState, made: ViewLoader, waits: list[float]) -> Turn:
    """The turn of a feed: one pass; `waits` is told how long it was waited for."""
    return Turn(lambda: waits.append(learned(train_state, made)), train_state.optimizer.zero_grad, lambda: 0)


def learned(train_state: TrainState, made: ViewLoader) -> float:
    """One pass; the seconds in which a step waited for its views."""
    parts: Clocked[MicroBatch] = Clocked(made.batches(0, made.steps_per_epoch))
    for part in parts:
        train_step(train_state, [part.views], rate=1e-3, peak=1e-3)
    return parts.waited


def drawn(made: ViewLoader) -> float:
    """Seconds in which all pictures are drawn, a batch at a time, by the thread that makes views."""
    began = perf_counter()
    for _ in prefetch(partial(made.images.fetch, rows) for rows in torch.arange(len(made.images)).split(made.batch)):
        pass
    return perf_counter() - began


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    speeds, waited = document["images_per_second"], document["waited"]
    lines = [document["setting"]]
    lines += [f"{name:14}{speeds[name]:9.0f} images/s, {100 * waited[name]:4.1f} % waiting" for name in speeds]
    lines.append(f"time of {ARRIVING} to {KEPT}: {document['time_to_shapes']:.3f}")
    lines.append(f"drawing alone: {document['drawing']:.0f} images/s")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
