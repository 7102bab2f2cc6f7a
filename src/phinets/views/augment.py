"""Apply what was drawn: uint8 images and parameters in, float images out; nothing random happens here.

A CPU uses the compiled kernel if numba is installed (see `fused`); every other device, and a CPU without it, torch.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.views import Augmentation
from phinets.views.fused import Statistics, central_look, drawn_looks, fused, serves
from phinets.views.parameters import HUE, ViewParams
from phinets.views.transforms import blur_matrix, center, gray, jitter_, resized_crop, sandwich, solarise

CACHE = 2**17  # pixels that a CPU handles at a time, so that what it computes on the way stays in its cache
NEVER = 4  # the step at which hue changes, 0 to 3, or this


def apply(
    images: Tensor, augmentation: Augmentation, drawn: ViewParams, size: int, statistics: Statistics | None = None
) -> Tensor:
    """The augmented images: uint8 (n, 3, H, W) → float (n, 3, size, size), on the images' device.

    In [0, 1], or normalized where statistics (mean, std) are given. Image i depends on row i of `drawn` alone.
    """
    _require_fit(images, drawn)
    if serves(images):
        return fused(images, drawn_looks(drawn, augmentation.interpolation, size), size, statistics)
    return _normalized_(_by_torch(images, augmentation, drawn, size), statistics)


def central(images: Tensor, short_side: int, size: int, statistics: Statistics | None = None) -> Tensor:
    """The un-augmented images: short side brought to `short_side`, then the central size × size; uint8 → as `apply`."""
    height, width = images.shape[2:]
    if serves(images) and not height == width == short_side == size:
        return fused(images, central_look(height, width, short_side, size), size, statistics)
    views = torch.empty(len(images), 3, size, size, device=images.device)
    for part in _parts(images, size):
        views[part] = center(_unit(images[part]), short_side, size)
    return _normalized_(views, statistics)


def _require_fit(images: Tensor, drawn: ViewParams) -> None:
    """Compiled code does not notice when it reads beyond an image."""
    corner, (height, width) = drawn.box[:, :2], images.shape[2:]
    bottom, right = (corner + drawn.box[:, 2:]).amax(dim=0).tolist()
    if len(drawn) != len(images) or bottom > height or right > width or corner.min() < 0:
        raise UserError(
            f"what was drawn does not belong to these images: {len(drawn)} boxes within {bottom} × {right} pixels for "
            f"{len(images)} images of {height} × {width}. Draw for their number and size."
        )


def _by_torch(images: Tensor, augmentation: Augmentation, drawn: ViewParams, size: int) -> Tensor:
    """Images whose hue changes at the same step are handled together, so that 24 orders need four runs of passes."""
    steps, rows = _hue_steps(drawn).sort(stable=True)
    views = torch.empty(len(images), 3, size, size, device=images.device)
    for part in _parts(images, size):
        here = rows[part].to(images.device)
        new = _augmented(images.index_select(0, here), augmentation, drawn.select(rows[part]), steps[part], size)
        views.index_copy_(0, here, new)
    return views


def _augmented(images: Tensor, augmentation: Augmentation, drawn: ViewParams, steps: Tensor, size: int) -> Tensor:
    on = drawn.to(images.device)
    views = resized_crop(_unit(images), on.box, on.flip, size, augmentation.interpolation)
    for run, step in _runs(steps):
        jitter_(views[run], on.factors[run], on.order[run], step)
    _change_(views, drawn.gray, lambda some, _: gray(some))
    _change_(views, drawn.blur, lambda some, rows: _blurred(some, on.sigma[rows]))
    _change_(views, drawn.solarise, lambda some, _: solarise(some))
    return views


def _normalized_(images: Tensor, statistics: Statistics | None) -> Tensor:
    """(x − mean) / std per channel, in place."""
    if statistics is None:
        return images
    mean, std = (images.new_tensor(values)[:, None, None] for values in statistics)
    return images.sub_(mean).div_(std)


def _unit(images: Tensor) -> Tensor:
    return images.float().div_(255)


def _blurred(images: Tensor, sigma: Tensor) -> Tensor:
    matrix = blur_matrix(sigma, images.shape[-1])
    return sandwich(images, matrix, matrix)


def _change_(views: Tensor, chosen: Tensor, change: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Change the chosen images in place; the choice is read on the CPU, so no device waits for it."""
    rows = chosen.nonzero()[:, 0].to(views.device)
    if len(rows):
        views.index_copy_(0, rows, change(views.index_select(0, rows), rows).expand(-1, 3, -1, -1))


def _hue_steps(drawn: ViewParams) -> Tensor:
    return torch.where(drawn.jitter, (drawn.order == HUE).int().argmax(dim=1), NEVER)


def _runs(steps: Tensor) -> Iterator[tuple[slice, int]]:
    """The stretches of equal steps in a sorted list, without the images that are never jittered."""
    ends = torch.searchsorted(steps, torch.arange(NEVER), right=True).tolist()
    for step, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > start:
            yield slice(start, end), step


def _parts(images: Tensor, size: int) -> Iterator[slice]:
    """A few images at a time on a CPU, all at once elsewhere."""
    pixels = max(size**2, images.shape[2] * images.shape[3])
    at_most = max(1, CACHE // pixels) if images.device.type == "cpu" else len(images)
    for start in range(0, len(images), at_most):
        yield slice(start, start + at_most)
