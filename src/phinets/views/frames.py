"""Views of pictures that differ in size: each is cut out of its picture when that is decoded."""

from typing import NamedTuple

import torch
from torch import Tensor

from phinets.config.methods import Anchor
from phinets.config.views import Augmentation, ViewPlan, Window
from phinets.views.augment import apply, central
from phinets.views.make import Share, Views
from phinets.views.parameters import Crops, Drawn, draw_unseen


class Frame(NamedTuple):
    """One view of a batch: a random crop and what is done to it, or the center."""

    augmentation: Augmentation | None
    crops: Crops | None
    drawn: Drawn | None
    zoom: float = 1.0
    """How much of the short side the center has."""


class Frames:
    """What will be seen of each picture of a batch; all random numbers are drawn at once, as for images of one size.

    `windows` says where to cut, once a picture's size is known; `views` makes the views of what was cut.
    """

    def __init__(self, plan: ViewPlan, generator: torch.Generator, *, anchor: Anchor | None, size: int, share: Share):
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
        return Frame(augmentation, *draw_unseen(augmentation, self.share.of, self.size, generator))

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
                drawn = frame.drawn.take(rows)
                made.append(apply(images.contiguous(), frame.augmentation, drawn, self.size, statistics))
        return Views(made[0], *made) if self.plan.second == "first" else Views(*made)


def _window(frame: Frame, row: int, width: int, height: int) -> Window:
    if frame.crops is None or frame.augmentation is None:
        side = max(1, round(min(width, height) * frame.zoom))
        left, top = (width - side) // 2, (height - side) // 2
        return Window(left, top, left + side, top + side, "bicubic")
    top, left, tall, wide = frame.crops.take(slice(row, row + 1)).boxes(height, width)[0].tolist()
    return Window(left, top, left + wide, top + tall, frame.augmentation.interpolation)
