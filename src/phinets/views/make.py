"""From a batch of images to the learner's views (`make_views`) and the evaluator's input (`prepare`)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from phinets.config.errors import UserError, look_up
from phinets.config.methods import Anchor
from phinets.config.views import PLANS, Augmentation, ViewPlan, Window
from phinets.views.augment import apply, central
from phinets.views.parameters import draw, draw_before_decode


class Views(NamedTuple):
    """Two views of a batch and, where the learner needs it, the anchor: x₁, x₂, x₀, each (n, 3, size, size)."""

    first: Tensor
    second: Tensor
    anchor: Tensor | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "Views":
        """The same change on every view."""
        return Views(change(self.first), change(self.second), None if self.anchor is None else change(self.anchor))

    def to(self, device: torch.device | str) -> "Views":
        """The views on another device."""
        return self.map(lambda view: view.to(device, non_blocking=True))


class BatchSlice(NamedTuple):
    """Rows of a larger batch of `of` images: those from `first` on."""

    first: int
    of: int


class Frame(NamedTuple):
    """How one view is made: a random crop with its augmentation, or the center after a resize of the short side."""

    augmentation: Augmentation | None
    short_side: int


def _frames(plan: ViewPlan, anchor: Anchor | None, size: int) -> list[Frame]:
    """The views in the order of their random draws: x₁, x₂ unless it is x₁ again, x₀."""
    frames = [Frame(plan.first, size)]
    if plan.second != "first":
        frames.append(Frame(plan.second, size))
    if anchor == "original":
        frames.append(Frame(None, size * 8 // 7 if plan.anchor == "resize-crop" else size))
    elif anchor == "augmented":
        frames.append(Frame(plan.first, size))
    return frames


def _to_views(plan: ViewPlan, tensors: list[Tensor]) -> Views:
    return Views(tensors[0], *tensors) if plan.second == "first" else Views(*tensors)


def make_views(
    images: Tensor | NDArray[np.uint8],
    plan: ViewPlan | str,
    generator: torch.Generator | None = None,
    *,
    anchor: Anchor | None = "original",
    size: int | None = None,
    share: BatchSlice | None = None,
) -> Views:
    """Two views and the anchor of a uint8 batch, as normalized float32 on the batch's device.

    All parameters are drawn on the CPU, first for x₁, then x₂, then x₀, so neither the device nor the choice of the
    anchor changes the other views.

    Args:
        images: uint8 (n, 3, height, width), a tensor or an array.
        plan: the augmentations, or their name, e.g. "simsiam-cifar"; `phinets list views` shows all.
        generator: a CPU generator, e.g. `random_stream(seed, "views", step)`; default: torch's global one.
        anchor: "original" as the plan prepares it, "augmented" for a third draw of the first view, None for no anchor.
        size: side of the views; default: the short side of the images.
        share: draw for the larger batch and use the rows of these images, so that they get the same views as in it.

    Returns:
        The views, each (n, 3, size, size).

    Raises:
        UserError: The images are not uint8 (n, 3, height, width), or an argument is not one of the above.
    """
    plan = look_up("view plan", plan, PLANS) if isinstance(plan, str) else plan
    images = _require(images, size)
    generator = generator or torch.default_generator
    if generator.device.type != "cpu":
        raise UserError(
            f"the generator is on {generator.device}, but parameters are drawn on the CPU, so that every device draws "
            "the same. Use random_stream(seed, 'views', step)."
        )
    if anchor not in ("original", "augmented", None):
        raise UserError(f"anchor is '{anchor}', but must be 'original', 'augmented' or None.")
    side, statistics = size or min(images.shape[2:]), (plan.mean, plan.std)
    start, of = share or BatchSlice(0, len(images))

    def view(frame: Frame) -> Tensor:
        if frame.augmentation is None:
            return central(images, frame.short_side, side, statistics)
        params = draw(frame.augmentation, of, images.shape[2], images.shape[3], generator)
        return apply(images, frame.augmentation, params.select(slice(start, start + len(images))), side, statistics)

    return _to_views(plan, [view(frame) for frame in _frames(plan, anchor, side)])


def prepare(images: Tensor, plan: ViewPlan, size: int | None = None) -> Tensor:
    """The evaluator's input: normalized floats, resized only if the size differs; of non-square images, the center.

    Pillow resizes them, as it resizes pictures in files, so that a picture has the same features as array and as file.

    Args:
        images: uint8 (n, 3, height, width).
        plan: the plan whose mean and std normalize.
        size: side of the output; default: the short side of the images.

    Returns:
        float32 (n, 3, size, size).
    """
    images = _require(images, size)
    side = size or min(images.shape[2:])
    return central(resize_squares(images, side), side, side, (plan.mean, plan.std))


def resize_squares(images: Tensor, side: int) -> Tensor:
    """The central squares of uint8 images, resized by Pillow: (n, 3, height, width) → (n, 3, side, side)."""
    height, width = images.shape[2:]
    if height == width == side:
        return images
    short = min(height, width)
    left, top = (width - short) / 2, (height - short) / 2
    box = left, top, left + short, top + short
    squares = [
        np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC, box))
        for image in images.permute(0, 2, 3, 1).contiguous().cpu().numpy()
    ]
    return torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2).contiguous().to(images.device)


def _require(images: object, size: int | None) -> Tensor:
    """The images as a tensor, if they are uint8 (n, 3, height, width)."""
    if isinstance(images, np.ndarray) and images.dtype == np.uint8:
        images = torch.from_numpy(np.require(images, requirements=("C", "W")))
    if not isinstance(images, Tensor) or images.dtype != torch.uint8:
        raise UserError(
            f"the images are {type(images).__name__} ({getattr(images, 'dtype', '?')}), but must be uint8 (0–255). "
            "Pass the raw images, without ToTensor or Normalize; the plan normalizes them."
        )
    if images.ndim != 4 or images.shape[1] != 3 or 0 in images.shape:
        raise UserError(
            f"the images have shape {tuple(images.shape)}, but views need (n, 3, height, width) with n ≥ 1. "
            "Permute channels-last images, repeat a gray channel three times, and skip empty batches."
        )
    if size is not None and size < 1:
        raise UserError(f"size is {size}, but must be at least 1. Give the side of the output, e.g. 32.")
    return images


class CropPlan:
    """The views of a batch of pictures of unknown sizes; all random numbers are drawn at once, as in `make_views`.

    `windows` gives the crops of a picture once its size is known; `views` makes the views of the crops.
    """

    def __init__(
        self, plan: ViewPlan, generator: torch.Generator, *, anchor: Anchor | None, size: int, share: BatchSlice
    ):
        self.plan, self.size, self.share = plan, size, share
        self.frames = [
            (frame, draw_before_decode(frame.augmentation, share.of, size, generator) if frame.augmentation else None)
            for frame in _frames(plan, anchor, size)
        ]

    def windows(self, place: int, width: int, height: int) -> list[Window]:
        """The crops of picture number `place`, one for each view."""
        row = self.share.first + place
        windows = []
        for frame, draws in self.frames:
            if frame.augmentation is None or draws is None:
                side = max(1, round(min(width, height) * (self.size / frame.short_side)))
                top, left, tall, wide = (height - side) // 2, (width - side) // 2, side, side
            else:
                top, left, tall, wide = draws[0].boxes(height, width, slice(row, row + 1))[0].tolist()
            interpolation = frame.augmentation.interpolation if frame.augmentation else "bicubic"
            windows.append(Window(left, top, left + wide, top + tall, interpolation))
        return windows

    def views(self, crops: Tensor) -> Views:
        """The views: uint8 (n, views, 3, size, size) → normalized floats, on the device of the crops."""
        statistics = (self.plan.mean, self.plan.std)
        rows = slice(self.share.first, self.share.first + len(crops))
        tensors = []
        for images, (frame, draws) in zip(crops.unbind(1), self.frames, strict=True):
            if frame.augmentation is None or draws is None:
                tensors.append(central(images.contiguous(), self.size, self.size, statistics))
            else:
                params = draws[1].select(rows)
                tensors.append(apply(images.contiguous(), frame.augmentation, params, self.size, statistics))
        return _to_views(self.plan, tensors)
