"""Checkpoints: written whole, named by step and checksum, verified before they are trusted."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from phinets.config.errors import UserError
from phinets.config.run import Saving
from phinets.runtime.files import atomic_write, is_remnant

FORMAT = 2
KEPT = 2
"""How many of the newest checkpoints stay."""
NAME = re.compile(r"step-(\d+)\.([0-9a-f]{16})\.pt")


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `step-000000200.CHECKSUM.pt`: the name vouches for the content, and both appear at once."""
    stem = f"step-{step:09d}"
    whole = {"format": FORMAT, "step": step, **state}
    return atomic_write(
        folder / f"{stem}.pt",
        lambda file: torch.save(whole, file),
        named=lambda aside: f"{stem}.{_checksum(aside)}.pt",
    )


def load_checkpoint(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote, once its checksum is right; nothing in the file is executed."""
    named = NAME.fullmatch(path.name)
    if named is None:
        raise UserError(f"'{path}' is not named as a checkpoint of phinets, step-STEP.CHECKSUM.pt.")
    try:
        if _checksum(path) != named[2]:
            raise UserError(f"'{path}' is torn or altered: its content does not have the checksum in its name.")
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint at '{path}'.") from None
    except Exception as error:  # an unpickler may raise anything
        raise UserError(f"'{path}' is not a checkpoint of phinets: {error}.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else None
        raise UserError(f"'{path}' has checkpoint format {found}; this version of phinets reads format {FORMAT}.")
    return state


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints in a folder as (step, path), the oldest first."""
    named = ((NAME.fullmatch(path.name), path) for path in folder.glob("step-*.pt"))
    return sorted((int(match[1]), path) for match, path in named if match is not None)


def newest_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, dict[Path, str]]:
    """The newest checkpoint that can be used, or None where none was made; and why newer ones were refused."""
    refused: dict[Path, str] = {}
    for _, path in reversed(checkpoints(folder)):
        try:
            return load_checkpoint(path), refused
        except UserError as error:
            refused[path] = str(error)
    if refused:
        raise UserError(f"no checkpoint in '{folder}' can be used. {' '.join(refused.values())}")
    return None, refused


def set_aside(refused: Iterable[Path]) -> None:
    """Rename what was refused, so that it no longer counts among the checkpoints."""
    for path in refused:
        path.replace(path.with_name(f"{path.name}.refused"))


@dataclass
class Keeper:
    """Decides when a checkpoint is due and which ones stay."""

    folder: Path
    saving: Saving
    steps_per_epoch: int
    lasting: frozenset[int] = frozenset()
    """Steps whose checkpoint stays for good."""

    def __post_init__(self) -> None:
        self._since = monotonic()

    def is_due(self, step: int) -> bool:
        """Whether the plan has a checkpoint after this very step, whatever the clock says."""
        _, steps = self.saving.interval
        return bool(steps and step % steps == 0) or self._stays(step)

    def clock_asks(self) -> bool:
        """Whether the time for one has come; having asked, the clock begins anew."""
        seconds, _ = self.saving.interval
        if seconds is None or monotonic() - self._since < seconds:
            return False
        self._since = monotonic()
        return True

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write a checkpoint; only then may older ones go."""
        new = save_checkpoint(self.folder, step, state)
        self._since = monotonic()
        for path in self._superfluous(step, new):
            path.unlink(missing_ok=True)

    def _superfluous(self, step: int, new: Path) -> Iterable[Path]:
        """All but the newest, those that stay for good, and what another path of the run left behind."""
        yield from filter(is_remnant, self.folder.iterdir())
        found = [(s, path) for s, path in checkpoints(self.folder) if path != new]
        older = [path for s, path in found if s < step]
        yield from (path for s, path in found if s >= step)
        newest = older[-(KEPT - 1) :]
        yield from (path for s, path in found if s < step and path not in newest and not self._stays(s))

    def _stays(self, step: int) -> bool:
        epochs = self.saving.keep_epochs
        return step in self.lasting or (epochs > 0 and step % (epochs * self.steps_per_epoch) == 0)


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:16]
