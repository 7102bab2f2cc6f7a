"""Atomic file writing: a file is complete or absent."""

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from phinets.config.errors import UserError

SUFFIX = ".part"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers for a full disk, quota and file size limit."""


def atomic_write(
    path: Path, content: bytes | Callable[[BinaryIO], object], rename: Callable[[Path], str] | None = None
) -> Path:
    """Write a temporary file beside `path`, flush it to the disk, then rename it: complete or absent.

    Args:
        path: the file to write.
        content: its bytes, or a function that writes them.
        rename: chooses the final name from the written temporary file.

    Returns:
        The path of the written file. A killed process leaves at most a hidden file that ends in .part.
    """
    temporary = path.with_name(f".{path.name}{SUFFIX}")
    try:
        temporary.unlink(missing_ok=True)  # of a killed process, or a link that somebody put there
        with temporary.open("xb") as file:  # O_CREAT | O_EXCL: opens no file that exists and follows no link
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        final = path if rename is None else path.with_name(rename(temporary))
        temporary.replace(final)
        _flush_folder(path.parent)
    except (OSError, RuntimeError) as error:  # torch raises RuntimeError for a full disk
        cause = _os_error(error)
        reason = (cause and cause.strerror) or str(error).splitlines()[0]
        raise UserError(f"'{path}' can't be written: {reason}. {advice(error)}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return final


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    atomic_write(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def advice(error: BaseException) -> str:
    """What to do about a file that can't be written."""
    cause = _os_error(error)
    return "Free some space." if cause is None or cause.errno in FULL else "Choose a place that can be written to."


def _os_error(error: BaseException | None) -> OSError | None:
    """The operating system's error behind a library's."""
    while error is not None and not (isinstance(error, OSError) and error.strerror):
        error = error.__cause__ or error.__context__
    return error


def is_remnant(path: Path) -> bool:
    """Whether a file is an incomplete one of a killed process."""
    return path.name.startswith(".") and path.name.endswith(SUFFIX)


def _flush_folder(folder: Path) -> None:
    """Flush the new name to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
