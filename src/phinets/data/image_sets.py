"""Images by number, wherever they are. What can't be used is said and replaced, never shown as if it were whole."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from phinets.config.errors import UserError, unknown

Order = Tensor | range
"""Numbers of images in the order in which they are shown; a range where they come as they are counted, however many."""


class BadImage(NamedTuple):
    """An image that can't be used."""

    where: str
    """Its path."""
    why: str


class ImageBatch(NamedTuple):
    """Images that were asked for."""

    images: Tensor
    """uint8 (n, 3, height, width)."""
    rows: Tensor
    """Which they are: the numbers asked for, save that the next good image stands in for a bad one."""
    bad: tuple[BadImage, ...] = ()
    """Those that were asked for or tried, and can't be used."""


class Images(Protocol):
    """Images that can be had by their numbers, 0 to n − 1."""

    def __len__(self) -> int: ...

    def fetch(self, rows: Tensor) -> ImageBatch:
        """The images of these numbers: a pure function of the data, so every process and every resumed run agree."""

    def head(self, n: int | None) -> "Images":
        """The first n only; all where n is None."""

    def subset(self, rows: Tensor) -> "Images":
        """Those of these numbers only, counted anew from 0."""

    def order(self, generator: torch.Generator) -> Order:
        """The numbers 0 to n − 1 as one epoch shows them, shuffled where the data are not a stream.

        A pure function of the generator, and quick to read in.
        """


@dataclass(frozen=True, slots=True)
class InMemory:
    """Images that are all there."""

    pixels: Tensor
    """uint8 (n, 3, height, width)."""
    places: Tensor | None = None
    """Where each lay in the file, (n,), whose own order this is; None where they are counted in it."""

    def __len__(self) -> int:
        return len(self.pixels)

    def fetch(self, rows: Tensor) -> ImageBatch:
        """The images of these numbers."""
        return ImageBatch(self.pixels[rows], rows)

    def head(self, n: int | None) -> Self:
        """The first n only."""
        return replace(self, pixels=self.pixels[:n], places=None if self.places is None else self.places[:n])

    def subset(self, rows: Tensor) -> Self:
        """Those of these numbers only."""
        return replace(self, pixels=self.pixels[rows], places=None if self.places is None else self.places[rows])

    def order(self, generator: torch.Generator) -> Tensor:
        """Any order is as quick as any other: every permutation is equally likely."""
        return torch.randperm(len(self), generator=generator)


def batches(images: Images, size: int) -> Iterator[ImageBatch]:
    """All images in order, `size` at a time."""
    for rows in torch.arange(len(images)).split(size):
        yield images.fetch(rows)


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
    def labeled(self) -> "ImageSet":
        """The images whose label is known; where all are or none is, the same set."""
        if self.labels is None or bool((self.labels >= 0).all()):
            return self
        return self.subset((self.labels >= 0).nonzero().flatten())

    def share(self, share: float, generator: torch.Generator) -> "ImageSet":
        """A share of the images of every class, at least one of each, drawn by the generator."""
        if share == 1 or self.labels is None:
            return self
        drawn = []
        for label in self.labels.unique():
            rows = (self.labels == label).nonzero().flatten()
            drawn.append(rows[torch.randperm(len(rows), generator=generator)[: max(1, round(share * len(rows)))]])
        return self.subset(torch.cat(drawn).sort().values)

    def subset(self, rows: Tensor) -> "ImageSet":
        """The images of these numbers."""
        return ImageSet(self.images.subset(rows), None if self.labels is None else self.labels[rows])


@dataclass(frozen=True, slots=True)
class DataSplits:
    """A data set: what is learned from, what is asked about, and the classes' names."""

    train: ImageSet
    test: ImageSet
    classes: tuple[str, ...]
    bank: ImageSet | None = None
    """The labelled images that kNN and the linear probe know, where they are not those that are learned from."""

    @property
    def eval_train(self) -> ImageSet:
        """What kNN and the linear probe know: the bank, or else all that is learned from."""
        return self.train if self.bank is None else self.bank

    @property
    def splits(self) -> dict[str, ImageSet]:
        """The parts that there are, by name."""
        bank = {} if self.bank is None else {"bank": self.bank}
        return {"train": self.train, "test": self.test, **bank}

    def map(self, change: Callable[[ImageSet], ImageSet]) -> "DataSplits":
        """The same change on every part that is there."""
        bank = None if self.bank is None else change(self.bank)
        return replace(self, train=change(self.train), test=change(self.test), bank=bank)


def holdout_rows(n: int) -> tuple[Tensor, Tensor]:
    """Numbers to learn from and to ask about, where the data do not say: shuffled, always the same, nine to one."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return order[torch.arange(n) % 10 != 0], order[::10]


class BadImages:
    """Knows every bad image that was met."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reasons: dict[str, str] = {}
        self._fresh: list[BadImage] = []

    def add(self, bad: Iterable[BadImage]) -> None:
        """Take note of those that are not known yet."""
        for one in bad:
            if one.where not in self.reasons:
                self.reasons[one.where] = one.why
                self._fresh.append(one)

    def drain(self) -> list[BadImage]:
        """Those that were met since the last time this was asked."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def require_few(self) -> None:
        """Refuse to go on where there are more than the limit."""
        if len(self.reasons) <= self.limit:
            return
        first = "; ".join(f"'{where}': {why}" for where, why in list(self.reasons.items())[:5])
        raise UserError(
            f"{len(self.reasons)} images can't be used, and --max-bad-images is {self.limit}: {first}"
            f"{'; …' if len(self.reasons) > 5 else ''}. Mend them, or raise --max-bad-images."
        )


def select_classes(split: DataSplits, wanted: tuple[str, ...]) -> DataSplits:
    """The images of the wanted classes, by name or by number, whose labels then count 0, 1, … in the order of asking.

    Images of which nobody knows the class are left out.
    """
    if any(part.labels is None for part in split.splits.values()):
        raise UserError("--classes chooses by label, but these images have none. Leave it out.")
    numbers = [class_number(name, split.classes) for name in wanted]
    if len(set(numbers)) < len(numbers):
        raise UserError(f"--classes {' '.join(wanted)} names a class twice. Name each once.")
    new = torch.full((len(split.classes) + 1,), -1)  # one more, so that −1 finds −1
    new[torch.tensor(numbers)] = torch.arange(len(numbers))
    chosen = split.map(lambda part: _only(part, new))
    for name, part in chosen.splits.items():
        if not len(part):
            raise UserError(f"the {name} part holds no image of --classes {' '.join(wanted)}. Choose other classes.")
    return DataSplits(chosen.train, chosen.test, tuple(split.classes[i] for i in numbers), chosen.bank)


def _only(part: ImageSet, new: Tensor) -> ImageSet:
    assert part.labels is not None
    labels = new[part.labels]
    rows = torch.nonzero(labels >= 0).flatten()
    return ImageSet(part.images.subset(rows), labels[rows])


def class_number(name: str, classes: tuple[str, ...]) -> int:
    """The number of a class that was called by its name or its number."""
    if name in classes:
        return classes.index(name)
    if name.isdecimal() and int(name) < len(classes):
        return int(name)
    raise UserError(f"{unknown('class', name, list(classes))} A number from 0 to {len(classes) - 1} would do, too.")
