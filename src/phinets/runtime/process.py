"""What torchrun says about this process, before torch is loaded."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple


class Launch(NamedTuple):
    """Which process this is, of how many, and which on its machine."""

    rank: int = 0
    size: int = 1
    place: int = 0


def launched() -> Launch:
    """As the environment has it; alone where nobody launched a team."""
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
def leaving_at_once() -> Iterator[None]:
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
