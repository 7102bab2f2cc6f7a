"""The images of a data set in one fixed order, with their names and labels, to be embedded."""

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

import torch
from torch import Tensor

from phinets.config.errors import look_up
from phinets.data import Files, ImageSet, Split, Taken
from phinets.data.fingerprint import set_fingerprint
from phinets.data.pictures import shown


class Batch(NamedTuple):
    """Some images of one set: the rows from `first` up to, not with, `stop`."""

    piece: int
    first: int
    stop: int


@dataclass(frozen=True)
class Collection:
    """Sets of images, one after the other, numbered through."""

    pieces: dict[str, ImageSet]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return self._starts[-1]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self._sets), initial=0))

    @cached_property
    def _names(self) -> list[str]:
        return list(self.pieces)

    @cached_property
    def _sets(self) -> list[ImageSet]:
        return list(self.pieces.values())

    def batches(self, size: int) -> list[Batch]:
        """All images in order, `size` at a time; no batch reaches over the end of a set."""
        sizes = enumerate(map(len, self._sets))
        return [Batch(i, first, min(first + size, n)) for i, n in sizes for first in range(0, n, size)]

    def take(self, batch: Batch) -> Taken:
        """The images of a batch that can be used, and their numbers in the collection."""
        images, rows = self._sets[batch.piece].images, torch.arange(batch.first, batch.stop)
        taken = images.usable(rows) if isinstance(images, Files) else images.take(rows)
        return taken._replace(rows=taken.rows + self._starts[batch.piece])

    def names(self, rows: Sequence[int]) -> list[str]:
        """The paths of images in files; `train/17` for row 17 of a set in memory."""
        return [_name(name, part, row) for name, part, row in map(self._located, rows)]

    def files(self, rows: Sequence[int]) -> list[str | None]:
        """Where images in files lie; None for those in memory."""
        located = ((part.images, row) for _, part, row in map(self._located, rows))
        return [os.fspath(images.paths[row]) if isinstance(images, Files) else None for images, row in located]

    def labels(self, rows: Sequence[int]) -> list[str]:
        """The names of their classes, empty where nobody said."""
        numbers = [-1 if part.labels is None else int(part.labels[row]) for _, part, row in map(self._located, rows)]
        return ["" if number < 0 else self.classes[number] for number in numbers]

    def picture(self, row: int, side: int) -> Tensor:
        """One image to look at: uint8 (3, side, side) from a file, as it is from memory."""
        _, part, place = self._located(row)
        images = Files(part.images.paths, side) if isinstance(part.images, Files) else part.images
        return images.take(torch.tensor([place])).images[0]

    @property
    def fingerprint(self) -> dict[str, str]:
        """Which images and labels these are, in few words."""
        return {name: set_fingerprint(part) for name, part in self.pieces.items()}

    def _located(self, row: int) -> tuple[str, ImageSet, int]:
        piece = bisect_right(self._starts, row) - 1
        return self._names[piece], self._sets[piece], row - self._starts[piece]


def collection(split: Split, part: str) -> Collection:
    """One part of a data set, or all that is learned from and asked about; files in the order of their paths."""
    chosen = {"train": split.train, "test": split.test} if part == "all" else {part: look_up("part", part, split.parts)}
    if all(isinstance(one.images, Files) for one in chosen.values()):
        chosen = {part: _by_path(list(chosen.values()))}
    return Collection(chosen, split.classes)


def _by_path(sets: list[ImageSet]) -> ImageSet:
    files = [one.images for one in sets if isinstance(one.images, Files)]
    paths = list(chain.from_iterable(one.paths for one in files))
    order = sorted(range(len(paths)), key=lambda i: os.fspath(paths[i]))
    labels = torch.cat([torch.full((len(one),), -1) if one.labels is None else one.labels for one in sets])
    return ImageSet(Files([paths[i] for i in order], files[0].side), labels[torch.tensor(order)])


def _name(name: str, part: ImageSet, row: int) -> str:
    return shown(part.images.paths[row]) if isinstance(part.images, Files) else f"{name}/{row}"
