"""Being told to stop."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

from phinets.config.errors import StoppedError
from phinets.runtime import distributed

SAME = 2.0
"""Seconds within which a second SIGINT is taken for the first one's echo, in a team: a terminal sends it to every
process, and torchrun sends it once more."""


class Signals:
    """SIGTERM and SIGINT, noted while a step is under way and obeyed after it; a second SIGINT is obeyed at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._when = 0.0
        self._wait = False

    @contextmanager
    def heeded(self) -> Iterator["Signals"]:
        """Listen, where this is the main thread; outside of it signals are somebody else's affair."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Only note a signal; whoever is inside asks `received` when it can stop."""
        self._wait = True
        try:
            yield
        finally:
            self._wait = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        again = self.received is not None and number == signal.SIGINT
        if again and distributed.world_size() > 1 and monotonic() - self._when < SAME:
            return
        self.received, self._when = signal.Signals(number), monotonic()
        if again or not self._wait:
            raise StoppedError(f"stopped at once by {self.received.name}", 128 + number)
