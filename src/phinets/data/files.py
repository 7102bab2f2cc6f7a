"""Image files, decoded when they are fetched."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.views import Window
from phinets.data.decode import UnusableError, decode_crops, decode_opened, open_picture, printable, true_box
from phinets.data.image_sets import BadImage, ImageBatch


@dataclass(frozen=True, slots=True)
class Files:
    """Pictures in files: the central square of each, resized to `side` pixels."""

    paths: Sequence[str | Path]
    side: int
    sequential: bool = False
    """Whether an epoch goes by path, with numbers in names compared as numbers, instead of in random order."""
    max_pixels: int | None = None
    """Larger pictures are bad; None: `decode.LARGEST`, for a JPEG `decode.LARGEST_JPEG`."""

    def __len__(self) -> int:
        return len(self.paths)

    def head(self, n: int | None) -> Self:
        return replace(self, paths=self.paths[:n])

    def subset(self, rows: Tensor) -> Self:
        return replace(self, paths=[self.paths[i] for i in rows.tolist()])

    def order(self, generator: torch.Generator) -> Tensor:
        if self.sequential:
            return torch.tensor(sorted(range(len(self)), key=lambda row: _natural(self.paths[row])), dtype=torch.int64)
        return torch.randperm(len(self), generator=generator)

    def fetch(self, rows: Tensor) -> ImageBatch:
        return self._fetch(rows, lambda place, path: self._square(path))

    def fetch_usable(self, rows: Tensor) -> ImageBatch:
        """The usable pictures of these rows; bad ones are left out, not replaced."""
        results = list(_threads().map(lambda row: _attempt(self.paths[row], self._square), rows.tolist()))
        good = {i: one for i, one in enumerate(results) if not isinstance(one, BadImage)}
        bad = tuple(one for one in results if isinstance(one, BadImage))
        return ImageBatch(_stack(list(good.values()), self.side), rows[list(good)], bad)

    def fetch_crops(self, rows: Tensor, windows: Callable[[int, int, int], Sequence[Window]], side: int) -> ImageBatch:
        """Windows of the pictures of these rows, uint8 (n, windows, 3, side, side); each picture is decoded once.

        `windows` gets the index among these rows, and the picture's width and height.
        """
        return self._fetch(rows, lambda place, path: decode_crops(path, partial(windows, place), side, self.max_pixels))

    def _square(self, path: str | Path) -> NDArray[np.uint8]:
        return decode_square(path, self.side, self.max_pixels)

    def _fetch(self, rows: Tensor, decode: Callable[[int, str | Path], NDArray[np.uint8]]) -> ImageBatch:
        jobs = [(row, partial(decode, place)) for place, row in enumerate(rows.tolist())]
        results = list(_threads().map(lambda job: self._nearest_good(*job), jobs))
        images = torch.from_numpy(np.stack([picture for picture, _, _ in results]))
        bad = dict.fromkeys(one for _, _, failures in results for one in failures)
        return ImageBatch(images, torch.tensor([row for _, row, _ in results]), tuple(bad))

    def _nearest_good(
        self, row: int, decode: Callable[[str | Path], NDArray[np.uint8]]
    ) -> tuple[NDArray[np.uint8], int, list[BadImage]]:
        """The picture of this row or, if it is bad, the next good one; its row; and the bad ones."""
        bad: list[BadImage] = []
        for candidate in chain(range(row, len(self)), range(row)):
            result = _attempt(self.paths[candidate], decode)
            if not isinstance(result, BadImage):
                return result, candidate, bad
            bad.append(result)
        raise UserError(f"none of the {len(self)} images can be used; the first, '{bad[0].where}': {bad[0].why}.")


def _attempt(path: str | Path, decode: Callable[[str | Path], NDArray[np.uint8]]) -> NDArray[np.uint8] | BadImage:
    try:
        return decode(path)
    except UnusableError as error:
        return BadImage(printable(path), str(error))


def _natural(path: str | Path) -> tuple[list[list[str | int]], str]:
    """A sort key: `frame`, `frame9`, `frame10`, in every folder of the path; the path itself breaks ties (1, 01)."""
    folders = [re.split("([0-9]+)", name) for name in os.path.splitext(path)[0].split(os.sep)]
    return [[int(word) if i % 2 else word for i, word in enumerate(words)] for words in folders], os.fspath(path)


def decode_square(path: str | Path, side: int, max_pixels: int | None = None) -> NDArray[np.uint8]:
    """The picture in a file as uint8 (3, side, side), or UnusableError; decoded at full size, as if it was opened."""
    return center(open_picture(path, max_pixels=max_pixels), side)


def decode_squares(pictures: Sequence[Image.Image | str | Path], side: int, first: int = 0) -> Tensor:
    """Opened pictures or files, as `Files` gives them: uint8 (n, 3, side, side).

    `first` is the number of the first one, for the error.
    """

    def decode(place: int, picture: Image.Image | str | Path) -> NDArray[np.uint8]:
        try:
            if isinstance(picture, Image.Image):
                return center(decode_opened(picture), side)
            return decode_square(picture, side)
        except UnusableError as error:
            which = f"picture {place}" if isinstance(picture, Image.Image) else f"'{printable(picture)}'"
            raise UserError(f"{which} can't be used: {error}.") from error

    return _stack(list(_threads().map(decode, range(first, first + len(pictures)), pictures)), side)


def _stack(images: Sequence[NDArray[np.uint8]], side: int) -> Tensor:
    return torch.from_numpy(np.stack(images)) if images else torch.empty(0, 3, side, side, dtype=torch.uint8)


def center(picture: Image.Image, side: int) -> NDArray[np.uint8]:
    """The central square of a picture as uint8 (3, side, side).

    It is cut before it is resized: otherwise a strip of 1 × 60,000 pixels would grow with its other side.
    """
    left, top, right, bottom = true_box(picture)
    short = min(right - left, bottom - top)
    left, top = (left + right - short) / 2, (top + bottom - short) / 2
    resized = picture.resize((side, side), Image.Resampling.BICUBIC, box=(left, top, left + short, top + short))
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="decode")


Picture = Image.Image | str | Path
Array = Tensor | NDArray[np.uint8]
ImageInput = Picture | Array | Iterable[Picture] | Iterable[Array]
"""One picture or many: opened by Pillow, in files, or uint8 arrays with channels first or last."""


def image_batches(pictures: ImageInput, side: int, batch_size: int) -> Iterator[Tensor]:
    """The pictures in batches of uint8 (n, 3, h, w).

    Opened pictures and files, of any size and mode, become squares of `side` pixels, as in `Files`. Arrays keep their
    size, and `views.prepare` resizes them in the same way: (n, 3, h, w) or (n, h, w, 3), or one such image; where both
    fit, channels first.
    """
    if isinstance(pictures, Image.Image | str | Path):
        pictures = [pictures]
    if isinstance(pictures, Tensor | np.ndarray):
        yield from _channels_first(pictures).split(batch_size) if len(pictures) else ()
        return
    try:
        items: list[Any] = list(pictures)
    except TypeError:
        raise UserError(
            f"the pictures are {type(pictures).__name__}. Give opened pictures, paths or uint8 arrays, one or many."
        ) from None
    kinds = {isinstance(one, Image.Image | str | Path) for one in items}
    if kinds == {True}:
        for first in range(0, len(items), batch_size):
            yield decode_squares(items[first : first + batch_size], side, first)
    elif kinds:
        yield from _channels_first(_stack_arrays(items)).split(batch_size)


def _stack_arrays(items: Sequence[Any]) -> Tensor:
    if not all(isinstance(one, Tensor | np.ndarray) for one in items):
        kinds = sorted({type(one).__name__ for one in items})
        raise UserError(f"the pictures are {', '.join(kinds)}. Give opened pictures or paths alone, or arrays alone.")
    arrays = [_tensor(one) for one in items]
    shapes = sorted({tuple(one.shape) for one in arrays})
    if len(shapes) > 1:
        raise UserError(
            f"the arrays have several shapes ({shapes[0]}, {shapes[1]}). Give arrays of one shape, or opened pictures "
            "(PIL.Image.fromarray), which may have any."
        )
    return torch.stack(arrays)


def _channels_first(array: Array) -> Tensor:
    """uint8 (n, 3, h, w)."""
    images = _tensor(array)
    if images.dtype != torch.uint8:
        raise UserError(f"the pictures are {images.dtype}, but must be uint8 (0–255): the encoder normalizes them.")
    whole = images[None] if images.ndim == 3 else images
    if whole.ndim == 4 and whole.shape[1] == 3:
        return whole
    if whole.ndim == 4 and whole.shape[3] == 3:
        return whole.permute(0, 3, 1, 2)
    raise UserError(
        f"the pictures have shape {tuple(images.shape)}, but must be (n, 3, h, w) or (n, h, w, 3), or one of them. "
        "Repeat a gray channel three times."
    )


def _tensor(array: Array) -> Tensor:
    if isinstance(array, Tensor):
        return array
    try:
        whole = np.ascontiguousarray(array)
        return torch.from_numpy(whole if whole.flags.writeable else whole.copy())  # torch warns of read-only arrays
    except TypeError as error:
        raise UserError(f"the pictures are {np.asarray(array).dtype}, but must be uint8 (0–255).") from error
