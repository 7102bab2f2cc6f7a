"""The images of a data set in one fixed order, with their names, splits and labels, to be embedded."""

import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import NamedTuple

import torch
from torch import Tensor

from phinets.config.errors import look_up
from phinets.data import DataSplits, Files, ImageBatch, ImageSet
from phinets.data.decode import printable
from phinets.data.fingerprint import set_fingerprint


class BatchRange(NamedTuple):
    """Some images of one set: the rows from `first` to `stop` − 1."""

    image_set: int
    first: int
    stop: int


@dataclass(frozen=True)
class Collection:
    """Sets of images, one after the other, with consecutive row numbers."""

    image_sets: Mapping[str, ImageSet]
    classes: tuple[str, ...]
    file_splits: tuple[str, ...] = ()
    """The split of every row, where files of several splits are sorted by path; else the names of the sets."""

    def __len__(self) -> int:
        return self._starts[-1]

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate(map(len, self.image_sets.values()), initial=0))

    @cached_property
    def _sets(self) -> list[tuple[str, ImageSet]]:
        return list(self.image_sets.items())

    def batches(self, size: int) -> list[BatchRange]:
        """All images in order, `size` at a time; a batch ends where its set ends."""
        sizes = enumerate(map(len, self.image_sets.values()))
        return [BatchRange(i, first, min(first + size, n)) for i, n in sizes for first in range(0, n, size)]

    def fetch(self, batch: BatchRange) -> ImageBatch:
        """The usable images of a batch, and their row numbers."""
        images, rows = self._sets[batch.image_set][1].images, torch.arange(batch.first, batch.stop)
        fetched = images.fetch_usable(rows) if isinstance(images, Files) else images.fetch(rows)
        return fetched._replace(rows=fetched.rows + self._starts[batch.image_set])

    def columns(self, rows: Sequence[int]) -> tuple[list[str], list[str], list[str]]:
        """Names, splits and labels of images.

        Names are paths of files, and `train/17` for row 17 of a set in memory. Splits are train, test or bank. Labels
        are class names, "" for an image without one.
        """
        names, splits, labels = [], [], []
        for row, (split, images, place) in zip(rows, map(self._locate, rows), strict=True):
            files, label = images.images, -1 if images.labels is None else int(images.labels[place])
            names.append(printable(files.paths[place]) if isinstance(files, Files) else f"{split}/{place}")
            splits.append(self.file_splits[row] if self.file_splits else split)
            labels.append("" if label < 0 else self.classes[label])
        return names, splits, labels

    def files(self, rows: Sequence[int]) -> list[str | None]:
        """The paths of image files; None for images in memory."""
        located = ((images.images, place) for _, images, place in map(self._locate, rows))
        return [os.fspath(images.paths[place]) if isinstance(images, Files) else None for images, place in located]

    def picture(self, row: int, side: int) -> Tensor:
        """One image for display: uint8 (3, side, side) from a file, unchanged from memory."""
        _, images, place = self._locate(row)
        source = Files(images.images.paths, side) if isinstance(images.images, Files) else images.images
        return source.fetch(torch.tensor([place])).images[0]

    @property
    def fingerprint(self) -> dict[str, str]:
        """A checksum of the images and labels of each set."""
        return {name: set_fingerprint(images) for name, images in self.image_sets.items()}

    def _locate(self, row: int) -> tuple[str, ImageSet, int]:
        i = bisect_right(self._starts, row) - 1
        return *self._sets[i], row - self._starts[i]


def collect(splits: DataSplits, split: str) -> Collection:
    """One split of a data set, or `all`: train and test; files are sorted by path."""
    both = {"train": splits.train, "test": splits.test}
    chosen = both if split == "all" else {split: look_up("split", split, splits.splits)}
    sources = [images.images for images in chosen.values()]
    files = [source for source in sources if isinstance(source, Files)]
    if len(files) < len(sources):
        return Collection(chosen, splits.classes)
    origins = list(chain.from_iterable([name] * len(images) for name, images in chosen.items()))
    paths = [path for source in files for path in source.paths]
    order = sorted(range(len(paths)), key=lambda i: os.fspath(paths[i]))
    unlabeled = (torch.full((len(images),), -1) for images in chosen.values())
    labels = torch.cat([n if s.labels is None else s.labels for s, n in zip(chosen.values(), unlabeled, strict=True)])
    merged = ImageSet(Files([paths[i] for i in order], files[0].side), labels[torch.tensor(order)])
    return Collection({split: merged}, splits.classes, tuple(origins[i] for i in order))
