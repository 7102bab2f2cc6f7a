"""What a step costs: every learner beside SimSiam and beside the floor, in one run.

The floor is a bare forward and backward of two views through the backbone. All contenders take turns on the same
batch, round after round, and each ratio is the median over the rounds of the ratio within a round, so that a machine
that is busy for a while slows both sides alike. Memory is what torch holds at the worst moment of a step: the weights
and the optimiser's state, which are always there, and what the step needs beyond them.

    python benchmarks/step.py                                   # resnet-tiny with the default recipe's heads
    python benchmarks/step.py --backbone resnet18-cifar --heads paper --batch 32
"""

import json
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import torch
import tyro
from torch.profiler import ProfilerActivity, profile

from phinets import Views, learner
from phinets.backbones import backbone as backbone_called
from phinets.config.methods import METHODS, LearnerOptions
from phinets.config.run import Optimisation, Saving
from phinets.config.views import PLANS
from phinets.data import InMemory, Rejects
from phinets.data.shapes import draw
from phinets.engine.checkpoint import Keeper
from phinets.engine.device import Precision, pick_device, synchronise
from phinets.engine.feed import Feed, Part
from phinets.engine.journal import Journal
from phinets.engine.loop import Loop
from phinets.engine.optimisers import build_optimiser
from phinets.engine.schedules import Timetable
from phinets.engine.step import train_step
from phinets.engine.trainee import Trainee
from phinets.experiments.recipes import SMALL_HEADS
from phinets.experiments.watching import Silent
from phinets.methods import Learner

FLOOR = "floor"


@dataclass(frozen=True)
class Options:
    """Time and memory of one step of every learner, as ratios to SimSiam and to the floor."""

    backbone: str = "resnet-tiny"
    """Which encoder."""
    heads: Literal["small", "paper"] = "small"
    """The default recipe's heads (256), or the paper's (2048)."""
    batch: int = 128
    """Images per step."""
    rounds: int = 12
    """How often each contender takes its turn."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Which learners."""
    device: str = "auto"
    """Where."""
    json: bool = False
    """Print one JSON document."""


class Contender:
    """A learner with its optimiser, ready to make steps on one batch."""

    def __init__(self, name: str, options: Options, device: torch.device) -> None:
        heads = SMALL_HEADS if options.heads == "small" else LearnerOptions()
        self.learner: Learner = learner(name, backbone=options.backbone, options=heads).to(device)
        self.learner = self.learner.to(memory_format=torch.channels_last)
        self.optimiser = build_optimiser(self.learner, Optimisation())
        self.precision = Precision("auto", device)
        self.trainee = Trainee(
            learner=self.learner, optimiser=self.optimiser, precision=self.precision, model=self.learner
        )

    def held(self) -> int:
        """Bytes of the weights and of the optimiser's state."""
        state = (t for slot in self.optimiser.state.values() for t in slot.values())
        return _bytes(self.learner.state_dict().values()) + _bytes(state)

    def steps(self, views: Views, n: int = 1) -> None:
        for _ in range(n):
            train_step(self.trainee, [views], rate=1e-3, peak=1e-3)


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    device = pick_device(options.device)
    views = next(feed(options, device).stream(0, 1)).views
    turns = contenders(options, device, views)
    times = take_turns(turns, options.rounds, device)
    memory = {name: peak_memory(turn, device) for name, turn in turns.items()}
    document = {
        "backbone": options.backbone,
        "heads": options.heads,
        "batch": options.batch,
        "device": str(device),
        "learners": {name: row(name, times, memory) for name in turns},
        "loop": loop_cost(options, device),
    }
    print(json.dumps(document) if options.json else table(document))


def feed(options: Options, device: torch.device) -> Feed:
    images = torch.from_numpy(draw(range(4 * options.batch))[0])
    return Feed(
        images=InMemory(images),
        plan=PLANS["simsiam-cifar"],
        anchor="original",
        batch=options.batch,
        seed=0,
        size=32,
        device=device,
    )


@dataclass(frozen=True)
class Turn:
    """One go of a contender, and the bytes that it holds between two goes."""

    go: Callable[[], None]
    held: Callable[[], int]


def contenders(options: Options, device: torch.device, views: Views) -> dict[str, Turn]:
    """One turn per contender: a full step, or the floor's forward and backward."""
    encoder = backbone_called(options.backbone).to(device).to(memory_format=torch.channels_last)

    def floor() -> None:
        encoder.zero_grad(set_to_none=True)
        (encoder(views.first).mean() + encoder(views.second).mean()).backward()

    def turn(name: str) -> Turn:
        contender = Contender(name, options, device)
        return Turn(lambda: contender.steps(views), contender.held)

    bare = Turn(floor, lambda: _bytes(encoder.state_dict().values()))
    return {FLOOR: bare, **{name: turn(name) for name in options.methods}}


