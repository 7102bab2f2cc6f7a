"""Decode pictures: RGB and upright, or the reason why they can't be used.

A large JPEG is decoded at 1/2, 1/4 or 1/8 of its size where that is enough. libjpeg rounds the reduced size up, so the
picture then covers its last row and column only in part: `true_box` says where it ends.
"""

import math
import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from phinets.config.views import Window

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".npy")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""The allowed formats, whatever the file's name: some of Pillow's other formats start other programs."""
JPEGS = ("JPEG", "MPO")
RESAMPLING = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
ORIENTATION, SIDEWAYS = 0x0112, (5, 6, 7, 8)
"""EXIF's field for the orientation of the camera, and the values that swap width and height."""
LARGEST, LARGEST_JPEG = 89_478_485, 500_000_000
"""Largest number of pixels by default; more counts as a decompression bomb. The first is Pillow's limit."""
LARGE_SIDE = 2048
"""A JPEG above Pillow's limit is always decoded at a fraction of its size: to this short side or more, if it has it."""
CROP_OVERSAMPLING = 2
"""How many times larger than its output a reduced JPEG must be: 2 changes crops of photographs by .3/255 on average."""
BOX = "phinets_box"
Box = tuple[float, float, float, float]


class UnusableError(Exception):
    """The reason why a file or picture can't be used."""


def printable(path: str | Path) -> str:
    """A path as printable text, even if it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def open_picture(path: str | Path, least: int | None = None, max_pixels: int | None = None) -> Image.Image:
    """The first picture in a file, upright, without transparency.

    A JPEG may be decoded at a fraction of its size, with neither side below `least`; see `true_box`. A picture of more
    than `max_pixels` is unusable; None: LARGEST, for a JPEG LARGEST_JPEG.
    """
    with _explained(path):
        return _picture(path, lambda width, height: least, max_pixels)


def decode_opened(picture: Image.Image, least: int | None = None) -> Image.Image:
    """An opened picture, as `open_picture` gives it from its file.

    With `least`, a JPEG that is not yet decoded may be decoded at a fraction of its size.
    """
    with _explained():
        file = picture.fp if isinstance(picture, ImageFile.ImageFile) and picture.tile and picture.tell() == 0 else None
        large = picture.width * picture.height > LARGEST
        if file is not None and picture.format in JPEGS and (large or least is not None):
            return _picture(file, lambda width, height: least)
        _require_modest(*picture.size, LARGEST_JPEG)
        return _rgb(ImageOps.exif_transpose(picture))


def true_box(picture: Image.Image) -> Box:
    """Left, top, right and bottom of the whole picture, in pixels of a perhaps reduced one."""
    box: Box = picture.info.get(BOX, (0.0, 0.0, *picture.size))
    return box


def decode_crops(
    path: str | Path, windows: Callable[[int, int], Sequence[Window]], side: int, max_pixels: int | None = None
) -> NDArray[np.uint8]:
    """Windows of the picture in a file, each resized to side × side: uint8 (windows, 3, side, side).

    `windows` gets the picture's width and height. A JPEG is decoded at the fraction of its size that still gives every
    window enough pixels. `max_pixels` as in `open_picture`.
    """
    crops: list[Window] = []
    size = [0, 0]

    def least(width: int, height: int) -> int:
        crops.extend(windows(width, height))
        size[:] = width, height
        narrowest = min(min(w.right - w.left, w.bottom - w.top) for w in crops)
        return max(1, math.ceil(CROP_OVERSAMPLING * min(width, height) * side / narrowest))

    with _explained(path):
        picture = _picture(path, least, max_pixels)
        scale = (true_box(picture)[2] - true_box(picture)[0]) / size[0]
        return np.stack([_crop(picture, window, scale, side) for window in crops])


def _crop(picture: Image.Image, window: Window, scale: float, side: int) -> NDArray[np.uint8]:
    """One window as uint8 (3, side, side). It is cut before it is resized, so that no pixel outside of it counts."""
    start_x, start_y = true_box(picture)[:2]
    left, right = start_x + window.left * scale, start_x + window.right * scale
    top, bottom = start_y + window.top * scale, start_y + window.bottom * scale
    x, y = math.floor(left), math.floor(top)
    region = picture.crop((x, y, min(picture.width, math.ceil(right)), min(picture.height, math.ceil(bottom))))
    box = left - x, top - y, min(region.width, right - x), min(region.height, bottom - y)
    resized = region.resize((side, side), RESAMPLING[window.interpolation], box=box)
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def _is_array(path: str | Path) -> bool:
    return os.fspath(path).lower().endswith(".npy")


@contextmanager
def _explained(path: str | Path | None = None) -> Iterator[None]:
    """Refuse what is no regular file, and turn any error into UnusableError."""
    try:
        if path is not None and not stat.S_ISREG(os.stat(path).st_mode):
            raise UnusableError("it is no regular file")
        yield
    except UnusableError:
        raise
    except UnidentifiedImageError:
        raise UnusableError(f"it holds none of {', '.join(FORMATS)}") from None
    except OSError as error:
        raise UnusableError(printable(error.strerror or str(error).rstrip("."))) from error
    except Exception as error:  # a damaged file may raise anything in Pillow's plugins
        raise UnusableError(printable(str(error).strip().rstrip(".")) or type(error).__name__) from error


def picture_size(path: str | Path) -> tuple[int, int]:
    """Width and height from the file's header, before it is turned upright."""
    if _is_array(path):
        return open_picture(path).size
    with _opened(path) as file:
        return file.size


