"""Files that are whole or not there."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from phinets.config.errors import UserError

PART = ".part"


def write_whole(
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
        raise UserError(f"'{path}' can't be written: {_reason(error)}. Free some space.") from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
    return final


def _reason(error: BaseException | None) -> str:
    """The system's word for what went wrong, behind whatever a library made of it."""
    first = str(error).splitlines()[0]
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__ or error.__context__
    return first


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
