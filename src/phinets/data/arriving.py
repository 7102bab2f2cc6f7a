"""Data that arrive: what is learned from is shown in its own order, pass after pass, and not shuffled."""

from dataclasses import replace

import torch
from torch import Tensor

from phinets.data.blocks import Stored
from phinets.data.files import Files
from phinets.data.images import Images, InMemory
from phinets.data.split import ImageSet, Split


class ArrivingInMemory(InMemory):
    """Images that are all there, and are shown as their file has them."""

    __slots__ = ()

    def order(self, generator: torch.Generator) -> Tensor:
        """0, 1, 2, …, or where they were shuffled to be parted, by their places before."""
        return torch.arange(len(self)) if self.places is None else self.places.argsort()


class ArrivingStored(Stored):
    """Images on the disk that are shown as they lie there."""

    __slots__ = ()

    def order(self, generator: torch.Generator) -> Tensor:
        """0, 1, 2, …: blocks are read one after the other, which is what disks are best at."""
        return torch.arange(len(self))


class ArrivingFiles(Files):
    """Pictures in files that are shown by their paths: the numbered frames of a film as they follow each other."""

    __slots__ = ()

    def order(self, generator: torch.Generator) -> Tensor:
        """By path."""
        return torch.tensor(sorted(range(len(self)), key=lambda row: str(self.paths[row])))


def arriving(split: Split) -> Split:
    """The same data, of which those that are learned from arrive in their own order."""
    return replace(split, train=ImageSet(_in_order(split.train.images), split.train.labels))


def _in_order(images: Images) -> Images:
    match images:
        case InMemory(pixels, places):
            return ArrivingInMemory(pixels, places)
        case Stored(shelf, rows):
            return ArrivingStored(shelf, rows)
        case Files(paths, side):
            return ArrivingFiles(paths, side)
    return images
