"""What a data set is: images and labels to learn from, and others to be asked about."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from phinets.data.images import Images


@dataclass(frozen=True, slots=True)
class ImageSet:
    """Images, and what is known of them."""

    images: Images
    labels: Tensor | None
    """int64 (n,), −1 for an image of which nobody said; None where nobody said anything."""

    def __len__(self) -> int:
        return len(self.images)

    def head(self, n: int | None) -> "ImageSet":
        """The first n images; all of them where n is None."""
        return ImageSet(self.images.head(n), None if self.labels is None else self.labels[:n])

    @property
    def labelled(self) -> "ImageSet":
        """The images whose label is known; where all are or none is, the same set."""
        if self.labels is None or bool((self.labels >= 0).all()):
            return self
        return self.pick((self.labels >= 0).nonzero().flatten())

    def share(self, share: float, generator: torch.Generator) -> "ImageSet":
        """A share of the images of every class, at least one of each, drawn by the generator."""
        if share == 1 or self.labels is None:
            return self
        drawn = []
        for label in self.labels.unique():
            rows = (self.labels == label).nonzero().flatten()
            drawn.append(rows[torch.randperm(len(rows), generator=generator)[: max(1, round(share * len(rows)))]])
        return self.pick(torch.cat(drawn).sort().values)

    def pick(self, rows: Tensor) -> "ImageSet":
        """The images of these numbers."""
        return ImageSet(self.images.pick(rows), None if self.labels is None else self.labels[rows])


@dataclass(frozen=True, slots=True)
class Split:
    """A data set: what is learned from, what is asked about, and the classes' names."""

    train: ImageSet
    test: ImageSet
    classes: tuple[str, ...]
    bank: ImageSet | None = None
    """The labelled images that kNN and the linear probe know, where they are not those that are learned from."""

    @property
    def known(self) -> ImageSet:
        """What kNN and the linear probe know: the bank, or else all that is learned from."""
        return self.train if self.bank is None else self.bank

    @property
    def parts(self) -> dict[str, ImageSet]:
        """The parts that there are, by name."""
        bank = {} if self.bank is None else {"bank": self.bank}
        return {"train": self.train, "test": self.test, **bank}

    def map(self, change: Callable[[ImageSet], ImageSet]) -> "Split":
        """The same change on every part that is there."""
        bank = None if self.bank is None else change(self.bank)
        return replace(self, train=change(self.train), test=change(self.test), bank=bank)


def every_tenth(n: int) -> tuple[Tensor, Tensor]:
    """Numbers to learn from and to ask about, where the data do not say: shuffled, always the same, nine to one."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return order[torch.arange(n) % 10 != 0], order[::10]
