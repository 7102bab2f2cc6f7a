"""Annotated images as a detector takes them: resized, perhaps flipped, normalized."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from phinets.config.detection import ImageOptions
from phinets.config.errors import UserError
from phinets.config.views import IMAGENET_MEAN, IMAGENET_STD
from phinets.data.decode import CROP_OVERSAMPLING, UnusableError, open_picture, printable, true_box
from phinets.detection.voc import AnnotatedImage
from phinets.views import random_stream


class Sample(NamedTuple):
    """An image at the detector's size, with its boxes."""

    pixels: Tensor
    """(3, h, w), normalized."""
    boxes: Tensor
    """(n, 4), in its pixels."""
    labels: Tensor
    """(n,), classes from 0."""


def resized_size(width: int, height: int, side: int, max_side: int) -> tuple[int, int]:
    """Width and height with a shorter side of `side`, or less where the longer one would exceed `max_side`."""
    scale = min(side / min(width, height), max_side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def require_readable(images: Sequence[AnnotatedImage]) -> None:
    """Decode every image once, as small as its format allows, to name damaged ones before training."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as threads:
        reasons = list(threads.map(_damage, (image.path for image in images)))
    damaged = [(image.path, reason) for image, reason in zip(images, reasons, strict=True) if reason is not None]
    if damaged:
        path, reason = damaged[0]
        raise UserError(
            f"{len(damaged)} of the {len(images)} images can't be used: the first is '{printable(path)}' ({reason}). "
            "Replace them, or remove them from the lists."
        )


def _damage(path: Path) -> str | None:
    try:
        open_picture(path, 1)
    except UnusableError as error:
        return str(error)
    return None


def load_sample(image: AnnotatedImage, options: ImageOptions, side: int, *, flip: bool = False) -> Sample:
    """An image with its boxes, its shorter side resized to `side`."""
    width, height = resized_size(image.width, image.height, side, options.max_side)
    try:
        picture = open_picture(image.path, CROP_OVERSAMPLING * min(width, height))
    except UnusableError as error:
        raise UserError(
            f"the image '{printable(image.path)}' can't be used: {error}. Replace it, or remove it from the lists."
        ) from error
    boxes = torch.from_numpy(image.truth.boxes * np.tile([width / image.width, height / image.height], 2)).float()
    if flip:
        boxes = torch.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], dim=1)
    pixels = resize_and_normalize(picture, (width, height), options, flip=flip)
    return Sample(pixels, boxes, torch.from_numpy(image.truth.labels))


def resize_and_normalize(
    picture: Image.Image, size: tuple[int, int], options: ImageOptions, *, flip: bool = False
) -> Tensor:
    """An opened image at (width, height), perhaps flipped: (3, height, width)."""
    picture = picture.resize(size, Image.Resampling.BILINEAR, box=true_box(picture))
    picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else picture
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float().div_(255)
    mean, std = options.pixel_mean or IMAGENET_MEAN, options.pixel_std or IMAGENET_STD
    return pixels.sub_(torch.tensor(mean).view(3, 1, 1)).div_(torch.tensor(std).view(3, 1, 1)).contiguous()


@dataclass(frozen=True, kw_only=True)
class DetectionLoader:
    """The batch of every step as a pure function of (seed, step), so that a resumed run sees the same batches.

    Each epoch has its own order, and a batch may reach from one epoch into the next.
    """

    images: tuple[AnnotatedImage, ...]
    options: ImageOptions
    batch: int
    seed: int

    def batch_of(self, step: int) -> list[Sample]:
        """The samples of a step."""
        stream = random_stream(self.seed, "sight", step)
        choices = torch.randint(len(self.options.train_sides), (self.batch,), generator=stream).tolist()
        flips = (torch.rand(self.batch, generator=stream) < self.options.flip).tolist()
        return [
            load_sample(self.images[row], self.options, self.options.train_sides[choice], flip=flip)
            for row, choice, flip in zip(self.rows(step), choices, flips, strict=True)
        ]

    def rows(self, step: int) -> list[int]:
        """The indices of a step's images."""
        return list(self._rows(step * self.batch, self.batch))

    def _rows(self, first: int, count: int) -> Iterator[int]:
        n = len(self.images)
        for epoch in range(first // n, (first + count - 1) // n + 1):
            order = torch.randperm(n, generator=random_stream(self.seed, "order", epoch)).tolist()
            yield from order[max(0, first - epoch * n) : first + count - epoch * n]
