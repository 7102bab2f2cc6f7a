"""From a batch of images to what the learner sees (`make_views`) and what an evaluator sees (`prepare`)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.views import Augmentation, ViewPlan, Window
from phinets.views.augment import apply, central
from phinets.views.parameters import CropParams, ViewParams, draw, draw_before_decode


class Views(NamedTuple):
    """Two views of a batch and, where the learner wants one, its anchor: x₁, x₂, x₀, each (n, 3, size, size)."""

    first: Tensor
    second: Tensor
    anchor: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "Views":
        """The same change on every view that is there."""
        return Views(change(self.first), change(self.second), None if self.anchor is None else change(self.anchor))

    def to(self, device: torch.device | str) -> "Views":
        """The views on another device."""
        return self.map(lambda view: view.to(device, non_blocking=True))


class BatchSlice(NamedTuple):
    """Which rows of a larger batch some images are: those from `first` on, `of` so many."""

    first: int
    of: int


def make_views(
    images: Tensor,
    plan: ViewPlan,
    generator: torch.Generator,
    *,
    anchor: Anchor | None = "original",
    size: int | None = None,
    share: BatchSlice | None = None,
) -> Views:
    """Two views and the anchor of a uint8 batch, normalized float32 on the batch's own device.

    Every parameter is drawn on the CPU, first for x₁, then x₂, then x₀, so neither the device nor the wish for an
    anchor changes the other views. `size` is the output's side, by default the images' own (their short side).

    anchor: "original" as the plan prepares it, "augmented" as a third draw of the first view, None for no anchor.
    share: draws for the larger batch and takes the rows of these images, so that they look as they do in the whole.
    """
    _require(images, size)
    _require_cpu(generator)
    if anchor not in ("original", "augmented", None):
        raise UserError(f"anchor is '{anchor}', but it is 'original', 'augmented' or None. Choose one of them.")
    side, statistics = size or min(images.shape[2:]), (plan.mean, plan.std)
    start, of = share or BatchSlice(0, len(images))

    def view(augmentation: Augmentation | None) -> Tensor:
        if augmentation is None:
            return central(images, side, side, statistics)
        drawn = draw(augmentation, of, images.shape[2], images.shape[3], generator)
        return apply(images, augmentation, drawn.select(slice(start, start + len(images))), side, statistics)

    first = view(plan.first)
    second = first if plan.second == "first" else view(plan.second)
    if anchor is None:
        return Views(first, second)
    if anchor == "original":
        short_side = side * 8 // 7 if plan.anchor == "resize-crop" else side
        return Views(first, second, central(images, short_side, side, statistics))
    return Views(first, second, view(plan.first))


def prepare(images: Tensor, plan: ViewPlan, size: int | None = None) -> Tensor:
    """What an evaluator feeds the encoder: the images as normalized floats, resized only if they have another size.

    Of an image that is not square, the center.
    """
    _require(images, size)
    side = size or min(images.shape[2:])
    return central(images, side, side, (plan.mean, plan.std))


def _require(images: Tensor, size: int | None) -> None:
    if images.dtype != torch.uint8:
        raise UserError(
            f"the images are {images.dtype}, but views are made from torch.uint8 (0–255). "
            "Pass the raw images; normalizing is part of the plan."
        )
    if images.ndim != 4 or images.shape[1] != 3 or 0 in images.shape:
        raise UserError(
            f"the images have shape {tuple(images.shape)}, but views need (n, 3, height, width) with n ≥ 1. "
            "Permute channels-last images, repeat a gray channel three times, and skip empty batches."
        )
    if size is not None and size < 1:
        raise UserError(f"size is {size}, but a view has at least one pixel. Give the side of the output, e.g. 32.")


def _require_cpu(generator: torch.Generator) -> None:
    if generator.device.type != "cpu":
        raise UserError(
            f"the generator lives on {generator.device}, but parameters are drawn on the CPU, whatever the images' "
            "device, so that every device draws the same. Use random_stream(seed, 'views', step)."
        )


class Frame(NamedTuple):
    """One view of a batch: a random crop and what is done to it, or the center."""

    augmentation: Augmentation | None
    crops: CropParams | None
    drawn: ViewParams | None
    zoom: float = 1.0
    """How much of the short side the center has."""


class CropPlan:
    """What will be seen of each picture of a batch; all random numbers are drawn at once, as for images of one size.

    `windows` says where to cut, once a picture's size is known; `views` makes the views of what was cut.
    """

    def __init__(
        self, plan: ViewPlan, generator: torch.Generator, *, anchor: Anchor | None, size: int, share: BatchSlice
    ):
        self.plan, self.size, self.share = plan, size, share
        self.frames = [self._frame(plan.first, generator)]
        if plan.second != "first":
            self.frames.append(self._frame(plan.second, generator))
        if anchor == "original":
            zoom = size / (size * 8 // 7) if plan.anchor == "resize-crop" else 1.0
            self.frames.append(Frame(None, None, None, zoom))
        elif anchor == "augmented":
            self.frames.append(self._frame(plan.first, generator))

    def _frame(self, augmentation: Augmentation | None, generator: torch.Generator) -> Frame:
        if augmentation is None:
            return Frame(None, None, None)
        return Frame(augmentation, *draw_before_decode(augmentation, self.share.of, self.size, generator))

    def windows(self, place: int, width: int, height: int) -> list[Window]:
        """Where picture number `place` of these is cut, one window a view."""
        row = self.share.first + place
        return [_window(frame, row, width, height) for frame in self.frames]

    def views(self, seen: Tensor) -> Views:
        """The views: uint8 (n, views, 3, size, size) → normalized floats, on the device of what was seen."""
        statistics = (self.plan.mean, self.plan.std)
        rows = slice(self.share.first, self.share.first + len(seen))
        made = []
        for images, frame in zip(seen.unbind(1), self.frames, strict=True):
            if frame.augmentation is None or frame.drawn is None:
                made.append(central(images.contiguous(), self.size, self.size, statistics))
            else:
                drawn = frame.drawn.select(rows)
                made.append(apply(images.contiguous(), frame.augmentation, drawn, self.size, statistics))
        return Views(made[0], *made) if self.plan.second == "first" else Views(*made)


def _window(frame: Frame, row: int, width: int, height: int) -> Window:
    if frame.crops is None or frame.augmentation is None:
        side = max(1, round(min(width, height) * frame.zoom))
        left, top = (width - side) // 2, (height - side) // 2
        return Window(left, top, left + side, top + side, "bicubic")
    top, left, tall, wide = frame.crops.select(slice(row, row + 1)).boxes(height, width)[0].tolist()
    return Window(left, top, left + wide, top + tall, frame.augmentation.interpolation)
