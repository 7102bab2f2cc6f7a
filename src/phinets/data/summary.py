"""Statistics of an image set, from every image."""

from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from phinets.data.decode import picture_size
from phinets.data.files import Files, center
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
    image_size: int
    """Side of the squares to which all images are resized before mean and std are measured."""
    mean: tuple[float, ...]
    """Of each channel over all usable images, in units of 0 to 1."""
    std: tuple[float, ...]
    bad: tuple[BadImage, ...]


def summarize(image_set: ImageSet, classes: tuple[str, ...], image_size: int) -> DataSummary:
    """Read every image, and measure it at the size of training; bad ones count in `images` and `bad` only."""
    bad: dict[BadImage, None] = {}
    sizes: set[Size] = set()
    n, sums, squares = 0, torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for rows in torch.arange(len(image_set)).split(BATCH):
        batch = image_set.images.fetch(rows)
        own = batch.rows == rows  # not the images that replace bad ones
        pixels = batch.images[own]
        bad |= dict.fromkeys(batch.bad)
        sizes |= _sizes(image_set, rows[own], pixels)
        if len(pixels) and pixels.shape[2:] != (image_size, image_size):
            channels_last = pixels.permute(0, 2, 3, 1).numpy()
            pixels = torch.from_numpy(np.stack([center(Image.fromarray(one), image_size) for one in channels_last]))
        values = pixels.double().div_(255)
        n += values.numel() // 3
        sums += values.sum((0, 2, 3))
        squares += values.square().sum((0, 2, 3))
    by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size[0]))
    mean = sums / n
    std = (squares / n - mean.square()).clamp(min=0).sqrt()
    labels = torch.empty(0, dtype=torch.int64) if image_set.labels is None else image_set.labels
    tally = labels[labels >= 0].bincount(minlength=len(classes)).tolist()
    counts = {} if image_set.labels is None else dict(zip(classes, tally, strict=True))
    return DataSummary(
        images=len(image_set),
        labeled=sum(counts.values()),
        classes=counts,
        smallest=by_area[0],
        largest=by_area[-1],
        image_size=image_size,
        mean=tuple(mean.tolist()),
        std=tuple(std.tolist()),
        bad=tuple(bad),
    )


def _sizes(image_set: ImageSet, rows: Tensor, pixels: Tensor) -> set[Size]:
    """The sizes of the images; of files before they are resized."""
    if isinstance(image_set.images, Files):
        return {picture_size(image_set.images.paths[row]) for row in rows.tolist()}
    return {(pixels.shape[3], pixels.shape[2])} if len(pixels) else set()
