"""Files that are whole or not there."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from phinets.config.errors import UserError

PART = ".part"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says where there is no room: on the disk, for this person, for such a large file."""


def atomic_write(
    path: Path, content: bytes | Callable[[BinaryIO], None], named: Callable[[Path], str] | None = None
) -> Path:
    """Fill a file beside `path`, flush it to the disk, then put it in place: all of it or nothing.

    `named` may choose another name for it once the content is there. Whoever is killed on the way leaves nothing but a
    hidden file that ends in .part.
    """
    aside = path.with_name(f".{path.name}{PART}")
    try:
        with aside.open("wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        final = path if named is None else path.with_name(named(aside))
        aside.replace(final)
        _flush_names(path.parent)
    except (OSError, RuntimeError) as error:  # torch speaks of a full disk in a RuntimeError
        raise UserError(f"'{path}' can't be written: {_reason(error)}. {cure(error)}") from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return final


def _reason(error: BaseException) -> str:
    """The system's word for what went wrong, behind whatever a library made of it."""
    said = _by_system(error)
    return (said and said.strerror) or str(error).splitlines()[0]


def cure(error: BaseException) -> str:
    """What to do where something can't be written."""
    said = _by_system(error)
    return (
        "Free some space." if said is None or said.errno in FULL else "Choose another place, or make this one usable."
    )


def _by_system(error: BaseException | None) -> OSError | None:
    """The system's own error, behind whatever a library made of it."""
    while error is not None and not (isinstance(error, OSError) and error.strerror):
        error = error.__cause__ or error.__context__
    return error


def is_remnant(path: Path) -> bool:
    """Whether a file is what a killed writer left behind."""
    return path.name.startswith(".") and path.name.endswith(PART)


def _flush_names(folder: Path) -> None:
    """See to it that the new name outlives a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
