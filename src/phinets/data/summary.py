"""What a part of a data set holds, found out by looking at every image."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from phinets.data.files import Files
from phinets.data.image_sets import BadImage, ImageSet

BATCH = 256
Size = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSummary:
    """What was seen."""

    images: int
    """How many there are, the bad ones included."""
    labeled: int
    """How many of them have a label."""
    classes: dict[str, int]
    """How many of each class."""
    smallest: Size
    """Width and height of the smallest usable image."""
    largest: Size
    """Width and height of the largest one."""
    mean: tuple[float, ...]
    """Of each channel over all usable images, as they are trained on, in units of 0 to 1."""
    std: tuple[float, ...]
    """The same for the standard deviation."""
    bad: tuple[BadImage, ...]
    """What can't be used, and why."""


def summarize(split: ImageSet, classes: tuple[str, ...]) -> DataSummary:
    """Look at every image of a part. Those that can't be used count for nothing but themselves."""
    bad: dict[str, str] = {}
    sizes: set[Size] = set()
    n, sums, squares = 0, torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for rows, pixels, wrong in _usable(split):
        bad.update(wrong)
        sizes |= _sizes(split, rows, pixels)
        values = pixels.double().div_(255)
        n += values.numel() // 3
        sums += values.sum((0, 2, 3))
        squares += values.square().sum((0, 2, 3))
    mean = sums / n
    std = (squares / n - mean.square()).clamp(min=0).sqrt()
    counts = _counts(split.labels, classes)
    return DataSummary(
        images=len(split),
        labeled=sum(counts.values()),
        classes=counts,
        smallest=min(sizes, key=_area),
        largest=max(sizes, key=_area),
        mean=tuple(mean.tolist()),
        std=tuple(std.tolist()),
        bad=tuple(BadImage(*item) for item in bad.items()),
    )


def _usable(split: ImageSet) -> Iterator[tuple[Tensor, Tensor, tuple[BadImage, ...]]]:
    """(numbers, pixels, bad ones) of each batch, without those that stand in for a bad one."""
    for rows in torch.arange(len(split)).split(BATCH):
        taken = split.images.fetch(rows)
        own = taken.rows == rows
        yield rows[own], taken.images[own], taken.bad


def _sizes(split: ImageSet, rows: Tensor, pixels: Tensor) -> set[Size]:
    """Files are asked for the sizes they had before they were brought to one."""
    if isinstance(split.images, Files):
        return {split.images.size(row) for row in rows.tolist()}
    return {(pixels.shape[3], pixels.shape[2])} if len(pixels) else set()


def _area(size: Size) -> tuple[int, int]:
    return size[0] * size[1], size[0]


def _counts(labels: Tensor | None, classes: tuple[str, ...]) -> dict[str, int]:
    if labels is None:
        return {}
    return dict(zip(classes, labels[labels >= 0].bincount(minlength=len(classes)).tolist(), strict=True))
