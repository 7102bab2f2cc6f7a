"""Data by name: images and labels, never augmented."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, from_numpy

from phinets.config.errors import look_up
from phinets.config.run import DataOptions
from phinets.data import shapes

__all__ = ["DATA", "ImageSet", "Split", "load"]


@dataclass(frozen=True, slots=True)
class ImageSet:
    """Images in memory, and what is known of them."""

    images: Tensor
    """uint8 (n, 3, height, width)."""
    labels: Tensor | None
    """int64 (n,), or None where nobody said."""

    def __len__(self) -> int:
        return len(self.images)

    def head(self, n: int | None) -> "ImageSet":
        """The first n images; all of them where n is None."""
        return ImageSet(self.images[:n], None if self.labels is None else self.labels[:n])


@dataclass(frozen=True, slots=True)
class Split:
    """A data set: what is learned from, what is asked about, and the classes' names."""

    train: ImageSet
    test: ImageSet
    classes: tuple[str, ...]


def _shapes(options: DataOptions) -> Split:
    """A procedural world of ten forms, drawn by the package itself: no download, never used up."""
    numbers = {"train": options.train_images or 50_000, "test": options.test_images or 10_000}
    train, test = (
        ImageSet(*map(from_numpy, shapes.finite(n, part=part, seed=options.world, size=options.image_size)))  # type: ignore[arg-type]
        for part, n in numbers.items()
    )
    return Split(train, test, shapes.CLASSES)


DATA: Mapping[str, Callable[[DataOptions], Split]] = {
    "shapes": _shapes,
}


def load(name: str, options: DataOptions) -> Split:
    """The data set called `name`, of the sizes that `options` asks for."""
    return look_up("data set", name, DATA)(options)
