"""One picture from one file: RGB and upright, or the reason why not."""

import math
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from phinets.config.views import Window

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".npy")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""What a file may hold, whatever its name: Pillow knows other formats, some of which start other programs."""
RESAMPLING = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
ORIENTATION, SIDEWAYS = 0x0112, (5, 6, 7, 8)
"""EXIF's field for how the camera was held, and the values that swap width and height."""
LARGEST = 89_478_485
"""Pixels beyond which a picture is taken for a decompression bomb: Pillow's own limit."""


class UnusableError(Exception):
    """A file that holds no usable image; says why."""


def printable(path: str | Path) -> str:
    """A path in words that can be printed, even if it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def open_picture(path: str | Path, least: int | None = None) -> Image.Image:
    """The picture in a file: the first one, upright as its camera says, without transparency.

    Where only a small one is needed, a JPEG is decoded at a fraction of its size, neither side below `least`.
    """
    with _explained(path):
        return _array(path) if _is_array(path) else _picture(path, lambda width, height: least)


def decode_opened(picture: Image.Image, least: int) -> Image.Image:
    """A picture that somebody else has opened, as `open_picture` gives it from its file.

    A JPEG of which nothing is decoded yet is decoded at a fraction of its size too; what has been decoded may have been
    drawn upon since, and is taken as it is.
    """
    with _explained_errors():
        fresh = _fresh_jpeg(picture)
        if fresh is not None:
            return _picture(fresh, lambda width, height: least)
        _require_modest(*picture.size)
        return _rgb(ImageOps.exif_transpose(picture))


def _fresh_jpeg(picture: Image.Image) -> IO[bytes] | None:
    """The file of a JPEG of which nothing is decoded yet, where the picture is the first in it."""
    if not isinstance(picture, ImageFile.ImageFile) or not picture.tile:
        return None
    return picture.fp if picture.format in ("JPEG", "MPO") and picture.tell() == 0 else None


def decode_crops(path: str | Path, windows: Callable[[int, int], Sequence[Window]], side: int) -> NDArray[np.uint8]:
    """Windows of the picture in a file, each brought to side × side: uint8 (windows, 3, side, side).

    `windows` is told the picture's width and height. A JPEG is decoded at the fraction of its size that still gives
    every window enough pixels.
    """
    wanted: list[Window] = []
    whole: list[tuple[int, int]] = []

    def least(width: int, height: int) -> int:
        wanted.extend(windows(width, height))
        whole.append((width, height))
        narrowest = min(min(w.right - w.left, w.bottom - w.top) for w in wanted)
        return max(1, math.ceil(min(width, height) * side / narrowest))

    with _explained(path):
        picture = _array(path) if _is_array(path) else _picture(path, least)
        if not whole:
            least(*picture.size)
        scale = picture.width / whole[0][0], picture.height / whole[0][1]
        return np.stack([_seen(picture, window, scale, side) for window in wanted])


def _seen(picture: Image.Image, window: Window, scale: tuple[float, float], side: int) -> NDArray[np.uint8]:
    """One window as uint8 (3, side, side). It is cut out first, so that nothing outside of it shines in."""
    left, right = window.left * scale[0], window.right * scale[0]
    top, bottom = window.top * scale[1], window.bottom * scale[1]
    x, y = math.floor(left), math.floor(top)
    cut = picture.crop((x, y, min(picture.width, math.ceil(right)), min(picture.height, math.ceil(bottom))))
    box = left - x, top - y, min(cut.width, right - x), min(cut.height, bottom - y)
    resized = cut.resize((side, side), RESAMPLING[window.interpolation], box=box)
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def _is_array(path: str | Path) -> bool:
    return os.fspath(path).lower().endswith(".npy")


@contextmanager
def _explained(path: str | Path) -> Iterator[None]:
    """Refuse what is no file, and turn whatever a file may raise into the reason why it can't be used."""
    with _explained_errors():
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise UnusableError("it is no ordinary file")
        yield


@contextmanager
def _explained_errors() -> Iterator[None]:
    """Turn whatever a picture may raise into the reason why it can't be used."""
    try:
        yield
    except UnusableError:
        raise
    except UnidentifiedImageError:
        raise UnusableError(f"it holds none of {', '.join(FORMATS)}") from None
    except OSError as error:
        raise UnusableError(_sentence(error.strerror or str(error))) from error
    except Exception as error:  # a damaged file may raise anything: Pillow's plugins have many words for it
        raise UnusableError(_sentence(str(error)) or type(error).__name__) from error


def picture_size(path: str | Path) -> tuple[int, int]:
    """Width and height as the file's head says, before anything is decoded or turned upright."""
    if _is_array(path):
        return open_picture(path).size
    with Image.open(path, formats=FORMATS) as file:
        return file.size


def _sentence(text: str) -> str:
    return printable(text.strip().rstrip("."))


def _picture(path: str | Path | IO[bytes], least: Callable[[int, int], int | None]) -> Image.Image:
    with Image.open(path, formats=FORMATS) as file:
        _require_modest(*file.size)
        turned = file.getexif().get(ORIENTATION, 1) in SIDEWAYS
        enough = least(*(reversed(file.size) if turned else file.size))
        if enough is not None:
            file.draft("RGB", (enough, enough))
        file.load()
        return _rgb(ImageOps.exif_transpose(file))


def _rgb(picture: Image.Image) -> Image.Image:
    """Eight bits in three channels. Sixteen bits lose their lower half, instead of all above 255 becoming white."""
    if picture.mode == "F":
        raise UnusableError("its pixels are floats, of which nobody said what is white")
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(picture).clip(0, 65535) >> 8).astype(np.uint8)).convert("RGB")
    if picture.mode == "P" and "transparency" in picture.info:
        picture = picture.convert("RGBA")
    return picture.convert("RGB")


def _array(path: str | Path) -> Image.Image:
    """An array of height × width × 3: bytes, or floats from 0 to 1."""
    try:
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped, so that a head that lies costs no memory
    except ValueError as error:
        raise UnusableError(f"it is no whole array: {error}") from error
    if pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise UnusableError(f"an array of shape {pixels.shape} is no picture (height, width, 3)")
    _require_modest(pixels.shape[1], pixels.shape[0])
    if pixels.dtype == np.uint8:
        return Image.fromarray(np.array(pixels))
    if not np.issubdtype(pixels.dtype, np.floating):
        raise UnusableError(f"its numbers are {pixels.dtype}; bytes, or floats from 0 to 1, would do")
    if not np.isfinite(pixels).all():
        raise UnusableError("it holds NaN or infinite values")
    if pixels.min() < 0 or pixels.max() > 1:
        raise UnusableError(f"its values lie in [{pixels.min():g}, {pixels.max():g}], not in [0, 1]")
    return Image.fromarray((np.asarray(pixels, np.float64) * 255).round().astype(np.uint8))


def _require_modest(width: int, height: int) -> None:
    if width * height > LARGEST:
        raise UnusableError(f"{width} × {height} pixels are more than a picture should have ({LARGEST:,})")
