"""Image files, decoded when they are asked for."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, count
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.views import Window
from phinets.data.decode import UnusableError, decode_crops, decode_opened, open_picture, picture_size, printable
from phinets.data.image_sets import BadImage, ImageBatch


@dataclass(frozen=True, slots=True)
class Files:
    """Pictures in files, each shown as a square of `side` pixels: the center, brought to it."""

    paths: Sequence[str | Path]
    side: int

    def __len__(self) -> int:
        return len(self.paths)

    def head(self, n: int | None) -> Self:
        """The first n only."""
        return replace(self, paths=self.paths[:n])

    def subset(self, rows: Tensor) -> Self:
        """Those of these numbers only."""
        return replace(self, paths=[self.paths[i] for i in rows.tolist()])

    def order(self, generator: torch.Generator) -> Tensor:
        """A file costs the same wherever it is: every permutation is equally likely."""
        return torch.randperm(len(self), generator=generator)

    def open(self, row: int) -> Image.Image:
        """The picture of this number as it is, RGB and upright; or UnusableError."""
        return open_picture(self.paths[row])

    def size(self, row: int) -> tuple[int, int]:
        """Width and height of the picture of this number, which is not decoded for it."""
        return picture_size(self.paths[row])

    def fetch(self, rows: Tensor) -> ImageBatch:
        """The pictures of these numbers, decoded by threads."""
        return self._taken(rows, lambda place, path: decode_square(path, self.side))

    def fetch_usable(self, rows: Tensor) -> ImageBatch:
        """Those of the pictures of these numbers that can be used; nobody stands in for the others."""
        found = list(_threads().map(self._tried, rows.tolist()))
        images = [one for one in found if not isinstance(one, BadImage)]
        good = torch.tensor([not isinstance(one, BadImage) for one in found], dtype=torch.bool)
        bad = tuple(one for one in found if isinstance(one, BadImage))
        return ImageBatch(_stacked(images, self.side), rows[good], bad)

    def fetch_crops(self, rows: Tensor, windows: Callable[[int, int, int], Sequence[Window]], side: int) -> ImageBatch:
        """Windows of the pictures of these numbers, uint8 (n, windows, 3, side, side); each is decoded once.

        `windows` is told the place among these, and the picture's width and height.
        """
        return self._taken(rows, lambda place, path: decode_crops(path, partial(windows, place), side))

    def _taken(self, rows: Tensor, show: Callable[[int, str | Path], NDArray[np.uint8]]) -> ImageBatch:
        found = list(_threads().map(lambda job: self._nearest_good(job[0], job[1], show), enumerate(rows.tolist())))
        images = torch.from_numpy(np.stack([picture for picture, _, _ in found]))
        bad = {where: why for _, _, tried in found for where, why in tried}
        return ImageBatch(
            images, torch.tensor([row for _, row, _ in found]), tuple(BadImage(*item) for item in bad.items())
        )

    def _tried(self, row: int) -> NDArray[np.uint8] | BadImage:
        try:
            return decode_square(self.paths[row], self.side)
        except UnusableError as error:
            return BadImage(printable(self.paths[row]), str(error))

    def _nearest_good(
        self, place: int, row: int, show: Callable[[int, str | Path], NDArray[np.uint8]]
    ) -> tuple[NDArray[np.uint8], int, list[BadImage]]:
        """The picture of this number or, where it can't be used, the next one that can."""
        tried: list[BadImage] = []
        for candidate in chain(range(row, len(self)), range(row)):
            path = self.paths[candidate]
            try:
                return show(place, path), candidate, tried
            except UnusableError as error:
                tried.append(BadImage(printable(path), str(error)))
        raise UserError(f"none of the {len(self)} images can be used; the first, '{tried[0].where}': {tried[0].why}.")


def decode_square(path: str | Path, side: int) -> NDArray[np.uint8]:
    """The picture in a file as uint8 (3, side, side), or UnusableError."""
    return center(open_picture(path, side), side)


