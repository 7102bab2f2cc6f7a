"""What the tests of the living paper share: small pieces of work, and who looks on."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from phinets.config.jobs import DynamicsJob, Job, PretrainJob, Result
from phinets.config.run import PretrainConfig, SaveOptions
from phinets.paper.scales import scale

SMOKE = scale("smoke")
assert SMOKE.probe is not None
PROBE = SMOKE.probe
TINY: PretrainConfig = replace(SMOKE.cifar10, method="simsiam", batch=16, saving=SaveOptions(pictures=False))
QUICK = tuple(DynamicsJob(statements=("strong",), sigma2=1.5 + n / 8) for n in range(8))
"""Each is done in no time, and another than the others."""


def long_run(epochs: int) -> PretrainJob:
    """A pretraining of so many epochs of four steps, with a checkpoint after every eighth step."""
    run = replace(TINY, epochs=epochs, saving=replace(TINY.saving, checkpoint_every="8steps"))
    return PretrainJob(run=run)


def by_key(*jobs: Job) -> dict[str, Job]:
    """Work as engines are given it."""
    return {job.key: job for job in jobs}


class Recorder:
    """A callback that records, and calls `then` with each result."""

    def __init__(self, then: Callable[[Result], object] = lambda result: None) -> None:
        self.jobs: list[Job] = []
        self.results: list[Result] = []
        self.then = then

    def on_start(self, jobs: Sequence[Job]) -> None:
        self.jobs = list(jobs)

    def on_result(self, result: Result) -> None:
        self.results.append(result)
        self.then(result)


def until(happened: Callable[[], bool], seconds: float = 600.0) -> None:
    """Wait for something, not for ever."""
    last = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < last, "it did not happen in time"
        time.sleep(0.02)


def steps_of(folder: Path) -> int:
    """How many steps the journal of a run tells of."""
    journal = folder / "metrics.jsonl"
    return journal.read_text().count('"kind": "step"') if journal.exists() else 0


def python(code: str) -> list[str]:
    """The words that run some lines in a fresh process."""
    return [sys.executable, "-c", code]
