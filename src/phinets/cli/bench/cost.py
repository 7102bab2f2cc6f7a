"""`phinets bench cost`: the paper's two tables of computational costs, measured here."""

import os
import sys
from dataclasses import dataclass, replace
from typing import Any, Literal

from rich.console import Console

from phinets.cli.command import Outcome, parse_words
from phinets.config.errors import UserError
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
    """Gives the backbone, the heads, the size of the images and the optimizer; `paper` gives the paper's own."""
    batches: tuple[int, ...] = (64, 128)
    """Images per step. The paper's are 128 and 1024."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Which learners; unset: all. SimSiam, whom the others are measured against, always takes part."""
    rounds: int = 5
    """How often each learner takes its turn."""
    backbone: str | None = None
    """Another encoder than the recipe's; `phinets list backbones` shows all."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    precision: Literal["auto", "fp32", "bf16", "fp16", "fp64"] = "auto"
    """Autocast; auto takes bf16 (else fp16) on CUDA and fp32 elsewhere."""
    json: bool = False
    """Print one JSON document: what was measured, how, and the paper's figures."""

    def __post_init__(self) -> None:
        if not self.methods or not self.batches:
            missing = "--batches" if self.methods else "--methods"
            raise UserError(f"{missing} names nothing to measure. Leave it out, or give at least one.")
        for name in self.methods:
            method(name)
        if min(self.batches) < 2:
            raise UserError(f"a batch of {min(self.batches)} can't be: batch norm needs at least two images.")
        if self.rounds < 1:
            raise UserError(f"rounds is {self.rounds}, but must be at least 1.")

    @property
    def config(self) -> PretrainConfig:
        """The run whose steps are measured, whatever the learner and the batch."""
        base = recipe(self.recipe)
        compute = replace(base.compute, device=self.device, precision=self.precision)
        return replace(base, backbone=self.backbone or base.backbone, compute=compute)


def command(words: list[str]) -> Outcome:
    """Measure, and lay the paper's figures beside it."""
    options = parse_words(CostOptions, "bench cost", words)
    document = _measured(options, options.config)
    return Outcome(document, lambda console: _show(console, document))


def _measured(options: CostOptions, config: PretrainConfig) -> dict[str, Any]:
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else torch's profiler tells of every start; read when torch loads
    with exit_on_interrupt():
        from phinets.runs.cost import PROTOCOL, costs
        from phinets.runtime.devices import Precision, pick_device
        from phinets.runtime.environment import environment

    device = pick_device(config.compute.device)
    made_with = environment(config.seed, device, Precision(config.compute.precision, device).name)
    names = options.methods if REFERENCE in options.methods else (REFERENCE, *options.methods)
    rows = []
    for batch in dict.fromkeys(options.batches):
        print(f"batch {batch}: {len(names)} learners in turn, rounds: {options.rounds} …", file=sys.stderr)
        rows += cost_rows(costs(replace(config, batch=batch), names, options.rounds, device))
    return {
        "recipe": options.recipe,
        "backbone": config.backbone,
        "heads": {name: getattr(config.learner, name) for name in ("projector", "h_hidden", "g_hidden")},
        "image_size": config.source.image_size,
        "optimizer": config.optimization.optimizer,
        "rounds": options.rounds,
        **{name: made_with[name] for name in ("device", "device_name", "threads", "precision", "phinets", "commit")},
        "torch": made_with["packages"]["torch"],
        "protocol": PROTOCOL,
        "rows": rows,
    }


def _show(console: Console, document: dict[str, Any]) -> None:
    where = f"{document['device']} ({document['device_name']}, CPU threads: {document['threads']})"
    heads = ", ".join(f"{name} {_widths(widths)}" for name, widths in document["heads"].items())
    head = (
        f"{document['backbone']}, {heads}; {document['optimizer']}, {document['precision']}, images of "
        f"{document['image_size']} pixels, rounds: {document['rounds']}; {where}, torch {document['torch']}"
    )
    rows = document["rows"]
    console.print(head, highlight=False, markup=False)
    for table in (memory_table(rows), time_table(rows)):
        console.print()
        console.print(table, highlight=False)
    console.print()
    for line in _notes(document):
        console.print(line, highlight=False, markup=False)


def _widths(widths: tuple[int, ...] | None) -> str:
    return "of each learner's own" if widths is None else "–".join(map(str, widths))


def _notes(document: dict[str, Any]) -> list[str]:
    """What the tables need said about them."""
    told = [
        "Memory: weights, optimizer state and what torch allocates at the worst moment of a step, without the views.",
        f"Extrapolated: {EPOCHS} epochs of {IMAGES:,} images, were every step like those measured; making views and "
        "judging not included.",
    ]
    if all(row["bytes"] is None and not row["out_of_memory"] for row in document["rows"]):
        told[0] = f"Memory is not measured on {document['device']}: torch counts it on CUDA and CPU only."
    if any(row["paper"] for row in document["rows"]):
        told.append("Paper: ResNet-18 on its GPU, so compare the ratios; its table of times has one X-PhiNet.")
    return told
