"""The random numbers of a view, drawn at once for a whole batch."""

import math
from dataclasses import dataclass, fields
from hashlib import blake2b

import torch
from torch import Tensor

from phinets.config.views import Augmentation, Range

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)

TRIES = 10  # torchvision's RandomResizedCrop gives up after ten boxes that do not fit


@dataclass(frozen=True, slots=True)
class ViewParams:
    """The parameters of one view of n images."""

    box: Tensor
    """(n, 4) whole numbers: top, left, height, width of the crop."""
    flip: Tensor
    """(n) whether the crop is mirrored."""
    jitter: Tensor
    """(n) whether the colors change."""
    factors: Tensor
    """(n, 4) factor of brightness, contrast, saturation, and the shift of hue in turns."""
    order: Tensor
    """(n, 4) which of the four comes first, second, third, fourth."""
    gray: Tensor
    """(n) whether the image becomes gray."""
    blur: Tensor
    """(n) whether the image is blurred."""
    sigma: Tensor
    """(n) standard deviation of the blur, in pixels."""
    solarize: Tensor
    """(n) whether bright values are inverted."""

    def __len__(self) -> int:
        return len(self.flip)

    def select(self, rows: slice | Tensor) -> "ViewParams":
        """The parameters of these images only."""
        return ViewParams(*(getattr(self, field.name)[rows] for field in fields(self)))

    def to(self, device: torch.device) -> "ViewParams":
        """The same parameters on another device."""
        return ViewParams(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class CropParams:
    """The random numbers of RandomResizedCrop, before the image's size is known."""

    area: Tensor
    """(n, tries) shares of the image's area."""
    ratio: Tensor
    """(n, tries) width ÷ height."""
    position: Tensor
    """(n, 2) position of the box within the image, from 0 to 1."""
    bounds: Range
    """Of the ratio, for images where no try fits."""

    def boxes(self, height: int, width: int, rows: slice = slice(None)) -> Tensor:
        """(n, 4) top, left, height, width: the first of ten tries that fits, else the largest central box."""
        area, ratio = height * width * self.area[rows], self.ratio[rows]
        tall, wide = (area / ratio).sqrt_().round_(), (area * ratio).sqrt_().round_()
        fits, first = ((tall > 0) & (tall <= height) & (wide > 0) & (wide <= width)).max(dim=1, keepdim=True)
        side = torch.cat([tall.gather(1, first), wide.gather(1, first)], dim=1)
        corner = (self.position[rows] * (torch.tensor([height, width]) - side + 1)).floor_()
        box = torch.cat([corner, side], dim=1).long()
        tallest, widest = min(height, round(width / self.bounds[0])), min(width, round(height * self.bounds[1]))
        central = torch.tensor([(height - tallest) // 2, (width - widest) // 2, tallest, widest])
        return torch.where(fits, box, central)


def draw(augmentation: Augmentation, n: int, height: int, width: int, generator: torch.Generator) -> ViewParams:
    """Draw one view's parameters for n images of height × width.

    The order of the draws is fixed and none is skipped, so a changed probability leaves all other numbers as they were.
    """
    crops = _crops(augmentation, n, generator)
    return _draw_params(augmentation, crops.boxes(height, width), generator)


def draw_before_decode(
    augmentation: Augmentation, n: int, size: int, generator: torch.Generator
) -> tuple[CropParams, ViewParams]:
    """The same for n pictures of unknown sizes: the crops, and the other parameters for crops of size × size."""
    crops = _crops(augmentation, n, generator)
    return crops, _draw_params(augmentation, torch.tensor([0, 0, size, size]).expand(n, 4), generator)


def _draw_params(augmentation: Augmentation, box: Tensor, generator: torch.Generator) -> ViewParams:
    n = len(box)

    def chance(p: float) -> Tensor:
        return torch.rand(n, generator=generator) < p

    return ViewParams(
        box=box,
        flip=chance(augmentation.flip),
        jitter=chance(augmentation.jitter_p),
        factors=_factors(augmentation.jitter, n, generator),
        order=torch.rand(n, 4, generator=generator, dtype=torch.float64).argsort(dim=1),
        gray=chance(augmentation.gray_p),
        blur=chance(augmentation.blur_p),
        sigma=_uniform(augmentation.blur_sigma, (n,), generator).float(),
        solarize=chance(augmentation.solarize_p),
    )


def _uniform(bounds: Range, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    low, high = bounds
    return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)


def _factors(strength: tuple[float, float, float, float], n: int, generator: torch.Generator) -> Tensor:
    """ColorJitter's factors: uniform in [max(0, 1 − v), 1 + v], and the hue's shift uniform in [−v, v]."""
    *scales, turn = strength
    low = torch.tensor([*(max(0.0, 1 - v) for v in scales), -turn], dtype=torch.float64)
    high = torch.tensor([*(1 + v for v in scales), turn], dtype=torch.float64)
    return (low + (high - low) * torch.rand(4, n, generator=generator, dtype=torch.float64).T).float()


def _crops(augmentation: Augmentation, n: int, generator: torch.Generator) -> CropParams:
    low, high = augmentation.crop_ratio
    area = _uniform(augmentation.crop_scale, (n, TRIES), generator)
    ratio = _uniform((math.log(low), math.log(high)), (n, TRIES), generator).exp_()
    position = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return CropParams(area, ratio, position, augmentation.crop_ratio)


def random_stream(seed: int, *words: str | int) -> torch.Generator:
    """A fresh CPU generator for one purpose: the same seed and words always give the same numbers.

    `random_stream(7, "views", step)` needs no state between steps, so a resumed run draws what the unbroken one would
    have. Torch's CPU generator keeps 32 bits of a seed, hence four bytes of the digest.
    """
    digest = blake2b(repr((seed, *words)).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))
