"""Crops, resizes and blurs by matrices are torchvision's (transforms.v2.functional on float tensors, antialiased)."""

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as torchvision

from phinets.config.views import Interpolation
from phinets.views.parameters import random_stream
from phinets.views.transforms import blur_matrix, center, resized_crop, sandwich

INTERPOLATIONS: tuple[Interpolation, ...] = ("bilinear", "bicubic")


def photographs(n: int, height: int, width: int) -> Tensor:
    return torch.rand(n, 3, height, width, generator=random_stream(0, "images"))


def agree(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


BOXES = [  # top, left, height, width: the whole, single pixels, borders, thin strips, something ordinary
    (0, 0, 40, 33),
    (0, 0, 1, 1),
    (39, 32, 1, 1),
    (5, 0, 3, 33),
    (0, 30, 40, 3),
    (7, 4, 18, 24),
]


@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("size", [5, 18, 33, 64])
def test_a_crop_is_torchvisions_whether_it_shrinks_or_grows(interpolation: Interpolation, size: int) -> None:
    images, box = photographs(len(BOXES), 40, 33), torch.tensor(BOXES)
    ours = resized_crop(images, box, torch.zeros(len(BOXES), dtype=torch.bool), size, interpolation)
    mode = InterpolationMode(interpolation)
    theirs = [torchvision.resized_crop(x, *b, [size, size], mode, True) for x, b in zip(images, BOXES, strict=True)]
    agree(ours, torch.stack(theirs).clamp(0, 1))


def test_a_flip_mirrors_the_crop_of_the_flipped_images_only() -> None:
    images, box, flip = photographs(2, 12, 12), torch.tensor([[1, 2, 8, 9]] * 2), torch.tensor([False, True])
    straight = resized_crop(images, box, torch.zeros(2, dtype=torch.bool), 10, "bilinear")
    ours = resized_crop(images, box, flip, 10, "bilinear")
    agree(ours, torch.stack([straight[0], torchvision.horizontal_flip(straight[1])]))


@pytest.mark.parametrize(("height", "width"), [(32, 32), (48, 37), (33, 64)])
def test_the_centre_is_resize_then_center_crop(height: int, width: int) -> None:
    images = photographs(2, height, width)
    theirs = torchvision.resize(images, [36], InterpolationMode.BICUBIC, antialias=True).clamp(0, 1)
    agree(center(images, 36, 32), torchvision.center_crop(theirs, [32, 32]))


def test_the_centre_of_an_image_that_already_has_the_size_is_the_image() -> None:
    images = photographs(2, 8, 8)
    assert torch.equal(center(images, 8, 8), images)


@pytest.mark.parametrize(("size", "kernel"), [(12, 3), (32, 3), (64, 7), (224, 23)])
def test_a_blur_is_torchvisions_with_a_kernel_of_a_tenth_of_the_size(size: int, kernel: int) -> None:
    sigma = torch.tensor([0.1, 0.7, 2.0])
    images, matrix = photographs(3, size, size), blur_matrix(sigma, size)
    theirs = [torchvision.gaussian_blur(x, [kernel] * 2, [s.item()] * 2) for x, s in zip(images, sigma, strict=True)]
    agree(sandwich(images, matrix, matrix), torch.stack(theirs))
