"""This process: rank, threads and signals; without torch."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from types import FrameType
from typing import NamedTuple

from phinets.config.errors import StoppedError, UserError


class Launch(NamedTuple):
    """Rank, world size and local rank of this process."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0


def launch_info() -> Launch:
    """From torchrun's environment variables; a single process without them."""
    if "RANK" not in os.environ:
        return Launch()
    try:
        rank, size, local_rank = (int(os.environ.get(name, default)) for name, default in VARIABLES.items())
    except ValueError:
        raise UserError(f"{', '.join(VARIABLES)} must be whole numbers, as torchrun sets them.") from None
    return Launch(rank, size, local_rank) if size > 1 else Launch()


VARIABLES = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}


SPIN_COUNT = "100000"
"""How long an OpenMP thread spins before it sleeps. By default it spins forever, and a step beside another busy program
takes up to ten times as long."""

BLAS_THREADS = "1"
"""Threads of numpy's and scipy's OpenBLAS. Their products are small here, and waking a second thread for each makes a
step of L-BFGS fifty times slower."""


def share_cores() -> None:
    """Set the thread variables that the user has not set. The libraries read them when they are loaded."""
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", BLAS_THREADS)


def own_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def exit_on_interrupt() -> AbstractContextManager[None]:
    """Exit without unwinding on an interrupt: a half-loaded module would make the next import fail."""
    return _handlers(_leave, signal.SIGINT)


@contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals, in the main thread only."""
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in numbers if main}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _leave(number: int, frame: FrameType | None) -> None:
    print("phinets: stopped.", file=sys.stderr, flush=True)
    os._exit(128 + number)


ECHO_SECONDS = 2.0
"""Seconds within which a second SIGINT counts as the same one under torchrun: the terminal sends it to every process,
and torchrun sends it again."""


class Signals:
    """SIGTERM, SIGINT and SIGHUP: deferred during a training step; a second SIGINT stops at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._when = 0.0
        self._defer = False

    @contextmanager
    def handled(self) -> Iterator["Signals"]:
        """Install the handlers. Under nohup SIGHUP stays ignored; Windows has none."""
        closed = getattr(signal, "SIGHUP", None)  # the terminal was closed
        hangup = () if closed is None or signal.getsignal(closed) is signal.SIG_IGN else (closed,)
        with _handlers(self._handle, signal.SIGTERM, signal.SIGINT, *hangup):
            yield self

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
        if again and launch_info().size > 1 and monotonic() - self._when < ECHO_SECONDS:
            return
        self.received, self._when = signal.Signals(number), monotonic()
        if again or not self._defer:
            raise StoppedError(f"stopped at once by {self.received.name}", 128 + number)


class OutputGuard:
    """Passes calls on to a callback until its output fails, e.g. by a closed pipe or a full disk; then drops them."""

    def __init__(self, callback: object | None) -> None:
        self._callback = callback

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*values: object) -> None:
            try:
                if self._callback is not None:
                    getattr(self._callback, name)(*values)
            except (OSError, SystemExit) as error:  # rich exits where a pipe is closed
                cause = error.__context__ if isinstance(error, SystemExit) else error
                if not isinstance(cause, OSError) or cause.filename is not None:  # not of an output stream
                    raise
                self._callback = None

        return call
