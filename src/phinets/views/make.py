"""From a batch of images to what the learner sees (`make_views`) and what an evaluator sees (`prepare`)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.views import Augmentation, ViewPlan
from phinets.views.augment import apply, central
from phinets.views.parameters import draw


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


class Share(NamedTuple):
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
    share: Share | None = None,
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
    start, of = share or Share(0, len(images))

    def view(augmentation: Augmentation | None) -> Tensor:
        if augmentation is None:
            return central(images, side, side, statistics)
        drawn = draw(augmentation, of, images.shape[2], images.shape[3], generator)
        return apply(images, augmentation, drawn.take(slice(start, start + len(images))), side, statistics)

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
