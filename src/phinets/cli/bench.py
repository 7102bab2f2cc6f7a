"""`phinets bench`: time and memory of the learners on this device, beside the paper's tables of costs."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.console import Console

from phinets.cli.command import Action, Outcome, parse_words, run_action
from phinets.config.errors import UserError, require_at_least
from phinets.config.jobs import EPOCHS, IMAGES, REFERENCE
from phinets.config.methods import METHODS, method
from phinets.config.run import PretrainConfig
from phinets.reports.cost import cost_rows, memory_table, time_table
from phinets.runs.recipes import recipe
from phinets.runtime.process import exit_on_interrupt


@dataclass(frozen=True)
class CostOptions:
    """Time per step and peak memory of every learner on this device, at some batch sizes, beside the paper's.

    Example: phinets bench cost --batches 128 1024
    """

    recipe: str = "default"
    """The recipe of the backbone, heads, image size and optimizer; `paper` is the paper's."""
    batches: tuple[int, ...] = (64, 128)
    """Images per step; the paper uses 128 and 1024."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Methods to measure; unset: all. SimSiam, the reference, is always measured."""
    rounds: int = 5
    """Number of measurements of each learner, in turn."""
    backbone: str | None = None
    """Another backbone than the recipe's; `phinets list backbones` shows all."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    precision: Literal["auto", "fp32", "bf16", "fp16", "fp64"] = "auto"
    """Autocast; auto: bf16 (else fp16) on CUDA, fp32 elsewhere."""
    json: bool = False
    """Print one JSON document: measurements, protocol, and the paper's figures."""

    def __post_init__(self) -> None:
        if not self.methods or not self.batches:
            missing = "--batches" if self.methods else "--methods"
            raise UserError(f"{missing} names nothing to measure. Leave it out, or give at least one.")
        for name in self.methods:
            method(name)
        if min(self.batches) < 2:
            raise UserError(f"the smallest batch is {min(self.batches)}, but batch norm needs at least two images.")
        require_at_least(self, rounds=1)

    @property
    def config(self) -> PretrainConfig:
        """The run whose steps are measured; method and batch vary."""
        base = recipe(self.recipe)
        compute = replace(base.compute, device=self.device, precision=self.precision)
        return replace(base, backbone=self.backbone or base.backbone, compute=compute)


def cost(words: list[str]) -> Outcome:
    options = parse_words(CostOptions, "bench cost", words)
    document = _measure(options, options.config)
    return Outcome(document, lambda console: _show(console, document))


def _measure(options: CostOptions, config: PretrainConfig) -> dict[str, Any]:
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # silences torch's profiler; read when torch loads
    with exit_on_interrupt():
        from phinets.runs.cost import PROTOCOL, costs
        from phinets.runtime.devices import Precision, pick_device
        from phinets.runtime.environment import environment

    device = pick_device(config.compute.device)
    env = environment(config.seed, Precision(config.compute.precision, device))
    names = options.methods if REFERENCE in options.methods else (REFERENCE, *options.methods)
    rows = []
    for batch in dict.fromkeys(options.batches):
        print(f"batch {batch}: {len(names)} learners, {options.rounds} rounds …", file=sys.stderr)
        rows += cost_rows(costs(replace(config, batch=batch), names, options.rounds, device))
    return {
        "recipe": options.recipe,
        "backbone": config.backbone,
        "heads": {name: getattr(config.learner, name) for name in ("projector", "h_hidden", "g_hidden")},
        "image_size": config.source.image_size,
        "optimizer": config.optimization.optimizer,
        "rounds": options.rounds,
        **{name: env[name] for name in ("device", "device_name", "threads", "precision", "phinets", "commit")},
        "torch": env["packages"]["torch"],
        "protocol": PROTOCOL,
        "rows": rows,
    }


def _show(console: Console, document: dict[str, Any]) -> None:
    where = f"{document['device']} ({document['device_name']}, CPU threads: {document['threads']})"
    widths = {name: "–".join(map(str, w)) if w else "the learner's own" for name, w in document["heads"].items()}
    heads = ", ".join(f"{name} {width}" for name, width in widths.items())
    head = (
        f"{document['backbone']}, {heads}; {document['optimizer']}, {document['precision']}, images of "
        f"{document['image_size']} pixels, rounds: {document['rounds']}; {where}, torch {document['torch']}"
    )
    rows = document["rows"]
    console.print(head, highlight=False, markup=False)
    for table in (memory_table(rows), time_table(rows)):
        console.print("", table, highlight=False, sep="\n")
    console.print("", *_notes(document), highlight=False, markup=False, sep="\n")


def _notes(document: dict[str, Any]) -> list[str]:
    notes = [
        "Memory: weights, optimizer state and what torch allocates at the peak of a step, without the views.",
        f"Extrapolated: {EPOCHS} epochs of {IMAGES:,} images at the measured speed, without views and evaluation.",
    ]
    if all(row["bytes"] is None and not row["out_of_memory"] for row in document["rows"]):
        notes[0] = f"Memory is not measured on {document['device']}, only on CUDA and CPU."
    if any(row["paper"] for row in document["rows"]):
        notes.append("Paper: ResNet-18 on its GPU, so compare the ratios; its table of times has one X-PhiNet.")
    return notes


ACTIONS: Mapping[str, Action] = {"cost": Action("time and memory of a step of every learner, by batch size", cost)}


def command(words: list[str]) -> Outcome:
    return run_action("bench", ACTIONS, "phinets bench cost --batches 128 1024", words)
