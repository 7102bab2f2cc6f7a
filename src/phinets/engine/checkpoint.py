"""Checkpoints: written aside and renamed, so that there is always a whole one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from phinets.config.errors import UserError
from phinets.engine.device import Precision
from phinets.methods import Learner

FORMAT = 1


def write_whole(path: Path, content: bytes | Callable[[BinaryIO], None]) -> None:
    """Fill a file beside `path`, flush it to the disk, then put it in place: all of it or nothing."""
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except (OSError, RuntimeError) as error:  # torch speaks of a full disk in a RuntimeError
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"'{path}' can't be written: {reason}. Free some space or choose another --out.") from error
    finally:
        aside.unlink(missing_ok=True)


def save_checkpoint(
    path: Path, learner: Learner, optimiser: torch.optim.Optimizer, precision: Precision, step: int
) -> None:
    """Everything that the next step depends on, beside the config."""
    state = {
        "format": FORMAT,
        "step": step,
        "learner": learner.state_dict(),
        "optimiser": optimiser.state_dict(),
        "scaler": precision.scaler.state_dict(),
    }
    write_whole(path, lambda file: torch.save(state, file))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote; nothing in the file is executed."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint at '{path}'.") from None
    except Exception as error:
        raise UserError(f"'{path}' is not a whole checkpoint of phinets: {error}.") from error
    if state.get("format") != FORMAT:
        raise UserError(f"'{path}' has checkpoint format {state.get('format')}; this version reads {FORMAT}.")
    return state
