"""Tables and pictures that a command writes: complete or not at all, over another file only with --overwrite."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from phinets.config.errors import UserError
from phinets.runtime.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options of every action that writes one file."""

    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: the file, and what it shows."""


def require_free(path: Path | None, overwrite: bool, option: str = "--out") -> None:
    """Refuse a path that can't be written, or exists and may not be overwritten; call it before the work.

    `option` is the command-line option that named the path.
    """
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        why = "it is a folder" if path.is_dir() else f"there is no folder '{path.parent}'"
        other = f"{path.stem or 'out'}{path.suffix or '.png'}"
        raise UserError(f"'{path}' can't be written: {why}. Choose another {option}, e.g. '{other}'.")
    if path.exists() and not overwrite:
        raise UserError(f"'{path}' is already there. Choose another {option}, or add --overwrite to replace it.")


def require_figure_path(path: Path, overwrite: bool, option: str) -> None:
    """Refuse a path that `require_free` refuses, or whose ending is no format of pictures."""
    from matplotlib.figure import Figure

    require_free(path, overwrite, option)
    require_ending(path, sorted(Figure().canvas.get_supported_filetypes()), option)


def create_folder(path: Path, option: str) -> None:
    """Create a folder and its parents where they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{path}' can't be created: {error.strerror or error}. Choose another {option}.") from error


def save_lines(path: Path, lines: list[list[str]]) -> None:
    """Write a table of words as .csv."""
    text = StringIO(newline="")
    csv.writer(text).writerows(lines)
    atomic_write(path, text.getvalue().encode())


def save_figure(path: Path, figure: "Figure", dpi: int = 110, colors: int | None = None) -> None:
    """Write a figure in the format that the file's ending names: .png, .svg, .pdf.

    A .png of lines that is reduced to few `colors` has a third of the size.
    """
    ending = require_ending(path, sorted(figure.canvas.get_supported_filetypes()))
    content = BytesIO()
    figure.savefig(content, dpi=dpi, format=ending)
    if ending == "png" and colors is not None:
        from PIL import Image

        full, content = content, BytesIO()
        Image.open(full).convert("RGB").quantize(colors).save(content, format="png", optimize=True)
    atomic_write(path, content.getvalue())


def require_ending(path: Path, formats: Sequence[str], option: str = "--out") -> str:
    """The format that a file's ending names; refuses all but these."""
    ending = path.suffix.removeprefix(".").lower()
    if ending not in formats:
        good = "png" if "png" in formats else formats[0]
        raise UserError(
            f"'{path}' can't be written: its ending must be one of .{', .'.join(formats)}. "
            f"Choose another {option}, e.g. '{path.stem or 'out'}.{good}'."
        )
    return ending
