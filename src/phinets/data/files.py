"""Image files, decoded when they are asked for."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.images import Bad, Taken

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".npy")
LARGEST = 2**27
"""Pixels beyond which a picture is taken for a decompression bomb."""
Image.MAX_IMAGE_PIXELS = LARGEST


class UnusableError(Exception):
    """A file that holds no usable image; says why."""


@dataclass(frozen=True, slots=True)
class Files:
    """Pictures in files, each shown as a square of `side` pixels: short side brought to it, then the centre."""

    paths: Sequence[Path]
    side: int

    def __len__(self) -> int:
        return len(self.paths)

    def head(self, n: int | None) -> "Files":
        """The first n only."""
        return Files(self.paths[:n], self.side)

    def take(self, rows: Tensor) -> Taken:
        """The pictures of these numbers, decoded by threads."""
        found = list(_threads().map(self._nearest_good, rows.tolist()))
        images = torch.from_numpy(np.stack([picture for picture, _, _ in found]))
        bad = {where: why for _, _, tried in found for where, why in tried}
        return Taken(images, torch.tensor([row for _, row, _ in found]), tuple(Bad(*item) for item in bad.items()))

    def _nearest_good(self, row: int) -> tuple[NDArray[np.uint8], int, list[Bad]]:
        """The picture of this number or, where it can't be used, the next one that can."""
        tried: list[Bad] = []
        for candidate in (*range(row, len(self)), *range(row)):
            path = self.paths[candidate]
            try:
                return square(path, self.side), candidate, tried
            except UnusableError as error:
                tried.append(Bad(str(path), str(error)))
        raise UserError(f"none of the {len(self)} images can be used; the first, '{tried[0].where}': {tried[0].why}.")


def square(path: Path, side: int) -> NDArray[np.uint8]:
    """The picture in a file as uint8 (3, side, side), or UnusableError."""
    try:
        picture = _array(path) if path.suffix.lower() == ".npy" else _picture(path, side)
        short = min(picture.size)
        wide, tall = (max(side, round(edge * side / short)) for edge in picture.size)
        left, top = (wide - side) // 2, (tall - side) // 2
        resized = picture.resize((wide, tall), Image.Resampling.BICUBIC).crop((left, top, left + side, top + side))
        return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))
    except UnusableError:
        raise
    except Exception as error:  # a damaged file may raise anything: Pillow's plugins have many words for it
        raise UnusableError(str(error).strip().rstrip(".") or type(error).__name__) from error


def _picture(path: Path, side: int) -> Image.Image:
    with Image.open(path) as file:
        if file.width * file.height > LARGEST:
            raise UnusableError(f"{file.width} × {file.height} pixels are more than a picture should have")
        file.draft("RGB", (side, side))  # lets a JPEG be decoded at a fraction of its size
        return file.convert("RGB")


def _array(path: Path) -> Image.Image:
    """An array of height × width × 3: bytes, or floats from 0 to 1."""
    pixels = np.load(path, allow_pickle=False)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or 0 in pixels.shape:
        raise UnusableError(f"an array of shape {pixels.shape} is no picture (height, width, 3)")
    if pixels.dtype == np.uint8:
        return Image.fromarray(pixels)
    if not np.issubdtype(pixels.dtype, np.floating):
        raise UnusableError(f"its numbers are {pixels.dtype}; bytes, or floats from 0 to 1, would do")
    if not np.isfinite(pixels).all():
        raise UnusableError("it holds NaN or infinite values")
    if pixels.min() < 0 or pixels.max() > 1:
        raise UnusableError(f"its values lie in [{pixels.min():g}, {pixels.max():g}], not in [0, 1]")
    return Image.fromarray((pixels * 255).round().astype(np.uint8))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="decode")
