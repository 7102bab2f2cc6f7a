"""Atomic writing and the guard of a callback's output."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from phinets.config.errors import UserError
from phinets.runtime.files import atomic_write, is_remnant
from phinets.runtime.process import OutputGuard, Signals


def test_a_planted_link_or_remnant_is_replaced_and_never_written_through(tmp_path: Path) -> None:
    path, victim = tmp_path / "summary.json", tmp_path / "victim"
    temporary = tmp_path / ".summary.json.part"
    victim.write_bytes(b"mine")
    temporary.symlink_to(victim)
    atomic_write(path, b"new")
    assert (victim.read_bytes(), path.read_bytes()) == (b"mine", b"new")
    assert not path.is_symlink()
    temporary.write_bytes(b"half")
    atomic_write(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert not any(map(is_remnant, tmp_path.iterdir()))


def test_a_link_that_appears_again_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were planted between the removal and the opening."""
    victim, temporary = tmp_path / "victim", tmp_path / ".file.part"
    victim.write_bytes(b"mine")
    temporary.symlink_to(victim)
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
    with pytest.raises(UserError, match="can't be written"):
        atomic_write(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"mine"


class Printer:
    """A callback on a console, and the exceptions that it may raise."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.calls = 0

    def on_message(self, text: str) -> None:
        self.calls += 1
        self.console.print(text)

    def on_step(self, error: BaseException) -> None:
        raise error


def test_a_callback_whose_output_fails_is_dropped_and_the_run_continues() -> None:
    read, write = os.pipe()
    os.close(read)
    for place in (write, "/dev/full"):
        with suppress(OSError), open(place, "w", buffering=1) as stream:  # closing it flushes again
            printer = Printer(_Console(file=stream))
            guard = OutputGuard(printer)
            guard.on_message("one")
            guard.on_message("two")
        assert printer.calls == 1


class _Console(Console):
    """rich's, which exits on a closed pipe, without closing pytest's standard output."""

    def on_broken_pipe(self) -> None:
        raise SystemExit(1)


@pytest.mark.parametrize("error", [FileNotFoundError(2, "missing", "mine.csv"), SystemExit(3), ValueError("mine")])
def test_other_errors_of_a_callback_end_the_run(error: BaseException) -> None:
    with pytest.raises(type(error)):
        OutputGuard(Printer(Console())).on_step(error)


def test_a_closed_terminal_is_deferred_as_other_signals_are_except_under_nohup() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        for handler, received in ((signal.SIG_DFL, signal.SIGHUP), (signal.SIG_IGN, None)):
            signal.signal(signal.SIGHUP, handler)
            with Signals().handled() as signals, signals.deferred():
                os.kill(os.getpid(), signal.SIGHUP)
                assert signals.received is received
    finally:
        signal.signal(signal.SIGHUP, before)
