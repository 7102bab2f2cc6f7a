"""Images by number, wherever they are. What can't be used is said and replaced, never shown as if it were whole."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor

Order = Tensor | range
"""Numbers of images in the order in which they are shown; a range where they come as they are counted, however many."""


class BadImage(NamedTuple):
    """An image that can't be used."""

    where: str
    """Its path."""
    why: str


class Taken(NamedTuple):
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

    def take(self, rows: Tensor) -> Taken:
        """The images of these numbers: a pure function of the data, so every process and every resumed run agree."""

    def head(self, n: int | None) -> "Images":
        """The first n only; all where n is None."""

    def pick(self, rows: Tensor) -> "Images":
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

    def take(self, rows: Tensor) -> Taken:
        """The images of these numbers."""
        return Taken(self.pixels[rows], rows)

    def head(self, n: int | None) -> Self:
        """The first n only."""
        return replace(self, pixels=self.pixels[:n], places=None if self.places is None else self.places[:n])

    def pick(self, rows: Tensor) -> Self:
        """Those of these numbers only."""
        return replace(self, pixels=self.pixels[rows], places=None if self.places is None else self.places[rows])

    def order(self, generator: torch.Generator) -> Tensor:
        """Any order is as quick as any other: every permutation is equally likely."""
        return torch.randperm(len(self), generator=generator)


def batches(images: Images, size: int) -> Iterator[Taken]:
    """All images in order, `size` at a time."""
    for rows in torch.arange(len(images)).split(size):
        yield images.take(rows)
