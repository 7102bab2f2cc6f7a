"""Estimated times: medians of stored times, else one timed step."""

from dataclasses import replace

import pytest

from phinets.config.jobs import DynamicsJob, Job, PretrainJob, ProbeJob, Result, RunJob
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from phinets.reproduce.estimate import Estimator, stored_times, time_group, training_images, with_timed_step
from tests.reproduce.helpers import PROBE, TINY


def with_seconds(*seconds: float) -> list[Result]:
    runs = (replace(TINY, seed=n, method=method) for n, method in enumerate(("simsiam", "phinet", "byol")))
    return [Result(job=PretrainJob(run=run), seconds=time) for run, time in zip(runs, seconds, strict=False)]


def test_the_estimate_is_the_median_of_stored_times_of_such_jobs() -> None:
    estimator = stored_times(
        [*with_seconds(10.0, 30.0, 20.0), Result(job=PretrainJob(run=TINY), failed="x", seconds=1)]
    )
    job = PretrainJob(run=replace(TINY, seed=9, optimization=replace(TINY.optimization, weight_decay=0.1)))
    assert estimator.seconds(job) == 20.0
    others: list[Job] = [
        PretrainJob(run=replace(TINY, epochs=TINY.epochs + 1)),
        PretrainJob(run=replace(TINY, batch=2 * TINY.batch)),
        ProbeJob(run=TINY, probe=PROBE),
        DynamicsJob(statements=("strong",)),
    ]
    assert [estimator.seconds(other) for other in others] == [None] * 4
    assert estimator.total([job, job, *others]) == (40.0, 4)


def test_a_timed_step_is_extrapolated_by_the_images_and_only_without_stored_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed: list[int] = []

    def step_seconds(config: object, device: object) -> float:
        timed.append(1)
        return 0.5

    monkeypatch.setattr("phinets.runs.cost.step_seconds", step_seconds)
    short, long = PretrainJob(run=TINY), PretrainJob(run=replace(TINY, epochs=10))
    estimator = with_timed_step(Estimator(), [DynamicsJob(statements=("strong",)), short, long], "cpu")
    assert len(timed) == 1, "one step of one job"
    images = 64 * TINY.epochs
    assert estimator.seconds(short) == pytest.approx(0.5 / TINY.batch * images)
    assert estimator.seconds(long) == pytest.approx(0.5 / TINY.batch * 640)
    stored = stored_times(with_seconds(3.0))
    assert with_timed_step(stored, [short], "cpu") == stored
    assert len(timed) == 1


def test_a_step_is_really_timed() -> None:
    estimator = with_timed_step(Estimator(), [PretrainJob(run=TINY)], "cpu")
    assert estimator.per_image is not None
    assert 0 < estimator.per_image < 10


def test_every_job_that_trains_has_a_number_of_images_and_every_job_a_group() -> None:
    jobs = [job for target in TARGETS.values() for scale in SCALES.values() for job in target.jobs(scale).values()]
    for job in jobs:
        trains = isinstance(job, RunJob) and job.kind in ("pretrain", "continual")
        assert (training_images(job) is not None) == trains
    assert len({time_group(job) for job in jobs}) < len(jobs) / 10
