"""The journal of a run: metrics.jsonl, one JSON object per line, in order of time; and trackers."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import Any, Protocol, Self

from phinets.config.errors import UserError, look_up
from phinets.runtime.files import advice


class Tracker(Protocol):
    """A further place for the metrics."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Log a row of the journal."""

    def close(self) -> None:
        """Finish."""


class Journal:
    """metrics.jsonl and the trackers; without a path, nothing is written.

    The file is truncated at byte `at`: later lines were written after the checkpoint that a run resumes from.
    """

    def __init__(self, path: Path | None, trackers: tuple[Tracker, ...] = (), at: int = 0) -> None:
        self._path = path
        self._file = None if path is None else _open(path, at)
        self._trackers = trackers

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Append rows, unbuffered."""
        if self._file is None:
            return
        rest = memoryview("".join(json.dumps(row) + "\n" for row in rows).encode())
        with self._write_errors():
            while rest:  # a nearly full disk may take less than all
                rest = rest[self._file.write(rest) :]
        for tracker in self._trackers:
            for row in rows:
                tracker.write(row)

    def read(self) -> list[dict[str, Any]]:
        """All rows."""
        return [] if self._path is None else read_journal(self._path)

    def flush(self) -> int:
        """Flush to the disk; returns the size in bytes."""
        if self._file is None:
            return 0
        with self._write_errors():
            os.fsync(self._file.fileno())
        return self._file.tell()

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        assert self._file is not None
        try:
            yield
        except OSError as error:
            raise UserError(f"'{self._file.name}' can't be written: {error.strerror}. {advice(error)}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
        for tracker in self._trackers:
            tracker.close()


def _open(path: Path, at: int) -> FileIO:
    """The file, truncated at byte `at`, unbuffered."""
    try:
        file = FileIO(path, "a")
    except OSError as error:
        raise UserError(f"the journal '{path}' can't be opened: {error.strerror}.") from error
    size = file.tell()
    if size < at:
        raise UserError(
            f"'{path}' has {size} bytes, but had {at} when the checkpoint was written: lines are missing. Restore "
            "the file, or repeat the run with --config."
        )
    file.truncate(at)
    file.seek(at)
    return file


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The rows of a journal."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' is not a journal that can be read: {error}.") from error
    if not all(isinstance(row, dict) and {"kind", "step"} <= row.keys() for row in rows):
        raise UserError(f"'{path}' is not a journal of phinets: a line has no kind or step.")
    return rows


def require_trackers(names: tuple[str, ...]) -> None:
    """Refuse trackers that are not installed."""
    for name in names:
        if find_spec(name) is None:
            raise UserError(f"--log {name} needs {name}, which is not installed: pip install 'phinets[{name}]'.")


def open_journal(
    path: Path | None, trackers: tuple[str, ...], config: Callable[[], dict[str, Any]], done: int = 0, at: int = 0
) -> tuple[Journal, list[dict[str, Any]]]:
    """The journal of a run that starts, or resumes after `done` steps at byte `at`, and the rows it has already.

    Without a path (in all processes but the first) it writes nothing. Trackers discard steps after `done`.
    """
    if path is None:
        return Journal(None), []
    opened = tuple(look_up("tracker", name, TRACKERS)(path.parent, config(), done) for name in trackers)
    journal = Journal(path, opened, at)
    return journal, journal.read() if at else []


class TensorBoard:
    """Scalars for `tensorboard --logdir RUN`."""

    def __init__(self, folder: Path, config: dict[str, Any], done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)

    def write(self, row: Mapping[str, Any]) -> None:
        """Every number of the row under its own name."""
        for name, value in _numbers(row):
            self._writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Flush."""
        self._writer.close()


class WandB:
    """A run in the project `phinets` on Weights & Biases; its id stays in the run folder for resuming."""

    def __init__(self, folder: Path, config: dict[str, Any], done: int) -> None:
        import wandb

        note = folder / "wandb" / "phinets-id"
        run_id = note.read_text().strip() if done and note.exists() else None
        self._run = wandb.init(
            project="phinets", name=folder.name, dir=str(folder), config=config, id=run_id, resume="allow"
        )
        note.parent.mkdir(exist_ok=True)
        note.write_text(self._run.id)

    def write(self, row: Mapping[str, Any]) -> None:
        """Every number of the row under its own name."""
        self._run.log(dict(_numbers(row)), step=row["step"])

    def close(self) -> None:
        """Send the rest."""
        self._run.finish()


TRACKERS: Mapping[str, Callable[[Path, dict[str, Any], int], Tracker]] = {"tensorboard": TensorBoard, "wandb": WandB}


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    return ((k, v) for k, v in row.items() if isinstance(v, int | float) and k not in ("step", "epoch"))