def take_turns(turns: Mapping[str, Turn], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Seconds of each contender in each round, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in turns}
    for i in range(rounds + 1):
        for name, turn in turns.items():
            began = perf_counter()
            turn.go()
            synchronise(device)
            if i > 0:
                times[name].append(perf_counter() - began)
    return times


def _bytes(tensors: Iterable[Any]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def peak_memory(turn: Turn, device: torch.device) -> int:
    """Bytes at the worst moment of a step."""
    return turn.held() + _extra(turn.go, device)


def _extra(go: Callable[[], None], device: torch.device) -> int:
    """Bytes that a step takes at its worst moment beyond those that were taken before it."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        go()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        go()
    events = seen.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    held = worst = 0
    for _, change in changes:
        held += change
        worst = max(worst, held)
    return worst


def row(name: str, times: dict[str, list[float]], memory: dict[str, int]) -> dict[str, float]:
    """A contender's figures."""

    def ratio(other: str) -> float:
        return statistics.median(a / b for a, b in zip(times[name], times[other], strict=True))

    figures = {
        "seconds": statistics.median(times[name]),
        "time_to_floor": ratio(FLOOR),
        "megabytes": memory[name] / 1e6,
    }
    if "simsiam" in times:
        figures |= {"time_to_simsiam": ratio("simsiam"), "memory_to_simsiam": memory[name] / memory["simsiam"]}
    return figures


class ReadyMade:
    """A feed whose views are ready: what is left of the loop is the loop itself."""

    parts = 1

    def __init__(self, views: Views, batch: int, steps_per_epoch: int) -> None:
        self.views, self.batch, self.steps_per_epoch = views, batch, steps_per_epoch

    def stream(self, first: int, last: int) -> Iterator[Part]:
        return (Part(self.views, torch.arange(self.batch), ()) for _ in range(first, last))


def loop_cost(options: Options, device: torch.device, steps: int = 20) -> dict[str, float]:
    """The loop around the step of X-PhiNet, as a share of bare steps: by itself, and with views made on the way."""
    making = feed(options, device)
    ready = ReadyMade(next(making.stream(0, 1)).views, options.batch, making.steps_per_epoch)
    contender = Contender("x-phinet", options, device)
    shares: dict[str, list[float]] = {"share": [], "share_with_views": []}
    for i in range(max(2, options.rounds // 2)):
        bare = _seconds(lambda: contender.steps(ready.views, steps), device)
        by_itself = _seconds(lambda: run_loop(contender, ready, steps), device)
        with_views = _seconds(lambda: run_loop(contender, making, steps), device)
        if i > 0:
            shares["share"].append(by_itself / bare - 1)
            shares["share_with_views"].append(with_views / bare - 1)
    return {name: statistics.median(values) for name, values in shares.items()}


def _seconds(work: Callable[[], Any], device: torch.device) -> float:
    began = perf_counter()
    work()
    synchronise(device)
    return perf_counter() - began


def run_loop(contender: Contender, feed: Feed | ReadyMade, steps: int) -> None:
    timetable = Timetable(steps_per_epoch=feed.steps_per_epoch, epochs=1, warmup_epochs=0, peak_lr=1e-3)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "metrics.jsonl") as journal:
        Loop(
            trainee=contender.trainee,
            feed=feed,  # type: ignore[arg-type]
            timetable=replace(timetable, steps_per_epoch=steps),
            journal=journal,
            rejects=Rejects(0),
            keeper=Keeper(Path(folder), Saving(), steps),
            stop=lambda: False,
            look=lambda codes: {},
            save=lambda step: None,
            watcher=Silent(),
            every=0,
        ).run()


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    head = f"{document['backbone']}, {document['heads']} heads, batch {document['batch']}, {document['device']}\n"
    lines = [f"{'':34}{'s/step':>9}{'× floor':>9}{'× simsiam':>11}{'MB':>9}{'× simsiam':>11}"]
    for name, f in document["learners"].items():
        lines.append(
            f"{name:34}{f['seconds']:9.4f}{f['time_to_floor']:9.2f}{f.get('time_to_simsiam', float('nan')):11.2f}"
            f"{f['megabytes']:9.1f}{f.get('memory_to_simsiam', float('nan')):11.2f}"
        )
    alone, with_views = (100 * document["loop"][name] for name in ("share", "share_with_views"))
    lines.append(f"the loop around the step: {alone:+.1f} %; with views made on the way: {with_views:+.1f} %")
    return head + "\n".join(lines)


if __name__ == "__main__":
    main()
