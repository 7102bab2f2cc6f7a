"""Changes of color on batches of float images in [0, 1]: (n, 3, h, w) and one parameter per image.

As in torch, a trailing underscore marks a function that changes its argument in place and hands it back.
"""

import torch
from torch import Tensor

from phinets.views.parameters import CONTRAST, HUE, SATURATION


def gray(images: Tensor) -> Tensor:
    """Luma, .2989 R + .587 G + .114 B (ITU-R 601): (n, 3, h, w) → (n, 1, h, w)."""
    red, green, blue = (images[:, i : i + 1] for i in range(3))
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114)


def jitter_(images: Tensor, factors: Tensor, order: Tensor, hue_step: int) -> Tensor:
    """The four color changes, each image in its own `order` (n, 4), save that hue comes at the same step for all."""
    f = factors.gather(1, order)
    to_grey, to_mean = ((1 - f) * (order == operation) for operation in (SATURATION, CONTRAST))
    for step in range(4):
        if step == hue_step:
            hue_(images, factors[:, HUE])
        else:
            blend_(images, f[:, step], to_grey[:, step], to_mean[:, step])
    return images


def blend_(images: Tensor, f: Tensor, to_grey: Tensor, to_mean: Tensor) -> Tensor:
    """Brightness, contrast and saturation in one formula, so images with different changes share a pass.

    f·x + to_grey·gray(x) + to_mean·mean(gray(x)), cut to [0, 1]. The coefficients (n) are (f, 0, 0) for brightness,
    (f, 0, 1 − f) for contrast and (f, 1 − f, 0) for saturation.
    """
    luma = gray(images)
    mean = luma.mean(dim=(2, 3), keepdim=True)
    towards = luma.mul_(_per_image(to_grey)).add_(mean.mul_(_per_image(to_mean)))
    return images.mul_(_per_image(f)).add_(towards).clamp_(0, 1)


def hue_(images: Tensor, turns: Tensor) -> Tensor:
    """Shift the hue by a part of the color circle, keeping HSV's saturation and value.

    With chroma c = max − min and hue h in sixths of the circle, a channel is min + c·w(h), where w is 1 within one
    sixth of the channel's own hue, 0 beyond two, and linear between. Hence w_G + w_B − w_R = |h| − 1 for h in [−3, 3],
    and h has the sign of G − B: the hue without a single case distinction.
    """
    red, green, blue = images.unbind(1)
    low = torch.minimum(red, green).minimum(blue)
    chroma = torch.maximum(red, green).maximum(blue).sub_(low)
    size = (green + blue).sub_(red).sub_(low).div_(chroma.clamp_min(1e-12)).add_(1)
    h = size.copysign_(green - blue).add_(6 * turns[:, None, None])
    h.sub_((h / 6).floor_(), alpha=6)  # now in [0, 6): red lies at 0, green at 2, blue at 4
    weights = (h - 3).abs_().sub_(1), (h - 2).abs_().neg_().add_(2), (h - 4).abs_().neg_().add_(2)
    for channel, weight in zip((red, green, blue), weights, strict=True):
        torch.addcmul(low, chroma, weight.clamp_(0, 1), out=channel)
    return images


def solarise(images: Tensor) -> Tensor:
    """Invert every value from one half up."""
    return torch.where(images >= 0.5, 1 - images, images)


def _per_image(values: Tensor) -> Tensor:
    return values[:, None, None, None]
