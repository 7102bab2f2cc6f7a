"""Files that a command writes for a person: never over another one unasked, never half."""

import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from phinets.config.errors import UserError
from phinets.runtime.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image


def require_free(path: Path | None, overwrite: bool, option: str = "--out") -> None:
    """Refuse a place that is taken, unless it may be overwritten; called before the work, not after it.

    `option` is what the person said it with.
    """
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        why = "it is a folder" if path.is_dir() else f"there is no folder '{path.parent}'"
        other = f"{path.stem or 'out'}{path.suffix or '.png'}"
        raise UserError(f"'{path}' can't be written: {why}. Choose another {option}, e.g. '{other}'.")
    if path.exists() and not overwrite:
        raise UserError(f"'{path}' is already there. Choose another {option}, or say --overwrite to replace it.")


def require_figure_path(path: Path, overwrite: bool, option: str) -> None:
    """Refuse a place that is taken, or whose ending names no format of pictures."""
    from matplotlib.figure import Figure

    require_free(path, overwrite, option)
    _ending(path, sorted(Figure().canvas.get_supported_filetypes()), option)


def save_lines(path: Path, lines: list[list[str]]) -> None:
    """A table of words as .csv."""
    written = StringIO(newline="")
    csv.writer(written).writerows(lines)
    atomic_write(path, written.getvalue().encode())


def save_figure(path: Path, figure: "Figure", dpi: int = 110, colors: int | None = None) -> None:
    """A figure in the format that the file's ending names: .png, .svg, .pdf.

    A drawing of lines needs few `colors`; a .png that keeps to so many is a third of the size.
    """
    ending = _ending(path, sorted(figure.canvas.get_supported_filetypes()))
    drawn = BytesIO()
    figure.savefig(drawn, dpi=dpi, format=ending)
    if ending == "png" and colors is not None:
        drawn = _with_fewer_colors(drawn, colors)
    atomic_write(path, drawn.getvalue())


def _with_fewer_colors(png: BytesIO, colors: int) -> BytesIO:
    from PIL import Image

    fewer = BytesIO()
    Image.open(png).convert("RGB").quantize(colors).save(fewer, format="png", optimize=True)
    return fewer


def save_image(path: Path, image: "Image") -> None:
    """A picture made of pixels."""
    drawn = BytesIO()
    image.save(drawn, format=_ending(path, ["gif", "png", "webp"]))
    atomic_write(path, drawn.getvalue())


def _ending(path: Path, known: list[str], option: str = "--out") -> str:
    """The format that a file's name asks for."""
    ending = path.suffix.removeprefix(".").lower()
    if ending not in known:
        raise UserError(
            f"'{path}' can't be written: its ending must be one of {', '.join(known)}. "
            f"Choose another {option}, e.g. '{path.with_suffix('.png')}'."
        )
    return ending
