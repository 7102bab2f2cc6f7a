"""Data by name: images and labels, never augmented."""

from collections.abc import Callable, Mapping

from torch import from_numpy

from phinets.config.errors import look_up
from phinets.config.run import DataOptions
from phinets.data import shapes
from phinets.data.folder import folder
from phinets.data.images import Bad, Images, InMemory, Taken, batches
from phinets.data.rejects import Rejects
from phinets.data.split import ImageSet, Split

__all__ = ["DATA", "PLACES", "Bad", "ImageSet", "Images", "InMemory", "Rejects", "Split", "Taken", "batches", "load"]


def _shapes(options: DataOptions) -> Split:
    """A procedural world of ten forms, drawn by the package itself: no download, never used up."""
    numbers = {"train": options.train_images or 50_000, "test": options.test_images or 10_000}
    train, test = (_drawn(n, part, options) for part, n in numbers.items())
    return Split(train, test, shapes.CLASSES)


def _drawn(n: int, part: str, options: DataOptions) -> ImageSet:
    pixels, labels = shapes.finite(n, part=part, seed=options.world, size=options.image_size)  # type: ignore[arg-type]
    return ImageSet(InMemory(from_numpy(pixels)), from_numpy(labels))


DATA: Mapping[str, Callable[[DataOptions], Split]] = {
    "shapes": _shapes,
}
PLACES: Mapping[str, Callable[[str, DataOptions], Split]] = {
    "folder": folder,
}
"""Kinds of data that are found at a place: `folder:PATH`."""


def load(name: str, options: DataOptions) -> Split:
    """The data set called `name`, of the sizes that `options` asks for."""
    kind, colon, place = name.partition(":")
    if colon:
        return look_up("kind of place", kind, PLACES)(place, options)
    return look_up("data set", name, DATA)(options)
