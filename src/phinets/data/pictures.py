"""One picture from one file: RGB and upright, or the reason why not."""

import os
import stat
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".npy")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""What a file may hold, whatever its name: Pillow knows other formats, some of which start other programs."""
LARGEST = 89_478_485
"""Pixels beyond which a picture is taken for a decompression bomb: Pillow's own limit."""


class UnusableError(Exception):
    """A file that holds no usable image; says why."""


def shown(path: str | Path) -> str:
    """A path in words that can be printed, even if it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def open_picture(path: str | Path, least: int | None = None) -> Image.Image:
    """The picture in a file: the first one, upright as its camera says, without transparency.

    Where only a small one is needed, a JPEG is decoded at a fraction of its size, neither side below `least`.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise UnusableError("it is no ordinary file")
        return _array(path) if os.fspath(path).lower().endswith(".npy") else _picture(path, least)
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
    if os.fspath(path).lower().endswith(".npy"):
        return open_picture(path).size
    with Image.open(path, formats=FORMATS) as file:
        return file.size


def _sentence(text: str) -> str:
    return shown(text.strip().rstrip("."))


def _picture(path: str | Path, least: int | None) -> Image.Image:
    with Image.open(path, formats=FORMATS) as file:
        _require_modest(*file.size)
        if least is not None:
            file.draft("RGB", (least, least))
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
