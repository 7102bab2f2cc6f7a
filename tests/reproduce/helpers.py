"""What the tests of the living paper share: small pieces of work, and who looks on."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from phinets.config.result import Result
from phinets.config.run import PretrainConfig, Saving
from phinets.config.work import Deriving, Pretraining, Work, key
from phinets.paper.scales import scale

SMOKE = scale("smoke")
TINY: PretrainConfig = replace(SMOKE.cifar10, method="simsiam", batch=16, saving=Saving(pictures=False))
QUICK = tuple(Deriving(statements=("strong",), sigma2=1.5 + n / 8) for n in range(8))
"""Each is done in no time, and another than the others."""


def long_run(epochs: int) -> Pretraining:
    """A pretraining of so many epochs of four steps, with a checkpoint after every eighth step."""
    run = replace(TINY, epochs=epochs, saving=replace(TINY.saving, checkpoint_every="8steps"))
    return Pretraining(run=run)


def by_key(*works: Work) -> dict[str, Work]:
    """Work as engines are given it."""
    return {key(work): work for work in works}


class Notes:
    """An onlooker that remembers, and does something whenever a piece of work is done."""

    def __init__(self, then: Callable[[Result], object] = lambda result: None) -> None:
        self.works: list[Work] = []
        self.results: list[Result] = []
        self.then = then

    def began(self, works: Sequence[Work]) -> None:
        self.works = list(works)

    def done(self, result: Result) -> None:
        self.results.append(result)
        self.then(result)


def until(happened: Callable[[], bool], seconds: float = 120.0) -> None:
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
