"""The world of shapes as a data set: drawn once and kept, or drawn as it is asked for, without end."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, from_numpy

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.images import InMemory, Taken
from phinets.data.shapes import CLASSES, TEST, draw, finite
from phinets.data.split import ImageSet, Split

ARRIVING = 180_000
"""Pictures of the endless stream, where nobody says how many."""
KNOWN = 10_000
"""How many of the first ones are labelled."""


def shapes(options: DataOptions) -> Split:
    """A procedural world of ten forms, drawn by the package itself: no download, never used up."""
    train = _drawn(_enough(options.train_images, options) or 50_000, "train", options)
    return Split(train, _drawn(_enough(options.test_images, options) or 10_000, "test", options), CLASSES)


def endless(options: DataOptions) -> Split:
    """Shapes that are drawn as they arrive and then forgotten: as many as --train-images says (180,000), none twice.

    They are those of `shapes`, in its order, and go on where it ends. They come without labels; known are the first
    10,000, which are kept, and asked about is what `shapes` asks about.
    """
    if options.classes:
        raise UserError(
            "stream:shapes arrives without labels, so --classes can't choose among them. Leave it out, or use --data "
            "shapes, which draws as many of the chosen classes as --train-images says."
        )
    n = options.train_images or ARRIVING
    if n > TEST:
        raise UserError(f"train_images is {n}, but even the endless stream of shapes ends after {TEST} pictures.")
    arriving = Endless(options.shapes_seed, options.image_size, range(n))
    known, test = _drawn(min(n, KNOWN), "train", options), _drawn(options.test_images or 10_000, "test", options)
    return Split(ImageSet(arriving, None), test, CLASSES, bank=known)


@dataclass(frozen=True, slots=True)
class Endless:
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

    def take(self, rows: Tensor) -> Taken:
        """The pictures of these numbers."""
        numbers = rows + self.rows.start if isinstance(self.rows, range) else self.rows[rows]
        pixels, _ = draw(numbers.numpy(), seed=self.shapes_seed, size=self.size)
        return Taken(from_numpy(pixels), rows)

    def head(self, n: int | None) -> "Endless":
        """The first n only."""
        return replace(self, rows=self.rows[:n])

    def pick(self, rows: Tensor) -> "Endless":
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


def _drawn(n: int, part: Literal["train", "test"], options: DataOptions) -> ImageSet:
    pixels, labels = finite(n, part=part, seed=options.shapes_seed, size=options.image_size)
    return ImageSet(InMemory(from_numpy(pixels)), from_numpy(labels))
