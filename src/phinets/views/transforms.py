"""Crops, flips, resizes and blurs as matrices: out = R · image · Cᵀ, one R (rows) and one C (columns) per image."""

import torch
from torch import Tensor

from phinets.config.views import Interpolation
from phinets.views.parameters import CONTRAST, HUE, SATURATION


def sandwich(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """R · image · Cᵀ for every image and channel.

    images (n, 3, H, W), rows (n, h, H), columns (n, w, W) → (n, 3, h, w).
    """
    n, channels, height, width = images.shape
    wide = torch.bmm(images.reshape(n, channels * height, width), columns.transpose(1, 2))
    return rows.unsqueeze(1) @ wide.view(n, channels, height, -1)


def resized_crop(images: Tensor, box: Tensor, flip: Tensor, size: int, interpolation: Interpolation) -> Tensor:
    """Each image's box at size × size pixels, antialiased as torchvision does it; mirrored where `flip` says so."""
    top, left, tall, wide = box.to(images.dtype).unbind(1)
    rows = resize_matrix(top, tall, images.shape[2], size, interpolation)
    columns = resize_matrix(left, wide, images.shape[3], size, interpolation, flip)
    resized = sandwich(images, rows, columns)
    return resized.clamp_(0, 1) if interpolation == "bicubic" else resized  # a cubic overshoots


def center(images: Tensor, short_side: int, size: int) -> Tensor:
    """The central size × size pixels of every image, after a bicubic resize of its short side to `short_side`."""
    extents = images.shape[2:]
    if extents == (size, size) and short_side == size:
        return images

    def weights(extent: int) -> Tensor:
        resized = int(short_side * extent / min(extents))
        first = round((resized - size) / 2)
        start, length = images.new_zeros(1), images.new_full((1,), extent)
        return resize_matrix(start, length, extent, resized, "bicubic")[0, first : first + size]

    rows, columns = map(weights, extents)
    return (rows @ (images @ columns.T.contiguous())).clamp_(0, 1)


def resize_matrix(
    start: Tensor, length: Tensor, extent: int, size: int, interpolation: Interpolation, flip: Tensor | None = None
) -> Tensor:
    """The weights of `size` outputs over a line of `extent` pixels, of which only a stretch is resized.

    start, length (n) → (n, size, extent). Output i is centered at start + (i + ½)·s, s = length/size; its weights are
    the kernel at (pixel − center)/max(s, 1), zero outside the stretch, with sum 1. Antialiasing is that widening.
    """
    start, length = start[:, None, None], length[:, None, None]
    pixel = torch.arange(extent, device=start.device, dtype=start.dtype) + 0.5 - start
    output = torch.arange(size, device=start.device, dtype=start.dtype)[:, None] + 0.5
    if flip is not None:
        output = torch.where(flip[:, None, None], size - output, output)
    scale = length / size
    width = scale.clamp_min(1)
    distance = (pixel / width - scale * output / width).abs_()
    weights = distance.neg_().add_(1).clamp_min_(0) if interpolation == "bilinear" else _cubic(distance)
    weights.mul_(((pixel > 0) & (pixel < length)).to(weights.dtype))
    return weights.div_(weights.sum(dim=2, keepdim=True))


def blur_matrix(sigma: Tensor, size: int) -> Tensor:
    """The weights of a Gaussian blur along a line of `size` pixels that is mirrored at its ends.

    sigma (n) → (n, size, size). The kernel reaches size//20 pixels each way: 23 wide at 224, as SimSiam's; 3 at 32.
    """
    reach = max(1, size // 20)
    pixel = torch.arange(size, device=sigma.device, dtype=sigma.dtype)
    output, last = pixel[:, None], size - 1
    weights = sigma.new_zeros(len(sigma), size, size)
    for image, exists in ((pixel, pixel >= 0), (-pixel, pixel > 0), (2 * last - pixel, pixel < last)):
        offset = image - output
        inside = exists & (offset.abs() <= reach)
        weights += torch.exp(-0.5 * (offset / sigma[:, None, None]) ** 2) * inside
    return weights / weights.sum(dim=2, keepdim=True)


def _cubic(distance: Tensor) -> Tensor:
    """Keys' cubic with a = −½, the value PIL and torch use when they antialias."""
    near = (1.5 * distance - 2.5) * distance**2 + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


def gray(images: Tensor) -> Tensor:
    """Luma, .2989 R + .587 G + .114 B (ITU-R 601): (n, 3, h, w) → (n, 1, h, w)."""
    red, green, blue = (images[:, i : i + 1] for i in range(3))
    return (0.2989 * red).add_(green, alpha=0.587).add_(blue, alpha=0.114)


def jitter_(images: Tensor, factors: Tensor, order: Tensor, hue_step: int) -> Tensor:
    """The four color changes, each image in its own `order` (n, 4), save that hue comes at the same step for all."""
    f = factors.gather(1, order)
    to_gray, to_mean = ((1 - f) * (order == operation) for operation in (SATURATION, CONTRAST))
    for step in range(4):
        if step == hue_step:
            hue_(images, factors[:, HUE])
        else:
            blend_(images, f[:, step], to_gray[:, step], to_mean[:, step])
    return images


def blend_(images: Tensor, f: Tensor, to_gray: Tensor, to_mean: Tensor) -> Tensor:
    """Brightness, contrast and saturation in one formula, so images with different changes share a pass.

    f·x + to_gray·gray(x) + to_mean·mean(gray(x)), clamped to [0, 1]. The coefficients (n) are (f, 0, 0) for brightness,
    (f, 0, 1 − f) for contrast and (f, 1 − f, 0) for saturation.
    """
    luma, (f, to_gray, to_mean) = gray(images), (x[:, None, None, None] for x in (f, to_gray, to_mean))
    mean = luma.mean(dim=(2, 3), keepdim=True)
    return images.mul_(f).add_(luma.mul_(to_gray).add_(mean.mul_(to_mean))).clamp_(0, 1)


def hue_(images: Tensor, turns: Tensor) -> Tensor:
    """Shift the hue by some turns of the color circle, keeping HSV's saturation and value.

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


def solarize(images: Tensor) -> Tensor:
    """Invert every value from one half up."""
    return torch.where(images >= 0.5, 1 - images, images)
