"""Augmentations: one `Augmentation` per view, one `ViewPlan` per recipe."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from phinets.config.errors import UserError, require_in

Interpolation = Literal["bilinear", "bicubic"]
Range = tuple[float, float]
Channels = tuple[float, float, float]

IMAGENET_MEAN: Channels = (0.485, 0.456, 0.406)
IMAGENET_STD: Channels = (0.229, 0.224, 0.225)
CIFAR_MEAN: Channels = (0.4914, 0.4822, 0.4465)
CIFAR_STD: Channels = (0.2470, 0.2435, 0.2615)


class Window(NamedTuple):
    """A rectangle of a picture, in whole pixels, and the interpolation that resizes it."""

    left: int
    top: int
    right: int
    bottom: int
    interpolation: Interpolation


@dataclass(frozen=True, slots=True, kw_only=True)
class Augmentation:
    """One random view: crop → flip → color jitter → gray → blur → solarize, each with its own probability.

    The defaults are SimSiam's at 32 pixels (Chen & He 2021, appendix D): no blur, no solarization.
    """

    crop_scale: Range = (0.2, 1.0)
    """Smallest and largest share of the image's area in a crop."""
    crop_ratio: Range = (3 / 4, 4 / 3)
    """Smallest and largest width ÷ height of a crop; drawn uniformly in its logarithm."""
    interpolation: Interpolation = "bilinear"
    """How a crop is resized; always antialiased."""
    flip: float = 0.5
    """Probability of a horizontal flip."""
    jitter: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    """Strength of brightness, contrast, saturation (factors in 1 ± v) and hue (± v turns of the color circle)."""
    jitter_p: float = 0.8
    """Probability of the four color changes, in an order drawn for each image."""
    gray_p: float = 0.2
    """Probability of a gray image."""
    blur_p: float = 0.0
    """Probability of a Gaussian blur, whose kernel spans about a tenth of the image."""
    blur_sigma: Range = (0.1, 2.0)
    """Smallest and largest standard deviation of the blur, in pixels of the output."""
    solarize_p: float = 0.0
    """Probability that every value from one half up is inverted."""

    def describe(self) -> str:
        """The view in a few words."""
        chances = {"jitter": self.jitter_p, "gray": self.gray_p, "blur": self.blur_p, "solarize": self.solarize_p}
        rest = [f"{name} {p:g}" for name, p in {"flip": self.flip, **chances}.items() if p > 0]
        return ", ".join([f"crop {self.crop_scale[0]:g}–{self.crop_scale[1]:g} {self.interpolation}", *rest])

    def __post_init__(self) -> None:
        require_in(self, **dict.fromkeys(("flip", "jitter_p", "gray_p", "blur_p", "solarize_p"), "[0, 1]"))
        for field in ("crop_scale", "crop_ratio", "blur_sigma"):
            bounds = getattr(self, field)
            if len(bounds) != 2 or not 0 < bounds[0] <= bounds[1]:
                raise UserError(f"{field} is {bounds}, but must be (low, high) with 0 < low ≤ high.")
        if self.crop_scale[1] > 1:
            raise UserError(f"crop_scale is {self.crop_scale}, but a crop is at most the whole image: end at 1.")
        if self.interpolation not in ("bilinear", "bicubic"):
            raise UserError(f"interpolation is '{self.interpolation}', but must be 'bilinear' or 'bicubic'.")
        if len(self.jitter) != 4 or min(self.jitter) < 0 or self.jitter[3] > 0.5:
            raise UserError(
                f"jitter is {self.jitter}, but must be four strengths of 0 or more: brightness, contrast, saturation, "
                "hue. Hue must be at most 0.5, half a turn."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPlan:
    """How a batch becomes two views and an anchor: x₁, x₂ and x₀ of the paper."""

    first: Augmentation | None = Augmentation()
    """The augmentation of x₁; None: the image itself."""
    second: Augmentation | Literal["first"] | None = Augmentation()
    """The augmentation of x₂; None: the image itself. `first`: x₁ again, for evaluations with one view."""
    anchor: Literal["plain", "resize-crop"] = "resize-crop"
    """How the original x₀ is prepared. `resize-crop`, as in the authors' code: short side to 8/7 of the size (36 for
    32, 256 for 224; bicubic), then the center. `plain`: the image itself, resized only if it has another size."""
    mean: Channels = IMAGENET_MEAN
    """Subtracted from each channel."""
    std: Channels = IMAGENET_STD
    """Divides each channel."""

    def describe(self) -> str:
        """The plan in one line."""
        second = self.first if self.second == "first" else self.second
        views = [v.describe() if v else "the image itself" for v in (self.first, second)]
        text = f"both views: {views[0]}" if views[0] == views[1] else f"first: {views[0]}; second: {views[1]}"
        return f"{text}; anchor: {self.anchor}; mean {' '.join(f'{value:.3f}' for value in self.mean)}"

    def __post_init__(self) -> None:
        if self.anchor not in ("plain", "resize-crop"):
            raise UserError(f"anchor is '{self.anchor}', but must be 'plain' or 'resize-crop'.")
        if len(self.mean) != 3 or len(self.std) != 3 or min(self.std) <= 0:
            raise UserError(
                f"mean is {self.mean} and std {self.std}, but both must be three numbers in units of 0–1, std above 0."
            )


_SIMSIAM = Augmentation()
_SIMSIAM_LARGE = replace(_SIMSIAM, blur_p=0.5)
_BYOL = Augmentation(crop_scale=(0.08, 1.0), interpolation="bicubic", jitter=(0.4, 0.4, 0.2, 0.1))
_PROBE = Augmentation(crop_scale=(0.08, 1.0), interpolation="bicubic", jitter_p=0.0, gray_p=0.0)

PLANS: Mapping[str, ViewPlan] = {
    # Chen & He 2021, appendix D; the PhiNet paper's CIFAR views
    "simsiam-cifar": ViewPlan(first=_SIMSIAM, second=_SIMSIAM),
    # the same with the paper's text in place of its code: the original is the image itself
    "simsiam-cifar/plain-anchor": ViewPlan(first=_SIMSIAM, second=_SIMSIAM, anchor="plain"),
    # facebookresearch/simsiam, main_simsiam.py
    "simsiam-imagenet": ViewPlan(first=_SIMSIAM_LARGE, second=_SIMSIAM_LARGE),
    # Grill et al. 2020, appendix B, table 6
    "byol-asymmetric": ViewPlan(first=replace(_BYOL, blur_p=1.0), second=replace(_BYOL, blur_p=0.1, solarize_p=0.2)),
    # divyam3897/UCL, augmentations/simsiam_aug.py: SimSiam's views, CIFAR's statistics
    "ucl": ViewPlan(first=_SIMSIAM, second=_SIMSIAM, mean=CIFAR_MEAN, std=CIFAR_STD),
    # divyam3897/UCL, datasets/seq_cifar10.py: how LUMP augments again what its buffer holds
    "ucl-replay": ViewPlan(first=_PROBE, second=_PROBE, mean=CIFAR_MEAN, std=CIFAR_STD),
    # linear probe of the PhiNet paper's code: RRC(.08–1, bicubic) and flip
    "probe": ViewPlan(first=_PROBE, second=_PROBE),
    # both views are the image itself: the control without augmentation
    "none": ViewPlan(first=None, second=None, anchor="plain"),
}
"""The view plans by name; a new one is a line."""
