"""Indexed image sets in memory, in files or on disk; bad images are reported and replaced by the next good one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

from phinets.config.errors import UserError, unknown

Order = Tensor | range
"""Image numbers in the order of an epoch; a range where they come in sequence."""


class BadImage(NamedTuple):
    """An image that can't be used, and the reason."""

    where: str
    why: str


class ImageBatch(NamedTuple):
    """A batch of images."""

    images: Tensor
    """uint8 (n, 3, height, width)."""
    rows: Tensor
    """Their numbers: those requested, or that of the next good image in place of a bad one."""
    bad: tuple[BadImage, ...] = ()
    """The images that could not be used."""


class Images(Protocol):
    """Images numbered from 0 to n − 1."""

    def __len__(self) -> int: ...

    def fetch(self, rows: Tensor) -> ImageBatch:
        """The images of these rows; a pure function of the data, so every process and every resumed run agree."""

    def head(self, n: int | None) -> "Images":
        """The first n; all where n is None."""

    def subset(self, rows: Tensor) -> "Images":
        """These rows, renumbered from 0."""

    def order(self, generator: torch.Generator) -> Order:
        """The order of one epoch: shuffled by the generator, or sequential in a stream; efficient to read."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """Images in memory."""

    pixels: Tensor
    """uint8 (n, 3, height, width)."""
    positions: Tensor | None = None
    """Position of each image in its file, (n,); None where they are in the file's order."""
    sequential: bool = False
    """Whether an epoch follows the file's order instead of a random one."""

    def __len__(self) -> int:
        return len(self.pixels)

    def fetch(self, rows: Tensor) -> ImageBatch:
        return ImageBatch(self.pixels[rows], rows)

    def head(self, n: int | None) -> Self:
        return self._select(slice(n))

    def subset(self, rows: Tensor) -> Self:
        return self._select(rows)

    def order(self, generator: torch.Generator) -> Tensor:
        if self.sequential:
            return torch.arange(len(self)) if self.positions is None else self.positions.argsort()
        return torch.randperm(len(self), generator=generator)

    def _select(self, rows: slice | Tensor) -> Self:
        positions = None if self.positions is None else self.positions[rows]
        return replace(self, pixels=self.pixels[rows], positions=positions)


@dataclass(frozen=True, slots=True)
class RowImages:
    """A selection from a larger, numbered collection: the base of images on disk and of generated images."""

    rows: range | Tensor
    """Their numbers in the collection."""

    def __len__(self) -> int:
        return len(self.rows)

    def head(self, n: int | None) -> Self:
        return replace(self, rows=self.rows[:n])

    def subset(self, rows: Tensor) -> Self:
        return replace(self, rows=self.numbers(rows))

    def numbers(self, rows: Tensor) -> Tensor:
        """The numbers of these rows in the collection."""
        return rows + self.rows.start if isinstance(self.rows, range) else self.rows[rows]


def batches(images: Images, size: int) -> Iterator[ImageBatch]:
    """All images in order, `size` at a time."""
    for rows in torch.arange(len(images)).split(size):
        yield images.fetch(rows)


@dataclass(frozen=True, slots=True)
class ImageSet:
    """Images and their labels."""

    images: Images
    labels: Tensor | None
    """int64 (n,), −1 for an unlabeled image; None without any labels."""
    total: int | None = None
    """The number of images of which these are the first ones."""

    def __len__(self) -> int:
        return len(self.images)

    def head(self, n: int | None) -> "ImageSet":
        """The first n images; all where n is None."""
        labels = None if self.labels is None else self.labels[:n]
        return ImageSet(self.images.head(n), labels, self.total or len(self))

    @property
    def labeled(self) -> "ImageSet":
        """The labeled images; the same set where all are labeled or none is."""
        if self.labels is None or bool((self.labels >= 0).all()):
            return self
        return self.subset((self.labels >= 0).nonzero().flatten())

    def share(self, share: float, generator: torch.Generator) -> "ImageSet":
        """A random share of the images of every class, at least one of each."""
        if share == 1 or self.labels is None:
            return self
        sample = []
        for label in self.labels.unique():
            rows = (self.labels == label).nonzero().flatten()
            sample.append(rows[torch.randperm(len(rows), generator=generator)[: max(1, round(share * len(rows)))]])
        return self.subset(torch.cat(sample).sort().values)

    def subset(self, rows: Tensor) -> "ImageSet":
        """The images of these rows."""
        return ImageSet(self.images.subset(rows), None if self.labels is None else self.labels[rows])


