"""Ctrl-C while modules are being loaded."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
