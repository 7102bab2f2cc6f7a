"""Statistics of an image set, from every image."""

from dataclasses import dataclass

import torch
from torch import Tensor

from phinets.data.files import Files
from phinets.data.image_sets import BadImage, ImageSet

BATCH = 256
Size = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSummary:
    """Counts, sizes and statistics of an image set."""

    images: int
    """Number of images, including bad ones."""
    labeled: int
    classes: dict[str, int]
    """Number of images of each class."""
    smallest: Size
    """Width and height of the smallest usable image."""
    largest: Size
    mean: tuple[float, ...]
    """Of each channel over all usable images, as in training, in units of 0 to 1."""
    std: tuple[float, ...]
    bad: tuple[BadImage, ...]


def summarize(image_set: ImageSet, classes: tuple[str, ...]) -> DataSummary:
    """Read every image; bad ones count in `images` and `bad` only."""
    bad: dict[BadImage, None] = {}
    sizes: set[Size] = set()
    n, sums, squares = 0, torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for rows in torch.arange(len(image_set)).split(BATCH):
        batch = image_set.images.fetch(rows)
        own = batch.rows == rows  # not the images that replace bad ones
        pixels = batch.images[own]
        bad |= dict.fromkeys(batch.bad)
        sizes |= _sizes(image_set, rows[own], pixels)
        values = pixels.double().div_(255)
        n += values.numel() // 3
        sums += values.sum((0, 2, 3))
        squares += values.square().sum((0, 2, 3))
    mean = sums / n
    std = (squares / n - mean.square()).clamp(min=0).sqrt()
    counts = _counts(image_set.labels, classes)
    return DataSummary(
        images=len(image_set),
        labeled=sum(counts.values()),
        classes=counts,
        smallest=min(sizes, key=_area),
        largest=max(sizes, key=_area),
        mean=tuple(mean.tolist()),
        std=tuple(std.tolist()),
        bad=tuple(bad),
    )


def _sizes(image_set: ImageSet, rows: Tensor, pixels: Tensor) -> set[Size]:
    """The sizes of the images; of files before they are resized."""
    if isinstance(image_set.images, Files):
        return {image_set.images.size(row) for row in rows.tolist()}
    return {(pixels.shape[3], pixels.shape[2])} if len(pixels) else set()


def _area(size: Size) -> tuple[int, int]:
    return size[0] * size[1], size[0]


def _counts(labels: Tensor | None, classes: tuple[str, ...]) -> dict[str, int]:
    if labels is None:
        return {}
    return dict(zip(classes, labels[labels >= 0].bincount(minlength=len(classes)).tolist(), strict=True))