@dataclass(frozen=True, slots=True)
class DataSplits:
    """A data set: training images, test images and class names."""

    train: ImageSet
    test: ImageSet
    classes: tuple[str, ...]
    bank: ImageSet | None = None
    """The labeled images for kNN and the linear probe, where they are not the training images."""

    @property
    def eval_train(self) -> ImageSet:
        """The training images of kNN and the linear probe: the bank, else `train`."""
        return self.train if self.bank is None else self.bank

    @property
    def splits(self) -> dict[str, ImageSet]:
        """The splits by name."""
        bank = {} if self.bank is None else {"bank": self.bank}
        return {"train": self.train, "test": self.test, **bank}

    def map(self, change: Callable[[ImageSet], ImageSet]) -> "DataSplits":
        """The same change on every split."""
        bank = None if self.bank is None else change(self.bank)
        return replace(self, train=change(self.train), test=change(self.test), bank=bank)


def holdout_rows(n: int) -> tuple[Tensor, Tensor]:
    """Rows for training and test where the data have no split: a fixed shuffle, nine to one."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return order[torch.arange(n) % 10 != 0], order[::10]


def stratified_rows(n: int, labels: Tensor | None) -> tuple[Tensor, Tensor]:
    """The same with a tenth of each class as test images, at least one of a class of two; unlabeled images train."""
    if labels is None:
        return holdout_rows(n)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    classes, numbers, counts = labels[order].unique(return_inverse=True, return_counts=True)
    by_class = numbers.argsort(stable=True)
    rank = torch.empty_like(order)
    rank[by_class] = torch.arange(n) - (counts.cumsum(0) - counts)[numbers[by_class]]
    quota = (counts / 10).round().clamp_min(1) * ((counts > 1) & (classes >= 0))
    test = rank < quota[numbers]
    return (order[~test], order[test]) if test.any() else holdout_rows(n)


class BadImages:
    """Collects bad images, each once, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reasons: dict[str, str] = {}
        self._fresh: list[BadImage] = []

    def add(self, bad: Iterable[BadImage]) -> None:
        """Record new ones."""
        for one in bad:
            if one.where not in self.reasons:
                self.reasons[one.where] = one.why
                self._fresh.append(one)

    def drain(self) -> list[BadImage]:
        """Those recorded since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def require_few(self) -> None:
        """Raise UserError where there are more than the limit."""
        if len(self.reasons) <= self.limit:
            return
        first = "; ".join(f"'{where}': {why}" for where, why in list(self.reasons.items())[:5])
        raise UserError(
            f"{len(self.reasons)} images can't be used, and --max-bad-images is {self.limit}: {first}"
            f"{'; …' if len(self.reasons) > 5 else ''}. Repair them, or raise --max-bad-images."
        )


def select_classes(split: DataSplits, wanted: tuple[str, ...]) -> DataSplits:
    """The images of these classes, by name or number; their labels become 0, 1, … in this order."""
    if any(image_set.labels is None for image_set in split.splits.values()):
        raise UserError("--classes chooses by label, but these images have none. Leave it out.")
    numbers = [class_number(name, split.classes) for name in wanted]
    if len(set(numbers)) < len(numbers):
        raise UserError(f"--classes {' '.join(wanted)} names a class twice. Name each once.")
    new = torch.full((len(split.classes) + 1,), -1)  # one more, so that −1 stays −1
    new[torch.tensor(numbers)] = torch.arange(len(numbers))

    def relabel(image_set: ImageSet) -> ImageSet:
        labels = new[image_set.labels]
        rows = torch.nonzero(labels >= 0).flatten()
        return ImageSet(image_set.images.subset(rows), labels[rows])

    selection = split.map(relabel)
    for name, image_set in selection.splits.items():
        if not len(image_set):
            raise UserError(f"the {name} split holds no image of --classes {' '.join(wanted)}. Choose other classes.")
    return replace(selection, classes=tuple(split.classes[i] for i in numbers))


def class_number(name: str, classes: tuple[str, ...]) -> int:
    """The number of a class, by name or number."""
    if name in classes:
        return classes.index(name)
    if name.isdecimal() and int(name) < len(classes):
        return int(name)
    raise UserError(f"{unknown('class', name, list(classes))} Or use a number from 0 to {len(classes) - 1}.")
