"""Results as `phinets reproduce` might have left them, made up by a seeded generator: nothing is trained."""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np

from phinets.config.jobs import ContinualJob, CostJob, Curve, DynamicsJob, Job, PretrainJob, Result, RunJob
from phinets.paper.measures import accuracy, other_readout, pixels, untrained
from phinets.paper.plan import Target
from phinets.paper.scales import Scale

ENVIRONMENT: dict[str, Any] = {
    "phinets": "0.1.0",
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "python": "3.11.7",
    "platform": "Linux-6.1-x86_64",
    "packages": {"torch": "2.4.0"},
    "device": "cpu",
    "device_name": "x86_64",
    "precision": "fp32",
    "threads": 1,
}
QUALITY = {"simsiam": 30.0, "byol": 33.0, "rm-simsiam": 31.0, "phinet": 36.0, "x-phinet": 39.0, "barlow-twins": 34.0}


def results(targets: Iterable[Target], scale: Scale) -> dict[str, Result]:
    """A result for every piece of work of some targets: a few collapsed, one in a hundred failed."""
    measures: dict[str, dict[str, None]] = {}
    jobs: dict[str, Job] = {}
    for target in targets:
        jobs |= target.jobs(scale)
        for cell in (cell for table in target.tables(scale) for cell in table.cells):
            for job in cell.jobs:
                measures.setdefault(job.key, {}).update(dict.fromkeys(measured_with(cell.measure)))
    return {name: fake(job, measures.get(name, {"knn": None})) for name, job in jobs.items()}


def measured_with(measure: str) -> list[str]:
    """A measure, the same by the other readout, and the baselines of both."""
    both = [name for name in (measure, other_readout(measure)) if name is not None]
    accuracies = [name for name in map(accuracy, both) if name is not None]
    baselines = [name for one in accuracies for name in (untrained(one), pixels(one)) if name is not None]
    return [*both, *accuracies, *baselines]


def fake(job: Job, measures: Iterable[str]) -> Result:
    """One result, the same for the same work."""
    random = np.random.default_rng(crc32(job.key.encode()))
    if isinstance(job, DynamicsJob):
        held = {name: float(random.random() < 0.8) for name in measures}
        told = {"statement": "it is so.", "where": "somewhere", "published": "holds: 1 < 2", "corrected": "fails: 2"}
        return Result(job=job, numbers=held, notes=dict.fromkeys(job.statements, told), seconds=2.0)
    if random.random() < 0.01:
        return Result(job=job, failed="the data <are> not there & nobody knows why.", seconds=0.1)
    common: dict[str, Any] = {
        "environment": {**ENVIRONMENT, "seed": job.seed},
        "seconds": float(random.uniform(20, 400)),
    }
    if isinstance(job, CostJob):
        numbers = {name: float(1 + crc32(name.encode()) % 7 + random.normal(0, 0.02)) for name in measures}
        return Result(job=job, numbers=numbers, protocol="steps in turn", **common)
    assert isinstance(job, RunJob)
    level = QUALITY.get(job.run.method.partition("/")[0], 32.0)
    collapsed = job.run.optimization.weight_decay == 0 and random.random() < 0.3
    before = level - (2.0 if job.run.source.shapes_seed == 1 else 10.0)  # from STL-10's images nobody learns anything
    levels = {name: before if name.endswith(("untrained", "pixels")) else level for name in measures}
    numbers = {name: number(name, 12.0 if collapsed else levels[name], random) for name in levels}
    return Result(
        job=job,
        numbers=numbers,
        health="collapsed" if collapsed else "healthy",
        curves=curves(level, random) if isinstance(job, PretrainJob | ContinualJob) else {},
        protocol="kNN: cosine, k=50, T=0.1; 10000 training and 5000 test images",
        **common,
    )


def number(measure: str, level: float, random: np.random.Generator) -> float:
    """A plausible number by that name."""
    if "forgetting" in measure:
        return float(random.normal(3, 1))
    if "sim1" in measure:
        return float(random.normal(-0.8, 0.05))
    return float(level + random.normal(0, 1.2) + (40 if "task" in measure else 0))


def curves(level: float, random: np.random.Generator) -> dict[str, Curve]:
    """An accuracy that rises, a loss that falls, tasks that come."""
    x = np.linspace(2000, 40_000, 40)
    rising = level * (1 - np.exp(-x / 9000)) + random.normal(0, 0.6, 40)
    falling = -0.95 * (1 - np.exp(-x / 5000)) + random.normal(0, 0.01, 40)
    pairs = {"sim1": falling, "loss": falling * 1.4, "knn": rising, "task-knn/fast": rising + 40}
    return {name: tuple((float(a), round(float(b), 4)) for a, b in zip(x, y, strict=True)) for name, y in pairs.items()}