def decode_squares(pictures: Sequence[Image.Image | str | Path], side: int, first: int = 0) -> Tensor:
    """Pictures that are opened already, or in files, as `Files` shows them: uint8 (n, 3, side, side).

    `first` is the number of the first one, for the error.
    """
    return _stacked(list(_threads().map(partial(_given, side), pictures, count(first))), side)


def _given(side: int, picture: Image.Image | str | Path, place: int) -> NDArray[np.uint8]:
    try:
        return (
            center(decode_opened(picture, side), side)
            if isinstance(picture, Image.Image)
            else decode_square(picture, side)
        )
    except UnusableError as error:
        which = f"picture {place}" if isinstance(picture, Image.Image) else f"'{printable(picture)}'"
        raise UserError(f"{which} can't be used: {error}.") from error


def _stacked(images: Sequence[NDArray[np.uint8]], side: int) -> Tensor:
    return torch.from_numpy(np.stack(images)) if images else torch.empty(0, 3, side, side, dtype=torch.uint8)


def center(picture: Image.Image, side: int) -> NDArray[np.uint8]:
    """The central square of a picture as uint8 (3, side, side).

    It is cut before it is resized: a strip of 1 × 60,000 pixels would otherwise grow with its other side.
    """
    short = min(picture.size)
    left, top = ((edge - short) / 2 for edge in picture.size)
    resized = picture.resize((side, side), Image.Resampling.BICUBIC, box=(left, top, left + short, top + short))
    return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="decode")


Picture = Image.Image | str | Path
Array = Tensor | NDArray[np.uint8]
ImageInput = Picture | Array | Iterable[Picture] | Iterable[Array]
"""One picture or many: opened by Pillow, in files, or bytes with their channels first or last."""


def image_batches(given: ImageInput, side: int, at_once: int) -> Iterator[Tensor]:
    """The pictures a chunk at a time, as uint8 (n, 3, h, w).

    Opened pictures and files, of any sizes and modes, are shown as squares of `side` pixels, as `Files` shows them.
    Arrays keep their size: (n, 3, h, w) or (n, h, w, 3), or one of these images alone; where both fit, channels first.
    """
    if isinstance(given, Image.Image | str | Path):
        given = [given]
    if isinstance(given, Tensor | np.ndarray):
        yield from _channels_first(given).split(at_once) if len(given) else ()
        return
    given = _listed(given)
    kinds = {isinstance(one, Image.Image | str | Path) for one in given}
    if kinds == {True}:
        for first in range(0, len(given), at_once):
            yield decode_squares(given[first : first + at_once], side, first)
    elif kinds:
        yield from _channels_first(_one_array(given)).split(at_once)


def _listed(given: Iterable[Any]) -> list[Any]:
    """Whatever can be gone through, once or often, as a list."""
    try:
        return list(given)
    except TypeError:
        raise UserError(
            f"the pictures are {type(given).__name__}. Give opened pictures, paths or uint8 arrays, one or many."
        ) from None


def _one_array(given: Sequence[Any]) -> Tensor:
    """Arrays of one shape as one."""
    if not all(isinstance(one, Tensor | np.ndarray) for one in given):
        kinds = sorted({type(one).__name__ for one in given})
        raise UserError(f"the pictures are {', '.join(kinds)}. Give opened pictures or paths alone, or arrays alone.")
    arrays = [_tensor(one) for one in given]
    shapes = sorted({tuple(one.shape) for one in arrays})
    if len(shapes) > 1:
        raise UserError(
            f"the arrays have several shapes ({shapes[0]}, {shapes[1]}). Give arrays of one shape, or opened pictures "
            "(PIL.Image.fromarray), which may have any."
        )
    return torch.stack(arrays)


def _channels_first(array: Array) -> Tensor:
    """Bytes (n, 3, h, w)."""
    images = _tensor(array)
    if images.dtype != torch.uint8:
        raise UserError(
            f"the pictures are {images.dtype}, but must be uint8 (0–255): normalizing them is the encoder's own affair."
        )
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
        return torch.from_numpy(whole if whole.flags.writeable else whole.copy())  # torch warns of what is read-only
    except TypeError as error:
        raise UserError(f"the pictures are {array.dtype}, but must be uint8 (0–255).") from error
