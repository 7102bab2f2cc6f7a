"""Every operation, in both ways of making a view, is torchvision's (transforms.v2.functional on uint8 tensors).

An 8-bit image rounds after each operation and floats do not, so the two may be 2/255 apart and no more. It also cuts
what a cubic overshoots along x before it goes on along y, which a float (torchvision's as ours) does at the end; hence
images that keep clear of black and white.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as torchvision

from phinets.config.views import PLANS, Augmentation, Interpolation
from phinets.views import ViewParams, apply, make_views, random_stream
from phinets.views.parameters import BRIGHTNESS, CONTRAST, HUE, SATURATION

N, SIZE = 9, 32
ROUNDING = 2 / 255
pytestmark = pytest.mark.usefixtures("way")


def photographs() -> Tensor:
    """Smooth random images, with a little noise that an operation on neighboring pixels has to get right."""
    stream = random_stream(0, "images")
    coarse = 0.2 + 0.6 * torch.rand(N, 3, 8, 8, generator=stream)
    smooth = torch.nn.functional.interpolate(coarse, (SIZE, SIZE), mode="bilinear")
    noise = 0.2 * torch.rand(smooth.shape, generator=stream) - 0.1
    return (smooth + noise).mul(255).round().to(torch.uint8)


def nothing() -> ViewParams:
    """Parameters that leave every image as it is."""
    never = torch.zeros(N, dtype=torch.bool)
    return ViewParams(
        box=torch.tensor([[0, 0, SIZE, SIZE]]).repeat(N, 1),
        flip=never,
        jitter=never,
        factors=torch.tensor([[1.0, 1.0, 1.0, 0.0]]).repeat(N, 1),
        order=torch.arange(4).repeat(N, 1),
        gray=never,
        blur=never,
        sigma=torch.ones(N),
        solarize=never,
    )


def boxes() -> Tensor:
    """Crops of every size, some of them at a border."""
    tall = torch.linspace(3, SIZE, N).round().long()
    wide = tall.flip(0)
    return torch.stack([SIZE - tall, (SIZE - wide) // 3, tall, wide], dim=1)


def color(operation: int) -> ViewParams:
    """Jitter of one kind only, over the range that a strength of 0.8 (0.5 for hue) draws from."""
    factors = nothing().factors
    factors[:, operation] = torch.linspace(-0.5, 0.5, N) if operation == HUE else torch.linspace(0.2, 1.8, N)
    return replace(nothing(), jitter=torch.ones(N, dtype=torch.bool), factors=factors)


@dataclass(frozen=True)
class Operation:
    """What is drawn, and what torchvision does to image i under the same parameters."""

    params: ViewParams
    torchvision: Callable[[Tensor, int], Any]
    interpolation: Interpolation = "bilinear"


ALWAYS, SOME, SIGMA = torch.ones(N, dtype=torch.bool), torch.arange(N) % 2 == 0, torch.linspace(0.1, 2, N)


def cropped(interpolation: Interpolation) -> Operation:
    def crop(image: Tensor, i: int) -> Any:
        mode = InterpolationMode(interpolation)
        return torchvision.resized_crop(image, *boxes()[i].tolist(), [SIZE, SIZE], mode, antialias=True)

    return Operation(replace(nothing(), box=boxes()), crop, interpolation)


def jittered(operation: int, reference: Callable[[Tensor, float], Any]) -> Operation:
    params = color(operation)
    return Operation(params, lambda image, i: reference(image, params.factors[i, operation].item()))


OPERATIONS = {
    "nothing": Operation(nothing(), lambda image, i: image),
    "crop, bilinear": cropped("bilinear"),
    "crop, bicubic": cropped("bicubic"),
    "flip": Operation(
        replace(nothing(), flip=SOME), lambda image, i: torchvision.horizontal_flip(image) if SOME[i] else image
    ),
    "brightness": jittered(BRIGHTNESS, torchvision.adjust_brightness),
    "contrast": jittered(CONTRAST, torchvision.adjust_contrast),
    "saturation": jittered(SATURATION, torchvision.adjust_saturation),
    "hue": jittered(HUE, torchvision.adjust_hue),
    "gray": Operation(replace(nothing(), gray=ALWAYS), lambda image, i: torchvision.rgb_to_grayscale(image, 3)),
    "blur": Operation(
        replace(nothing(), blur=ALWAYS, sigma=SIGMA),
        lambda image, i: torchvision.gaussian_blur(image, [3, 3], [SIGMA[i].item()] * 2),
    ),
    "solarize": Operation(replace(nothing(), solarize=ALWAYS), lambda image, i: torchvision.solarize(image, 127.5)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_torchvisions(name: str) -> None:
    operation, images = OPERATIONS[name], photographs()
    ours = apply(images, Augmentation(interpolation=operation.interpolation), operation.params, SIZE)
    theirs = torch.stack([operation.torchvision(image, i) for i, image in enumerate(images)])
    torch.testing.assert_close(ours, theirs / 255, atol=ROUNDING, rtol=0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_changes_the_image_by_more_than_the_tolerance(name: str) -> None:
    """Otherwise the test above would let its absence pass."""
    operation, images = OPERATIONS[name], photographs()
    theirs = torch.stack([operation.torchvision(image, i) for i, image in enumerate(images)])
    assert name == "nothing" or (theirs.float() - images.float()).abs().max() > 20


def test_normalizing_is_torchvisions() -> None:
    plan, images = replace(PLANS["none"], mean=(0.1, 0.5, 0.9), std=(0.5, 1.0, 2.0)), photographs()
    params = apply(images, Augmentation(), nothing(), SIZE, statistics=(plan.mean, plan.std))
    theirs = torchvision.normalize(images / 255, list(plan.mean), list(plan.std))
    for ours in (params, make_views(images, plan, random_stream(0)).first):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_the_anchor_is_torchvisions_resize_to_36_and_centre_crop_to_32() -> None:
    plan, images = replace(PLANS["simsiam-cifar"], mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)), photographs()
    resized = torchvision.resize(images, [36], InterpolationMode.BICUBIC, antialias=True)
    ours = make_views(images, plan, random_stream(0)).anchor
    assert ours is not None
    torch.testing.assert_close(ours, torchvision.center_crop(resized, [SIZE, SIZE]) / 255, atol=ROUNDING, rtol=0)
