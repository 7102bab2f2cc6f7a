"""The world as a data set: a train part, a test part, and a stream that goes on where the train part ends."""

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.data.shapes.drawing import draw
from phinets.data.shapes.forms import CLASSES
from phinets.data.shapes.world import WORLD, World

TRAIN = 0
TEST = 1 << 40
"""Index of the first test picture; everything below belongs to training."""


def finite(
    n: int, *, part: Literal["train", "test"], seed: int = 0, size: int = 32, world: World = WORLD
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The first `n` pictures of a part, and their classes."""
    if part not in ("train", "test"):
        raise UserError(f"there is no part called '{part}'. Ask for 'train' or 'test'.")
    if not 1 <= n <= TEST - TRAIN:
        raise UserError(f"a part cannot hold {n} pictures. Ask for 1 to {TEST - TRAIN}.")
    first = TRAIN if part == "train" else TEST
    return draw(np.arange(first, first + n), seed=seed, size=size, world=world)


def stream(
    batch: int, *, seed: int = 0, size: int = 32, start: int = 0, world: World = WORLD
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Batches of train pictures without end, from picture `start` on; none ever comes twice."""
    if batch < 1:
        raise UserError(f"a batch cannot hold {batch} pictures. Ask for 1 or more.")
    if not 0 <= start < TEST - TRAIN:
        raise UserError(f"a stream cannot start at picture {start}. Start at 0 to {TEST - TRAIN - 1}.")
    return _batches(batch, seed, size, start, world)


def _batches(
    batch: int, seed: int, size: int, start: int, world: World
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    first = TRAIN + start
    while first + batch <= TEST:
        yield draw(np.arange(first, first + batch), seed=seed, size=size, world=world)
        first += batch


def contact_sheet(seed: int = 0, per_class: int = 10, size: int = 32, world: World = WORLD) -> NDArray[np.uint8]:
    """One row per class, the first `per_class` train pictures of each: (10 · size, per_class · size, 3)."""
    if per_class < 1:
        raise UserError(f"a contact sheet cannot show {per_class} pictures of a class. Ask for 1 or more.")
    rows: list[list[NDArray[np.uint8]]] = [[] for _ in CLASSES]
    for images, labels in stream(20 * per_class, seed=seed, size=size, world=world):
        for image, label in zip(images, labels, strict=True):
            rows[label].append(image.transpose(1, 2, 0))
        if min(map(len, rows)) >= per_class:
            break
    return np.concatenate([np.concatenate(row[:per_class], axis=1) for row in rows], axis=0)
