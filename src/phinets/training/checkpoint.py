"""Checkpoints: written atomically, named by step and checksum, verified before use."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from pickle import UnpicklingError
from time import monotonic
from typing import Any

import torch

from phinets.config.errors import UserError
from phinets.config.run import SaveOptions
from phinets.runtime.files import atomic_write, is_remnant

FORMAT = 3
KEEP = 2
"""How many of the newest checkpoints are kept."""
NAME = re.compile(r"step-(\d+)\.([0-9a-f]{16})\.pt")


class NoCheckpointError(UserError):
    """None of a run's checkpoints can be used, so that it can't be resumed."""


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `step-000000200.CHECKSUM.pt`: the name holds a checksum of the content."""
    stem = f"step-{step:09d}"
    whole = {"format": FORMAT, "step": step, **state}
    return atomic_write(
        folder / f"{stem}.pt",
        lambda file: torch.save(whole, file),
        rename=lambda temporary: f"{stem}.{_checksum(temporary)}.pt",
    )


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Load what `save_checkpoint` wrote and verify its checksum; nothing in the file is executed."""
    match = NAME.fullmatch(path.name)
    if match is None:
        raise UserError(f"'{path}' is not named as a checkpoint of phinets, step-STEP.CHECKSUM.pt.")
    if not path.is_file():  # a FIFO would block
        raise UserError(f"there is no checkpoint at '{path}', or it is not a regular file.")
    try:
        if _checksum(path) != match[2]:
            raise UserError(f"'{path}' is incomplete or altered: its content does not match the checksum in its name.")
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except UnpicklingError as error:
        raise UserError(f"'{path}' holds more than tensors and plain values, and is not loaded.") from error
    except Exception as error:  # an unpickler may raise anything
        raise UserError(f"'{path}' is not a checkpoint of phinets: {error}.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        version = state.get("format") if isinstance(state, dict) else None
        raise UserError(f"'{path}' has checkpoint format {version}; this version of phinets reads format {FORMAT}.")
    return state


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints in a folder as (step, path), the oldest first."""
    matches = ((NAME.fullmatch(path.name), path) for path in folder.glob("step-*.pt"))
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def newest_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, dict[Path, str]]:
    """The newest usable checkpoint, or None without any; and why newer ones were refused."""
    refused: dict[Path, str] = {}
    for _, path in reversed(checkpoints(folder)):
        try:
            return load_checkpoint(path), refused
        except UserError as error:
            refused[path] = str(error)
    if refused:
        raise NoCheckpointError(f"no checkpoint in '{folder}' can be used. {' '.join(refused.values())}")
    return None, refused


def rename_refused(refused: Iterable[Path]) -> None:
    """Rename refused files, so that they no longer count among the checkpoints."""
    for path in refused:
        path.replace(path.with_name(f"{path.name}.refused"))


@dataclass
class Keeper:
    """Decides when a checkpoint is due and which ones are kept."""

    folder: Path
    saving: SaveOptions
    steps_per_epoch: int
    permanent: frozenset[int] = frozenset()
    """Steps whose checkpoint is never deleted."""

    def __post_init__(self) -> None:
        self._since = monotonic()

    def is_due(self, step: int) -> bool:
        """Whether a checkpoint is due after this step, whatever the time."""
        _, steps = self.saving.interval
        return bool(steps and step % steps == 0) or self._is_permanent(step)

    def timer_expired(self) -> bool:
        """Whether one is due by time; the timer then starts again."""
        seconds, _ = self.saving.interval
        if seconds is None or monotonic() - self._since < seconds:
            return False
        self._since = monotonic()
        return True

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint, then delete older ones."""
        new = save_checkpoint(self.folder, step, state)
        self._since = monotonic()
        self.prune(step, new)

    def prune(self, step: int, newest: Path | None = None) -> None:
        """Delete all but the newest, of this step, and the permanent ones; also incomplete files and later steps."""
        saved = checkpoints(self.folder)
        newest = newest or max(path for s, path in saved if s == step)
        older = [(s, path) for s, path in saved if s < step]
        obsolete = [path for s, path in older[: 1 - KEEP] if not self._is_permanent(s)]
        obsolete += (path for s, path in saved if s >= step and path != newest)
        for path in (*filter(is_remnant, self.folder.iterdir()), *obsolete):
            path.unlink(missing_ok=True)

    def _is_permanent(self, step: int) -> bool:
        epochs = self.saving.keep_epochs
        return step in self.permanent or (epochs > 0 and step % (epochs * self.steps_per_epoch) == 0)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]
