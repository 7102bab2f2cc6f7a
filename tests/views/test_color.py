"""Every change of color is torchvision's (transforms.v2.functional on float tensors), for a batch at once."""

from collections.abc import Callable
from itertools import permutations

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as torchvision

from phinets.views.parameters import BRIGHTNESS, CONTRAST, HUE, SATURATION, random_stream
from phinets.views.transforms import gray, hue_, jitter_, solarize

Op = Callable[[Tensor, float], Tensor]
BLENDS = {
    BRIGHTNESS: torchvision.adjust_brightness,
    CONTRAST: torchvision.adjust_contrast,
    SATURATION: torchvision.adjust_saturation,
}


def photographs(n: int) -> Tensor:
    """Random colors, with the corner cases that hue has to survive: gray pixels, black, white, and tied channels."""
    images = torch.rand(n, 3, 9, 7, generator=random_stream(0, "images"))
    images[:, :, 0] = images[:, :1, 0]
    images[:, 1, 1] = images[:, 0, 1]
    images[:, 2, 2] = images[:, 1, 2]
    images[:, :, 3, 0], images[:, :, 3, 1] = 0.0, 1.0
    return images


def one_by_one(op: Op, images: Tensor, parameters: Tensor) -> Tensor:
    return torch.stack([op(image, value.item()) for image, value in zip(images, parameters, strict=True)])


def only(operation: int, images: Tensor, factor: Tensor) -> Tensor:
    """Jitter in which the other operations have the factor 1, which changes nothing."""
    factors = torch.tensor([1.0, 1.0, 1.0, 0.0]).repeat(len(images), 1)
    factors[:, operation] = factor
    return jitter_(images.clone(), factors, torch.arange(4).expand(len(images), 4), hue_step=3)


def agree(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("operation", BLENDS)
def test_brightness_contrast_and_saturation_are_torchvisions(operation: int) -> None:
    images, factor = photographs(7), torch.linspace(0, 2, 7)
    agree(only(operation, images, factor), one_by_one(BLENDS[operation], images, factor))


def test_hue_is_torchvisions_all_around_the_circle() -> None:
    images, turns = photographs(11), torch.linspace(-0.5, 0.5, 11)
    agree(hue_(images.clone(), turns), one_by_one(torchvision.adjust_hue, images, turns))


def test_no_turn_of_the_hue_changes_nothing() -> None:
    images = photographs(3)
    agree(hue_(images.clone(), torch.zeros(3)), images)


def test_grey_is_torchvisions() -> None:
    images = photographs(4)
    agree(gray(images), torchvision.rgb_to_grayscale(images))


def test_solarizing_is_torchvisions() -> None:
    images = photographs(4)
    agree(solarize(images), torchvision.solarize(images, threshold=0.5))


@pytest.mark.parametrize("hue_step", range(4))
def test_the_four_changes_follow_each_images_own_order(hue_step: int) -> None:
    """All orders that turn the hue at this step, against torchvision's four functions one after the other."""
    orders = [order for order in permutations(range(4)) if order[hue_step] == HUE]
    images = photographs(len(orders))
    low, high = torch.tensor([0.6, 0.6, 0.6, -0.1]), torch.tensor([1.4, 1.4, 1.4, 0.1])
    factors = low + (high - low) * torch.rand(len(orders), 4, generator=random_stream(1, "factors"))
    ops = {**BLENDS, HUE: torchvision.adjust_hue}
    theirs = []
    for image, order, factor in zip(images, orders, factors.tolist(), strict=True):
        for operation in order:
            image = ops[operation](image, factor[operation])
        theirs.append(image)
    agree(jitter_(images.clone(), factors, torch.tensor(orders), hue_step), torch.stack(theirs))
