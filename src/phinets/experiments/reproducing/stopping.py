"""Being told to stop while others do the work."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from phinets.config.errors import StoppedError


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
