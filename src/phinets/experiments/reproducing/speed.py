"""How fast this machine is: a few short steps, measured once and kept."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from phinets.backbones import backbone
from phinets.config.methods import LearnerOptions
from phinets.config.run import DataOptions, RunConfig
from phinets.data.home import cache_folder
from phinets.engine.device import synchronise
from phinets.evaluation.linear import fit_probe
from phinets.experiments.cost import contender, feed, steps_on
from phinets.experiments.environment import device_name
from phinets.experiments.folder import write_json
from phinets.experiments.reproducing.amounts import EVALUATIONS, passes_of

SMALL, LARGE = "resnet-tiny", "resnet18-cifar"
"""Encoders that stand for those with little and with much arithmetic in each layer."""
SIDE = 32
FILE = "speed.json"
REGION = 7
"""Side of the map that a detector's head makes of a region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds of what work is made of: of a GPU, or of one core."""

    step: float
    """A step, beyond its arithmetic."""
    small: float
    """A multiply-add in a small encoder."""
    large: float
    """A multiply-add in a large one."""
    view: float
    """A pixel of an augmented view."""
    evaluation: float
    """An evaluation of a linear probe's loss, beyond its arithmetic."""

    def multiply_add(self, each: float) -> float:
        """In an encoder with so many of them for each image: between the small and the large one on a log scale."""
        few, many = (multiply_adds(name, SIDE) for name in (SMALL, LARGE))
        share = min(1.0, max(0.0, math.log(each / few) / math.log(many / few)))
        return math.exp((1 - share) * math.log(self.small) + share * math.log(self.large))


def known_speed(device: torch.device) -> Speed:
    """The speed of a device: as it was measured before on this machine, else measured now."""
    path = cache_folder() / FILE
    name = f"{device_name(device)}, torch {torch.__version__}"
    kept = _kept(path)
    with suppress(TypeError):
        if name in kept:
            return Speed(**kept[name])
    found = measured(device)
    with suppress(OSError, ValueError):  # a folder that can't be written: measured anew the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**kept, name: asdict(found)})
    return found


def measured(device: torch.device) -> Speed:
    """About a second of short steps."""
    few, many = (4, 32) if device.type == "cpu" else (32, 256)
    with _one_core():
        short, long = _step_seconds(SMALL, few, device), _step_seconds(SMALL, many, device)
        heavy, view = _step_seconds(LARGE, few, device, times=1), _view_seconds(device)
        probe = _probe_seconds()
    each = max((long - short) / (many - few), 0.1 * long / many)
    step, passes = max(short - few * each, 0.0), passes_of("simsiam")
    return Speed(
        step=step,
        small=each / passes / multiply_adds(SMALL, SIDE),
        large=max(heavy - step, 0.1 * heavy) / few / passes / multiply_adds(LARGE, SIDE),
        view=view,
        evaluation=probe / EVALUATIONS,
    )


@contextmanager
def _one_core() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@cache
def multiply_adds(name: str, side: int) -> float:
    """Of an encoder, for one image; nothing is computed for it."""
    return _counted(name, side)[0]


@cache
def region_multiply_adds(name: str, side: int) -> float:
    """Of a C4 detector's head, for one region: those of the encoder's last stage on a map of 7 × 7."""
    return _counted(name, side)[1]


@cache
def _counted(name: str, side: int) -> tuple[float, float]:
    with torch.device("meta"):
        encoder = backbone(name).eval()
        picture = torch.zeros(1, 3, side, side)
    areas: list[int] = []
    last = getattr(encoder, "layer4", encoder)

    def note(module: nn.Module, given: Any, made: Tensor) -> None:
        areas.append(made.shape[-1] * made.shape[-2] if made.ndim == 4 else REGION**2)

    last.register_forward_hook(note)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        encoder(picture)
    total = counter.get_total_flops() / 2
    of_last = sum(counter.get_flop_counts().get(f"{type(encoder).__name__}.layer4", {}).values()) / 2
    return total, (of_last or total) * REGION**2 / areas[0]


def _step_seconds(name: str, batch: int, device: torch.device, times: int = 3) -> float:
    config = RunConfig(
        method="simsiam",
        backbone=name,
        batch=batch,
        source=DataOptions(image_size=SIDE),
        learner=LearnerOptions(projector=(256, 256), h_hidden=(64,)),
    )
    made = feed(config, device)
    trainee, views = contender(config, device), made.part(0, 0, made.order(0)).views
    return _quickest(lambda: steps_on(trainee, views), device, times)


def _view_seconds(device: torch.device, images: int = 128) -> float:
    """Of a pixel: two views and the image itself are made of each."""
    made = feed(RunConfig(batch=images, source=DataOptions(image_size=SIDE)), device)
    rows = made.order(0)
    return _quickest(lambda: made.part(0, 0, rows), device, 2) / (3 * images * SIDE**2)


def _probe_seconds() -> float:
    draw = torch.Generator().manual_seed(0)
    features, labels = torch.randn(300, 128, generator=draw), torch.arange(300) % 2
    return _quickest(lambda: fit_probe(features, labels), torch.device("cpu"), 1)


def _quickest(task: Callable[[], object], device: torch.device, times: int) -> float:
    """Seconds of the quickest of some turns, after one that does not count.

    On a CPU they are the seconds of the core alone, which others who want it too don't make longer.
    """
    now = process_time if device.type == "cpu" else perf_counter
    found = []
    for _ in range(times + 1):
        began = now()
        task()
        synchronise(device)
        found.append(now() - began)
    return min(found[1:])


def _kept(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}
