"""Annotated pictures as a detector sees them: resized, perhaps mirrored, normalized."""

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

from phinets.config.detection import Pictures
from phinets.config.errors import UserError
from phinets.config.views import IMAGENET_MEAN, IMAGENET_STD
from phinets.data.pictures import UnusableError, open_picture, shown
from phinets.detection.voc import Scene
from phinets.views import random_stream


class Shown(NamedTuple):
    """A picture at the size at which it is seen."""

    pixels: Tensor
    """(3, h, w), normalized."""
    boxes: Tensor
    """(n, 4), in its pixels."""
    labels: Tensor
    """(n,), classes from 0."""


def seen_size(width: int, height: int, side: int, max_side: int) -> tuple[int, int]:
    """Width and height once the shorter side is `side`, or less where the longer one would exceed `max_side`."""
    scale = min(side / min(width, height), max_side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def require_whole(scenes: Sequence[Scene]) -> None:
    """Decode every picture once, as small as its format allows, so that a damaged one is named before anything is
    learned; costs milliseconds each."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as threads:
        reasons = list(threads.map(_damage, (scene.path for scene in scenes)))
    damaged = [(scene.path, reason) for scene, reason in zip(scenes, reasons, strict=True) if reason is not None]
    if damaged:
        path, reason = damaged[0]
        raise UserError(
            f"{len(damaged)} of the {len(scenes)} pictures can't be used: the first is '{shown(path)}' ({reason}). Put "
            "whole ones there, or take them out of the lists."
        )


def _damage(path: Path) -> str | None:
    try:
        open_picture(path, 1)
    except UnusableError as error:
        return str(error)
    return None


def show(scene: Scene, seen: Pictures, side: int, *, mirrored: bool = False) -> Shown:
    """A picture with its boxes, its shorter side brought to `side`."""
    width, height = seen_size(scene.width, scene.height, side, seen.max_side)
    try:
        picture = open_picture(scene.path, min(width, height))
    except UnusableError as error:
        raise UserError(
            f"the picture '{shown(scene.path)}' can't be used: {error}. Put a whole one there, or take it "
            "out of the lists."
        ) from error
    boxes = torch.from_numpy(scene.truth.boxes * np.tile([width / scene.width, height / scene.height], 2)).float()
    if mirrored:
        boxes = torch.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], dim=1)
    pixels = fitted(picture, (width, height), seen, mirrored=mirrored)
    return Shown(pixels, boxes, torch.from_numpy(scene.truth.labels))


def fitted(picture: Image.Image, size: tuple[int, int], seen: Pictures, *, mirrored: bool = False) -> Tensor:
    """A picture brought to (width, height), perhaps mirrored, and normalized: (3, height, width)."""
    picture = picture.resize(size, Image.Resampling.BILINEAR)
    picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else picture
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float().div_(255)
    mean, std = seen.pixel_mean or IMAGENET_MEAN, seen.pixel_std or IMAGENET_STD
    return pixels.sub_(torch.tensor(mean).view(3, 1, 1)).div_(torch.tensor(std).view(3, 1, 1)).contiguous()


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """The batch of every step as a pure function of (seed, step): whoever goes on at a step sees what would have come.

    Each pass over the pictures has an order of its own, and a batch may reach from one pass into the next.
    """

    scenes: tuple[Scene, ...]
    seen: Pictures
    batch: int
    seed: int

    def batch_of(self, step: int) -> list[Shown]:
        """The pictures of a step."""
        stream = random_stream(self.seed, "sight", step)
        choices = torch.randint(len(self.seen.train_sides), (self.batch,), generator=stream).tolist()
        mirrored = (torch.rand(self.batch, generator=stream) < self.seen.flip).tolist()
        return [
            show(self.scenes[row], self.seen, self.seen.train_sides[choice], mirrored=flipped)
            for row, choice, flipped in zip(self.rows(step), choices, mirrored, strict=True)
        ]

    def rows(self, step: int) -> list[int]:
        """Which pictures those are."""
        return list(self._rows(step * self.batch, self.batch))

    def _rows(self, first: int, count: int) -> Iterator[int]:
        n = len(self.scenes)
        for epoch in range(first // n, (first + count - 1) // n + 1):
            order = torch.randperm(n, generator=random_stream(self.seed, "order", epoch)).tolist()
            yield from order[max(0, first - epoch * n) : first + count - epoch * n]
