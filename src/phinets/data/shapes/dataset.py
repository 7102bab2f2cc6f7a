"""The world as a data set: a train part, a test part, and a stream that goes on where the train part ends."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits, ImageBatch, ImageSet, InMemory
from phinets.data.shapes.rendering import CLASSES, draw
from phinets.data.shapes.scene import WORLD, World

TRAIN = 0
TEST = 1 << 40
"""Index of the first test picture; everything below belongs to training."""


def finite(
    n: int, *, split: Literal["train", "test"], seed: int = 0, size: int = 32, world: World = WORLD
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The first `n` pictures of a part, and their classes."""
    if split not in ("train", "test"):
        raise UserError(f"there is no part called '{split}'. Ask for 'train' or 'test'.")
    if not 1 <= n <= TEST - TRAIN:
        raise UserError(f"a part cannot hold {n} pictures. Ask for 1 to {TEST - TRAIN}.")
    first = TRAIN if split == "train" else TEST
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


STREAM_IMAGES = 180_000
"""Pictures of the endless stream, where nobody says how many."""
BANK_IMAGES = 10_000
"""How many of the first ones are labelled."""


def shapes(options: DataOptions) -> DataSplits:
    """A procedural world of ten forms, drawn by the package itself: no download, never used up."""
    train = _drawn(_enough(options.train_images, options) or 50_000, "train", options)
    return DataSplits(train, _drawn(_enough(options.test_images, options) or 10_000, "test", options), CLASSES)


def shapes_stream(options: DataOptions) -> DataSplits:
    """Shapes that are drawn as they arrive and then forgotten: as many as --train-images says (180,000), none twice.

    They are those of `shapes`, in its order, and go on where it ends. They come without labels; known are the first
    10,000, which are kept, and asked about is what `shapes` asks about.
    """
    if options.classes:
        raise UserError(
            "stream:shapes arrives without labels, so --classes can't choose among them. Leave it out, or use --data "
            "shapes, which draws as many of the chosen classes as --train-images says."
        )
    n = options.train_images or STREAM_IMAGES
    if n > TEST:
        raise UserError(f"train_images is {n}, but even the endless stream of shapes ends after {TEST} pictures.")
    as_stream = ShapesStream(options.shapes_seed, options.image_size, range(n))
    known, test = _drawn(min(n, BANK_IMAGES), "train", options), _drawn(options.test_images or 10_000, "test", options)
    return DataSplits(ImageSet(as_stream, None), test, CLASSES, bank=known)


@dataclass(frozen=True, slots=True)
class ShapesStream:
    """Training pictures of a world of shapes, each drawn whenever it is asked for: however many, they take no memory.

    They are shown in their own order, epoch after epoch.
    """

    shapes_seed: int
    size: int
    """Their side in pixels."""
    rows: range | Tensor
    """Their numbers in the world."""

    def __len__(self) -> int:
        return len(self.rows)

    def fetch(self, rows: Tensor) -> ImageBatch:
        """The pictures of these numbers."""
        numbers = rows + self.rows.start if isinstance(self.rows, range) else self.rows[rows]
        pixels, _ = draw(numbers.numpy(), seed=self.shapes_seed, size=self.size)
        return ImageBatch(from_numpy(pixels), rows)

    def head(self, n: int | None) -> "ShapesStream":
        """The first n only."""
        return replace(self, rows=self.rows[:n])

    def subset(self, rows: Tensor) -> "ShapesStream":
        """Those of these numbers only."""
        return replace(self, rows=rows + self.rows.start if isinstance(self.rows, range) else self.rows[rows])

    def order(self, generator: torch.Generator) -> range:
        """As they are counted: this is a stream."""
        return range(len(self))


def _enough(wanted: int | None, options: DataOptions) -> int | None:
    """How many to draw for so many of the wanted classes: each is a tenth of all, give or take chance."""
    if wanted is None or not options.classes:
        return wanted
    return round(1.2 * wanted * len(CLASSES) / len(options.classes)) + 200


def _drawn(n: int, split: Literal["train", "test"], options: DataOptions) -> ImageSet:
    pixels, labels = finite(n, split=split, seed=options.shapes_seed, size=options.image_size)
    return ImageSet(InMemory(from_numpy(pixels)), from_numpy(labels))
