"""Shapes as a data set: a train split, a test split, and a stream that continues the train split."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from phinets.config.errors import UserError, look_up
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits, ImageBatch, ImageSet, InMemory, RowImages
from phinets.data.shapes.rendering import CLASSES, draw
from phinets.data.shapes.scene import WORLD, World

TRAIN = 0
TEST = 1 << 40
"""Index of the first test picture; all smaller indices are training pictures."""


def finite(
    n: int, *, split: Literal["train", "test"], seed: int = 0, size: int = 32, world: World = WORLD
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The first `n` pictures of a split, and their classes."""
    first = look_up("split", split, {"train": TRAIN, "test": TEST})
    if not 1 <= n <= TEST - TRAIN:
        raise UserError(f"n is {n}, but must be 1 to {TEST - TRAIN}.")
    return draw(np.arange(first, first + n), seed=seed, size=size, world=world)


def stream(
    batch: int, *, seed: int = 0, size: int = 32, start: int = 0, world: World = WORLD
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Batches of train pictures without end, from picture `start` on; none comes twice."""
    if batch < 1:
        raise UserError(f"batch is {batch}, but must be at least 1.")
    if not 0 <= start < TEST - TRAIN:
        raise UserError(f"start is {start}, but must be 0 to {TEST - TRAIN - 1}.")
    firsts = range(TRAIN + start, TEST - batch + 1, batch)
    return (draw(np.arange(first, first + batch), seed=seed, size=size, world=world) for first in firsts)


def contact_sheet(seed: int = 0, per_class: int = 10, size: int = 32, world: World = WORLD) -> NDArray[np.uint8]:
    """One row per class, the first `per_class` train pictures of each: (10 · size, per_class · size, 3)."""
    if per_class < 1:
        raise UserError(f"per_class is {per_class}, but must be at least 1.")
    rows: list[list[NDArray[np.uint8]]] = [[] for _ in CLASSES]
    for images, labels in stream(20 * per_class, seed=seed, size=size, world=world):
        for image, label in zip(images, labels, strict=True):
            rows[label].append(image.transpose(1, 2, 0))
        if min(map(len, rows)) >= per_class:
            break
    return np.concatenate([np.concatenate(row[:per_class], axis=1) for row in rows], axis=0)


STREAM_IMAGES = 180_000
"""Images of the stream, by default."""
BANK_IMAGES = 10_000
"""Images of the stream's labeled bank."""


SINGLE = World(across=1)
"""One object in each picture: as large at 16 pixels as those of `WORLD` at 32."""


def shapes(options: DataOptions, world: World = WORLD) -> DataSplits:
    """A procedural world of ten forms, drawn by the package itself: no download, any number of images."""
    train = _image_set(_n_for_classes(options.train_images, options) or 50_000, "train", options, world)
    test = _image_set(_n_for_classes(options.test_images, options) or 10_000, "test", options, world)
    return DataSplits(train, test, CLASSES)


def single_shapes(options: DataOptions) -> DataSplits:
    """The same world with one object in each picture, for images of 16 pixels."""
    return shapes(options, SINGLE)


def shapes_stream(options: DataOptions, world: World = WORLD) -> DataSplits:
    """Shapes that are drawn when needed and not stored: as many as --train-images says (180,000), none twice.

    They are those of `shapes`, in its order, and continue it. They have no labels; the bank is the first 10,000, and
    the test images are those of `shapes`.
    """
    if options.classes:
        raise UserError(
            "stream:shapes has no labels, so --classes can't select from it. Leave it out, or use --data shapes, which "
            "draws as many images of these classes as --train-images says."
        )
    n = options.train_images or STREAM_IMAGES
    if n > TEST:
        raise UserError(f"train_images is {n}, but stream:shapes has at most {TEST} images.")
    images = ShapesStream(range(n), options.shapes_seed, options.image_size, world)
    bank = _image_set(min(n, BANK_IMAGES), "train", options, world)
    test = _image_set(options.test_images or 10_000, "test", options, world)
    return DataSplits(ImageSet(images, None), test, CLASSES, bank)


def single_shapes_stream(options: DataOptions) -> DataSplits:
    """The same of `shapes/single`."""
    return shapes_stream(options, SINGLE)


@dataclass(frozen=True, slots=True)
class ShapesStream(RowImages):
    """Training images that are drawn when they are fetched, in sequence; they take no memory."""

    shapes_seed: int
    size: int
    """Side in pixels."""
    world: World = WORLD

    def fetch(self, rows: Tensor) -> ImageBatch:
        pixels, _ = draw(self.numbers(rows).numpy(), seed=self.shapes_seed, size=self.size, world=self.world)
        return ImageBatch(from_numpy(pixels), rows)

    def order(self, generator: torch.Generator) -> range:
        return range(len(self))


def _n_for_classes(n: int | None, options: DataOptions) -> int | None:
    """How many images to draw to get n of the selected classes, each of which is a tenth of all on average."""
    if n is None or not options.classes:
        return n
    return round(1.2 * n * len(CLASSES) / len(options.classes)) + 200


def _image_set(n: int, split: Literal["train", "test"], options: DataOptions, world: World) -> ImageSet:
    pixels, labels = finite(n, split=split, seed=options.shapes_seed, size=options.image_size, world=world)
    return ImageSet(InMemory(from_numpy(pixels)), from_numpy(labels))
