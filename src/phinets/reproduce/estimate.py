"""How long jobs take: the median of stored times of such jobs, else extrapolated from one timed step."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from phinets.config.jobs import Job, Result, RunJob
from phinets.config.plain import without
from phinets.config.run import FREE

TRAIN_IMAGES: Mapping[str, int] = {
    "shapes": 50_000, "cifar10": 50_000, "cifar100": 50_000,
    "stl10": 105_000, "cifar5m": 5_002_240, "imagenet": 1_281_167,
}  # fmt: skip
"""Of data sets that a job takes whole."""
VARIED_SETTINGS = ("seed", "method", "optimization", "learner", "memory", *FREE)
"""Settings of a run that change its time little, or not at all."""


def time_group(job: Job) -> str:
    """What jobs of about the same length have in common: kind, data, encoder and sizes."""
    ignored = ("statements", "sigma2", "detection.seed", *(f"run.{name}" for name in VARIED_SETTINGS))
    return json.dumps(without(job.to_plain(), ignored), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Estimates the seconds of a job on one worker."""

    medians: Mapping[str, float] = field(default_factory=dict)
    """Of stored times, by `time_group`."""
    per_image: float | None = None
    """Seconds of a training step per image, for jobs without stored times; None: not timed."""

    def seconds(self, job: Job) -> float | None:
        """None where nothing is known."""
        stored = self.medians.get(time_group(job))
        if stored is not None or self.per_image is None:
            return stored
        images = training_images(job)
        return None if images is None else images * self.per_image

    def total(self, jobs: Iterable[Job]) -> tuple[float, int]:
        """The sum over the jobs with an estimate, and the number of jobs without one."""
        estimates = [self.seconds(job) for job in jobs]
        return sum(filter(None, estimates)), estimates.count(None)


def stored_times(results: Iterable[Result]) -> Estimator:
    """An estimator from what took how long before; nothing is timed."""
    groups: dict[str, list[float]] = defaultdict(list)
    for result in results:
        if result.failed is None:
            groups[time_group(result.job)].append(result.seconds)
    return Estimator(medians={group: median(seconds) for group, seconds in groups.items()})


def with_timed_step(estimator: Estimator, jobs: Iterable[Job], device_name: str) -> Estimator:
    """The estimator, after one timed step of the first job that trains and has no stored time."""
    from phinets.runs.cost import step_seconds
    from phinets.runtime.devices import pick_device

    first = next((job for job in jobs if estimator.seconds(job) is None and training_images(job) is not None), None)
    if not isinstance(first, RunJob):
        return estimator
    seconds = step_seconds(first.run, pick_device(device_name))
    return estimator if seconds is None else replace(estimator, per_image=seconds / first.run.batch)


def training_images(job: Job) -> int | None:
    """Images that a run shows its learner, over all epochs; None where a job trains no learner."""
    if not isinstance(job, RunJob) or not job.epochs:
        return None
    images = job.run.source.train_images or TRAIN_IMAGES.get(job.run.data)
    return None if images is None else images * job.epochs
