"""The world of shapes as a data set."""

from typing import Literal

from torch import from_numpy

from phinets.config.run import DataOptions
from phinets.data.images import InMemory
from phinets.data.shapes import CLASSES, finite
from phinets.data.split import ImageSet, Split


def shapes(options: DataOptions) -> Split:
    """A procedural world of ten forms, drawn by the package itself: no download, never used up."""
    train = _drawn(_enough(options.train_images, options) or 50_000, "train", options)
    return Split(train, _drawn(_enough(options.test_images, options) or 10_000, "test", options), CLASSES)


def _enough(wanted: int | None, options: DataOptions) -> int | None:
    """How many to draw for so many of the wanted classes: each is a tenth of all, give or take chance."""
    if wanted is None or not options.classes:
        return wanted
    return round(1.2 * wanted * len(CLASSES) / len(options.classes)) + 200


def _drawn(n: int, part: Literal["train", "test"], options: DataOptions) -> ImageSet:
    pixels, labels = finite(n, part=part, seed=options.world, size=options.image_size)
    return ImageSet(InMemory(from_numpy(pixels)), from_numpy(labels))
