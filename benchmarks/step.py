"""What a step costs: every learner beside SimSiam and beside the floor, in one run.

The floor is a bare forward and backward of two views through the backbone; `phinets.runs.cost` says how time and
memory are measured. Beside the learners stands what the loop around the step costs.

    python benchmarks/step.py                                   # resnet-tiny with the default recipe's heads
    python benchmarks/step.py --backbone resnet18-cifar --heads paper --batch 32
"""

import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
import tyro

from phinets import Views
from phinets.backbones import backbone as backbone_called
from phinets.config.jobs import REFERENCE
from phinets.config.methods import METHODS, LearnerOptions
from phinets.config.run import PretrainConfig, SaveOptions
from phinets.runs.cost import (
    BenchmarkCase,
    Times,
    bytes_of,
    case_of,
    loader,
    new_train_state,
    peak_memory,
    ratio_of_memory,
    ratio_of_times,
    run_steps,
    seconds_of,
    time_rounds,
)
from phinets.runs.recipes import SMALL_HEADS
from phinets.runtime.devices import pick_device
from phinets.training.checkpoint import Keeper
from phinets.training.journal import Journal
from phinets.training.loader import MicroBatch, ViewLoader
from phinets.training.loop import Loop, Pace, StepReport
from phinets.training.schedule import LearningRateSchedule, RunSchedule, TaskSchedule
from phinets.training.step import TrainState

FLOOR = "floor"
LOOP_STEPS = 20


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


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    device = pick_device(options.device)
    config = run_config(options)
    making = loader(config, device, steps=4)
    views = next(making.batches(0, 1)).views
    turns = build_cases(config, options.methods, device, views)
    times = time_rounds(turns, options.rounds, device)
    memory = {name: peak_memory(turns[name], device) for name in times}
    document = {
        "backbone": options.backbone,
        "heads": options.heads,
        "batch": options.batch,
        "device": str(device),
        "learners": {name: row(name, times, memory) for name in times},
        "loop": loop_cost(new_train_state(replace(config, method="x-phinet"), device), making, views, options.rounds),
    }
    print(json.dumps(document) if options.json else table(document))


def run_config(options: Options) -> PretrainConfig:
    """The run whose steps are measured."""
    heads = SMALL_HEADS if options.heads == "small" else LearnerOptions()
    return PretrainConfig(backbone=options.backbone, batch=options.batch, learner=heads)


def build_cases(
    config: PretrainConfig, methods: tuple[str, ...], device: torch.device, views: Views
) -> dict[str, BenchmarkCase]:
    """One turn per contender: a full step, or the floor's forward and backward."""
    encoder = backbone_called(config.backbone).to(device).to(memory_format=torch.channels_last)

    def floor() -> None:
        encoder.zero_grad(set_to_none=True)
        (encoder(views.first).mean() + encoder(views.second).mean()).backward()

    bare = BenchmarkCase(floor, encoder.zero_grad, lambda: bytes_of(encoder.state_dict().values()))
    return {
        FLOOR: bare,
        **{name: case_of(new_train_state(replace(config, method=name), device), views) for name in methods},
    }


def row(name: str, times: Times, memory: Mapping[str, int | None]) -> dict[str, float | None]:
    """A contender's figures."""
    taken = memory[name]
    figures = {
        "seconds": statistics.median(times[name]),
        "time_to_floor": ratio_of_times(times, name, FLOOR),
        "megabytes": None if taken is None else taken / 1e6,
    }
    if REFERENCE in times:
        figures |= {
            "time_to_simsiam": ratio_of_times(times, name, REFERENCE),
            "memory_to_simsiam": ratio_of_memory(memory, name, REFERENCE),
        }
    return figures


class ConstantLoader:
    """A loader that repeats one batch of views: what remains of the loop's time is the loop itself."""

    micro_batches = 1

    def __init__(self, views: Views, batch: int, steps_per_epoch: int) -> None:
        self.views, self.batch, self.steps_per_epoch = views, batch, steps_per_epoch

    def batches(self, first: int, last: int) -> Iterator[MicroBatch]:
        return (MicroBatch(self.views, torch.arange(self.batch), ()) for _ in range(first, last))


def loop_cost(train_state: TrainState, making: ViewLoader, views: Views, rounds: int) -> dict[str, float]:
    """The loop around the step of X-PhiNet, as a share of bare steps: by itself, and with views made on the way."""
    ready = ConstantLoader(views, making.batch, making.steps_per_epoch)
    shares: dict[str, list[float]] = {"share": [], "share_with_views": []}
    for i in range(max(2, rounds // 2)):
        bare = seconds_of(lambda: run_steps(train_state, views, LOOP_STEPS), making.device)
        by_itself = seconds_of(lambda: run_loop(train_state, ready), making.device)
        with_views = seconds_of(lambda: run_loop(train_state, making), making.device)
        if i > 0:
            shares["share"].append(by_itself / bare - 1)
            shares["share_with_views"].append(with_views / bare - 1)
    return {name: statistics.median(values) for name, values in shares.items()}


def run_loop(train_state: TrainState, loader: ViewLoader | ConstantLoader) -> None:
    lr = LearningRateSchedule(steps_per_epoch=LOOP_STEPS, epochs=1, warmup_epochs=0, peak_lr=1e-3)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "metrics.jsonl") as journal:
        Loop(
            train_state=train_state,
            schedule=RunSchedule((TaskSchedule(loader, lr),)),  # type: ignore[arg-type]
            driver=JournalDriver(journal),
            keeper=Keeper(Path(folder), SaveOptions(), LOOP_STEPS),
            eval_every=0,
        ).run()


class JournalDriver:
    """Writes the steps to a journal; evaluates and saves nothing."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def on_boundary(self, step: int) -> None:
        """Nothing."""

    def on_steps(self, reports: Sequence[StepReport], pace: Pace) -> None:
        self.journal.write([{"kind": "step", "step": r.done, **r.losses, "lr": r.lr} for r in reports])

    def evaluate(self, done: int, codes: torch.Tensor) -> None:
        """Nothing."""

    def save(self, done: int) -> None:
        """Nothing."""

    def stop_requested(self) -> bool:
        return False


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    head = f"{document['backbone']}, {document['heads']} heads, batch {document['batch']}, {document['device']}\n"
    lines = [f"{'':34}{'s/step':>9}{'× floor':>9}{'× simsiam':>11}{'MB':>9}{'× simsiam':>11}"]
    for name, figures in document["learners"].items():
        f = defaultdict(lambda: float("nan"), {key: value for key, value in figures.items() if value is not None})
        lines.append(
            f"{name:34}{f['seconds']:9.4f}{f['time_to_floor']:9.2f}{f['time_to_simsiam']:11.2f}"
            f"{f['megabytes']:9.1f}{f['memory_to_simsiam']:11.2f}"
        )
    alone, with_views = (100 * document["loop"][name] for name in ("share", "share_with_views"))
    lines.append(f"the loop around the step: {alone:+.1f} %; with views made on the way: {with_views:+.1f} %")
    return head + "\n".join(lines)


if __name__ == "__main__":
    main()