@contextmanager
def _opened(source: str | Path | IO[bytes]) -> Iterator[ImageFile.ImageFile]:
    """`Image.open` of the allowed formats, without Pillow's own limit on pixels."""
    Image.init()
    with open(source, "rb") if isinstance(source, str | Path) else nullcontext(source) as file:
        file.seek(0)
        prefix = file.read(16)
        for name in FORMATS:
            factory, accept = Image.OPEN[name]
            if accept is None or accept(prefix) is True:
                file.seek(0)
                with suppress(SyntaxError, IndexError, TypeError, struct.error):  # not of this format
                    picture = factory(file, "")
                    break
        else:
            raise UnidentifiedImageError
        yield picture


def _picture(
    source: str | Path | IO[bytes], least: Callable[[int, int], int | None], max_pixels: int | None = None
) -> Image.Image:
    if isinstance(source, str | Path) and _is_array(source):
        picture = _array(source, max_pixels or LARGEST)
        least(*picture.size)
        return picture
    with _opened(source) as file:
        _require_modest(*file.size, max_pixels or (LARGEST_JPEG if file.format in JPEGS else LARGEST))
        orientation = file.getexif().get(ORIENTATION, 1)
        smallest = least(*(reversed(file.size) if orientation in SIDEWAYS else file.size))
        if file.width * file.height > LARGEST:
            fraction = 2 ** math.ceil(math.log(file.width * file.height / LARGEST, 4))
            smallest = min(smallest or LARGE_SIDE, max(1, min(file.size) // fraction))
        draft = None if smallest is None else file.draft("RGB", (smallest, smallest))
        file.load()
        picture = _rgb(ImageOps.exif_transpose(file))
        if draft is not None:
            picture.info[BOX] = _upright_box(draft[1][2], draft[1][3], orientation, picture.size)
        return picture


def _upright_box(width: float, height: float, orientation: int, size: tuple[int, int]) -> Box:
    """The box of a reduced picture that took width × height pixels of its raw one, from the top left, once upright."""
    if orientation in SIDEWAYS:
        width, height = height, width
    left = size[0] - width if orientation in (2, 3, 6, 7) else 0.0
    top = size[1] - height if orientation in (3, 4, 7, 8) else 0.0
    return left, top, left + width, top + height


def _rgb(picture: Image.Image) -> Image.Image:
    """8-bit RGB. 16-bit values lose their lower byte, instead of all above 255 becoming white."""
    if picture.mode == "F":
        raise UnusableError("its pixels are floats of an unknown range")
    if picture.mode == "I" or picture.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(picture).clip(0, 65535) >> 8).astype(np.uint8)).convert("RGB")
    if picture.mode == "P" and "transparency" in picture.info:
        picture = picture.convert("RGBA")
    return picture.convert("RGB")


def _array(path: str | Path, max_pixels: int) -> Image.Image:
    """An array of height × width × 3: uint8, or floats from 0 to 1."""
    try:
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped, so that a false header costs no memory
    except ValueError as error:
        raise UnusableError(f"it is not a complete array: {error}") from error
    if pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise UnusableError(f"an array of shape {pixels.shape} is not (height, width, 3)")
    _require_modest(pixels.shape[1], pixels.shape[0], max_pixels)
    if pixels.dtype == np.uint8:
        return Image.fromarray(np.array(pixels))
    if not np.issubdtype(pixels.dtype, np.floating):
        raise UnusableError(f"its numbers are {pixels.dtype}, not uint8 or floats from 0 to 1")
    if not np.isfinite(pixels).all():
        raise UnusableError("it holds NaN or infinite values")
    if pixels.min() < 0 or pixels.max() > 1:
        raise UnusableError(f"its values are in [{pixels.min():g}, {pixels.max():g}], not in [0, 1]")
    return Image.fromarray((np.asarray(pixels, np.float64) * 255).round().astype(np.uint8))


def _require_modest(width: int, height: int, limit: int) -> None:
    if width * height > limit:
        raise UnusableError(f"{width} × {height} pixels are more than the limit of {limit:,} (--max-pixels)")
