"""Pictures as people hand them over: opened ones, files, or arrays of bytes."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.files import squares

Picture = Image.Image | str | Path
Array = Tensor | NDArray[np.uint8]
Given = Picture | Array | Iterable[Picture] | Iterable[Array]
"""One picture or many: opened by Pillow, in files, or bytes with their channels first or last."""


def given_chunks(given: Given, side: int, at_once: int) -> Iterator[Tensor]:
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
            yield squares(given[first : first + at_once], side, first)
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
