"""Data that arrive: what is learned from is shown in its own order, pass after pass, and not shuffled."""

import os
import re
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from phinets.data.blocks import BlockImages
from phinets.data.files import Files
from phinets.data.image_sets import DataSplits, Images, ImageSet, InMemory


class SequentialInMemory(InMemory):
    """Images that are all there, and are shown as their file has them."""

    __slots__ = ()

    def order(self, generator: torch.Generator) -> Tensor:
        """0, 1, 2, …, or where they were shuffled to be parted, by their places before."""
        return torch.arange(len(self)) if self.places is None else self.places.argsort()


class SequentialBlocks(BlockImages):
    """Images on the disk that are shown as they lie there."""

    __slots__ = ()

    def order(self, generator: torch.Generator) -> Tensor:
        """0, 1, 2, …: blocks are read one after the other, which is what disks are best at."""
        return torch.arange(len(self))


class SequentialFiles(Files):
    """Pictures in files that are shown by their paths: the numbered frames of a film as they follow each other."""

    __slots__ = ()

    def order(self, generator: torch.Generator) -> Tensor:
        """By path, numbers in the names of folders and files as numbers."""
        return torch.tensor(sorted(range(len(self)), key=lambda row: _natural(self.paths[row])), dtype=torch.int64)


def as_stream(split: DataSplits) -> DataSplits:
    """The same data, of which those that are learned from arrive in their own order."""
    return replace(split, train=ImageSet(_in_order(split.train.images), split.train.labels))


def first(split: ImageSet, n: int | None) -> ImageSet:
    """The first n that arrive; of other data those that are counted first.

    They keep the order in which they are counted: of data that were shuffled to be parted, the first few of these are
    still of every class among them, which is what small banks are made of.
    """
    if n is None or not isinstance(split.images, SequentialInMemory | SequentialFiles):
        return split.head(n)
    return split.subset(split.images.order(torch.Generator())[:n].sort().values)


def _natural(path: str | Path) -> tuple[list[list[str | int]], str]:
    """A key by which `frame` comes before `frame9` and that before `frame10`, in every folder on the way.

    The path itself comes last, for 1 and 01.
    """
    parts = [re.split("([0-9]+)", split) for split in os.path.splitext(path)[0].split(os.sep)]
    return [[int(word) if i % 2 else word for i, word in enumerate(words)] for words in parts], os.fspath(path)


def _in_order(images: Images) -> Images:
    match images:
        case InMemory(pixels, places):
            return SequentialInMemory(pixels, places)
        case BlockImages(store, rows):
            return SequentialBlocks(store, rows)
        case Files(paths, side):
            return SequentialFiles(paths, side)
    return images
