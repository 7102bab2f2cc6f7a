"""How long work may take on this machine: what is computed, by how fast it is, mended by what was done here before."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from phinets.config.cores import own_cores
from phinets.config.result import Result
from phinets.config.work import Costing, Deriving, Work, kind
from phinets.experiments.environment import device_name
from phinets.experiments.reproducing.amounts import amount
from phinets.experiments.reproducing.speed import Speed, known_speed, multiply_adds, region_multiply_adds

STATEMENT = 1.0
"""Seconds that a statement on dynamics takes to check."""
Sort = tuple[Any, ...]
"""What works have in common whose time is mended alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Tells how long work may take."""

    speed: Speed
    at_once: int = 1
    """Pieces of work that go on side by side: one for each core, where there is no GPU."""
    mended: Mapping[Sort, float] = field(default_factory=dict)
    """By what estimates of some sorts of work are multiplied."""

    def seconds(self, work: Work) -> float:
        """Of this machine, all of it being at such work."""
        ratio = next((self.mended[sort] for sort in sorts(work) if sort in self.mended), 1.0)
        return raw_seconds(work, self.speed) * ratio / self.at_once


def clock(device: torch.device, results: Iterable[Result] = ()) -> Clock:
    """The clock of this machine, mended by results of the same device."""
    speed, on_cores = known_speed(device), device.type == "cpu"
    ratios: dict[Sort, list[float]] = defaultdict(list)
    for result in results:
        if result.failed is None and result.environment.get("device_name") == device_name(device):
            threads = int(result.environment.get("threads", 1)) if on_cores else 1
            ratio = result.seconds * threads / raw_seconds(result.work, speed)
            for sort in sorts(result.work):
                ratios[sort].append(ratio)
    mended = {sort: median(found) for sort, found in ratios.items()}
    return Clock(speed=speed, at_once=own_cores() if on_cores else 1, mended=mended)


def raw_seconds(work: Work, speed: Speed) -> float:
    """What the amount of computing comes to on one GPU or core."""
    parts = amount(work)
    if isinstance(work, Deriving):
        return parts.statements * STATEMENT
    run, side = work.run, work.run.source.image_size
    each = multiply_adds(run.backbone, side)
    arithmetic = parts.passes * each
    if parts.regions:
        arithmetic += parts.regions * region_multiply_adds(run.backbone, side)
    return (
        arithmetic * speed.multiply_add(each)
        + parts.views * side**2 * speed.view
        + parts.steps * speed.step
        + parts.probes * speed.evaluation
        + parts.probed * speed.large
    )


def sorts(work: Work) -> tuple[Sort, ...]:
    """From the narrowest to the widest: the same method and batch, the same encoder, the same kind of work."""
    if isinstance(work, Deriving):
        return ((kind(work),),)
    whole = (kind(work), work.run.backbone, work.run.source.image_size)
    if isinstance(work, Costing):
        return (whole,)
    return ((*whole, work.run.batch, work.run.method), (*whole, work.run.batch), whole)
