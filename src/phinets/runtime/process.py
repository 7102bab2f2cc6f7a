"""This process: torchrun's variables, threads and signals; without torch."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import NamedTuple

from phinets.config.errors import StoppedError


class Launch(NamedTuple):
    """Which process this is, of how many, and which on its machine."""

    rank: int = 0
    size: int = 1
    place: int = 0


def launched() -> Launch:
    """From torchrun's environment variables; a single process without them."""
    if "RANK" not in os.environ:
        return Launch()
    rank, size, place = (int(os.environ.get(name, default)) for name, default in VARIABLES.items())
    return Launch(rank, size, place) if size > 1 else Launch()


VARIABLES = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}


SPINS = "100000"
"""How long an OpenMP thread spins before it sleeps. By default it spins for good, and where another program wants the
cores too, a step then takes up to ten times as long; with this it takes its fair share, and a quiet machine loses
nothing."""

ALONE = "1"
"""Threads of numpy's and scipy's own OpenBLAS. Their products are small here (torch does the large ones), and waking a
second thread for each makes a step of L-BFGS fifty times as long."""


def share_cores() -> None:
    """Let waiting threads sleep, unless the person has said otherwise. The libraries read it when they are loaded."""
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", ALONE)


def own_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Leave without unwinding on an interrupt: a module that is loaded by half makes the next import fail instead."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    print("phinets: stopped.", file=sys.stderr, flush=True)
    os._exit(128 + number)


ECHO_SECONDS = 2.0
"""Seconds within which a second SIGINT counts as the same one under torchrun: the terminal sends it to every process,
and torchrun sends it again."""


class Signals:
    """SIGTERM and SIGINT: deferred during a training step; a second SIGINT stops at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._when = 0.0
        self._defer = False

    @contextmanager
    def handled(self) -> Iterator["Signals"]:
        """Install the handlers, in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Only set `received`; the code inside checks it."""
        self._defer = True
        try:
            yield
        finally:
            self._defer = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self.received is not None and number == signal.SIGINT
        if again and launched().size > 1 and monotonic() - self._when < ECHO_SECONDS:
            return
        self.received, self._when = signal.Signals(number), monotonic()
        if again or not self._defer:
            raise StoppedError(f"stopped at once by {self.received.name}", 128 + number)
