"""From targets to results: what is to be done, by whom, and what came of it."""

import re
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple, Protocol

from phinets.config.errors import StoppedError, UserError
from phinets.config.result import Result
from phinets.config.work import Costing, Work, begins_with, key
from phinets.paper.plan import Target
from phinets.paper.scales import Scale
from phinets.reproduce.store import Store


@dataclass(frozen=True, slots=True)
class Unit:
    """Pieces of work that are done one after the other, on the same machine."""

    works: tuple[Work, ...]

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it: what costs time or memory is measured."""
        return any(isinstance(work, Costing) for work in self.works)


class Onlooker(Protocol):
    """Told how the work goes."""

    def began(self, works: Sequence[Work]) -> None:
        """These are about to be done."""

    def done(self, result: Result) -> None:
        """One of them is done, or has failed."""


def units(works: Mapping[str, Work]) -> list[Unit]:
    """The work by who does it, in the order in which it is first asked for; what is measured comes last."""
    grouped: dict[str, list[Work]] = {}
    for name, work in works.items():
        first = begins_with(work)
        grouped.setdefault(name if first is None else key(first), []).append(work)
    made = [Unit(tuple(group)) for group in grouped.values()]
    return sorted(made, key=lambda unit: unit.alone)


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM and SIGINT end whatever is waited for; outside of the main thread they are somebody else's affair."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave(number: int, frame: FrameType | None) -> None:
    """Say what stopped the work, and that it goes on."""
    name = signal.Signals(number).name
    raise StoppedError(f"stopped by {name}. What is done is kept; the same command goes on.", 128 + number)


class Engine(Protocol):
    """Does units of work, and puts every result into the store."""

    def run(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        """All of them; what fails is a result like any other."""


class Part(NamedTuple):
    """One of several shares of the work, each unit being in exactly one; counted from 0."""

    number: int = 0
    of: int = 1

    def works(self, works: Mapping[str, Work]) -> dict[str, Work]:
        """Those of this share: every so many-th unit, whatever is done already, so that all machines agree."""
        return {key(work): work for unit in units(works)[self.number :: self.of] for work in unit.works}


def part(said: str) -> Part:
    """A share as it is said: I/N, from 0/N to (N − 1)/N."""
    found = re.fullmatch(r"(\d+)/(\d+)", said.strip())
    if found is None:
        raise UserError(f"--part is '{said}', but must be I/N, e.g. 0/4 for the first of four; I counts from 0.")
    number, of = int(found[1]), int(found[2])
    if not number < of:
        last = f"from 0/{of} to {of - 1}/{of}" if of else "0/1 or more"
        raise UserError(f"--part is '{said}', but I counts from 0 and must be below N: {last}.")
    return Part(number, of)


def all_works(targets: Iterable[Target], scale: Scale) -> dict[str, Work]:
    """The work of some targets by key, each once."""
    found: dict[str, Work] = {}
    for target in targets:
        found |= {name: work for name, work in target.works(scale).items() if name not in found}
    return found


def open_works(works: Mapping[str, Work], store: Store, *, retry_failed: bool = False) -> dict[str, Work]:
    """Those that are still to be done. Failures are done, unless they are to be tried again and are forgotten now."""
    known = store.results(works)
    if retry_failed:
        failed = [name for name, result in known.items() if result.failed is not None]
        for name in failed:
            store.forget(name)
        known = {name: result for name, result in known.items() if name not in failed}
    return {name: work for name, work in works.items() if name not in known}


def reproduce(missing: Mapping[str, Work], engine: Engine, onlooker: Onlooker) -> None:
    """Have all of the work done that is not."""
    if missing:
        onlooker.began(list(missing.values()))
        engine.run(units(missing), onlooker)


def failures(results: Mapping[str, Result]) -> dict[str, str]:
    """The reason of each that failed, by key."""
    return {name: result.failed for name, result in results.items() if result.failed is not None}
