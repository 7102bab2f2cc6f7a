"""Whole views: the drawn parameters applied by torchvision, image by image, give what `apply` gives for the batch."""

from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as torchvision

from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.views import PLANS, Augmentation, ViewPlan
from phinets.views import ViewParams, Views, apply, augment, draw, make_views, prepare, random_stream

AUGMENTATIONS: dict[str, Augmentation] = {
    f"{name}, {place}": augmentation
    for name, plan in PLANS.items()
    for place, augmentation in (("first", plan.first), ("second", plan.second))
    if isinstance(augmentation, Augmentation)
}
AUGMENTATIONS["everything"] = Augmentation(jitter_p=1.0, blur_p=0.6, solarize_p=0.5, interpolation="bicubic")
both_ways = pytest.mark.usefixtures("way")
COLOUR = (
    torchvision.adjust_brightness,
    torchvision.adjust_contrast,
    torchvision.adjust_saturation,
    torchvision.adjust_hue,
)


def photographs(n: int, height: int = 32, width: int = 32) -> Tensor:
    """Smooth random images, so that a misplaced crop is seen."""
    coarse = torch.rand(n, 3, height // 4, width // 4, generator=random_stream(0, "images"))
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    return (smooth.clamp(0, 1) * 255).to(torch.uint8)


def by_torchvision(image: Tensor, augmentation: Augmentation, params: ViewParams, size: int) -> Tensor:
    """One image under the one row of `params`, with torchvision's functions on floats."""
    mode = InterpolationMode(augmentation.interpolation)
    view = torchvision.resized_crop(image / 255, *params.box[0].tolist(), [size, size], mode, True).clamp(0, 1)
    if params.flip:
        view = torchvision.horizontal_flip(view)
    if params.jitter:
        for operation in params.order[0].tolist():
            view = COLOUR[operation](view, params.factors[0, operation].item())
    if params.gray:
        view = torchvision.rgb_to_grayscale(view, num_output_channels=3)
    if params.blur:
        view = torchvision.gaussian_blur(view, [size // 20 * 2 + 1] * 2, [params.sigma.item()] * 2)
    return cast(Tensor, torchvision.solarize(view, 0.5) if params.solarize else view)


def present(views: Views) -> list[Tensor]:
    return [view for view in views if view is not None]


def denormalized(view: Tensor, plan: ViewPlan) -> Tensor:
    mean, std = torch.tensor(plan.mean), torch.tensor(plan.std)
    return view * std[:, None, None] + mean[:, None, None]


def close(ours: Tensor, theirs: Tensor, atol: float = 2e-5) -> None:
    torch.testing.assert_close(ours, theirs, atol=atol, rtol=0)


@both_ways
@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 32), (40, 56, 24), (24, 24, 48)])
def test_a_batch_is_augmented_as_torchvision_augments_each_image(name: str, height: int, width: int, size: int) -> None:
    augmentation, images = AUGMENTATIONS[name], photographs(24, height, width)
    params = draw(augmentation, 24, height, width, random_stream(1, name))
    theirs = [by_torchvision(images[i], augmentation, params.select(slice(i, i + 1)), size) for i in range(24)]
    close(apply(images, augmentation, params, size), torch.stack(theirs))


@both_ways
@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_slice_of_the_batch_with_its_slice_of_parameters_gives_the_slice_of_the_views(name: str) -> None:
    augmentation, images = AUGMENTATIONS[name], photographs(40)
    params = draw(augmentation, 40, 32, 32, random_stream(1))
    rows = slice(13, 29)
    close(
        apply(images[rows], augmentation, params.select(rows), 32), apply(images, augmentation, params, 32)[rows], 1e-6
    )


@both_ways
@pytest.mark.parametrize(("n", "height", "width"), [(4, 33, 32), (4, 32, 33), (5, 32, 32), (3, 32, 32)])
def test_parameters_that_were_drawn_for_other_images_are_refused(n: int, height: int, width: int) -> None:
    whole = Augmentation(crop_scale=(1.0, 1.0), crop_ratio=(width / height, width / height))
    with pytest.raises(UserError, match="Draw for their number and size"):
        apply(photographs(4), whole, draw(whole, n, height, width, random_stream(0)), 32)


@both_ways
def test_how_many_images_share_a_pass_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    augmentation, images = AUGMENTATIONS["everything"], photographs(40)
    params = draw(augmentation, 40, 32, 32, random_stream(1))
    whole = apply(images, augmentation, params, 32)
    for name in ("TORCH_PIXELS", "KERNEL_PIXELS"):
        monkeypatch.setattr(augment, name, 7 * 32 * 32)
    close(apply(images, augmentation, params, 32), whole, 1e-6)


@both_ways
@pytest.mark.parametrize("name", PLANS)
def test_every_plan_makes_finite_float_views_of_the_images_size_and_leaves_the_images_alone(name: str) -> None:
    images = photographs(20)
    kept = images.clone()
    for view in present(make_views(images, PLANS[name], random_stream(0))):
        assert view.dtype == torch.float32
        assert view.shape == images.shape
        assert view.is_contiguous()
        pixels = denormalized(view, PLANS[name])
        assert -1e-5 <= pixels.min() <= pixels.max() <= 1 + 1e-5
    assert torch.equal(images, kept)


@both_ways
def test_the_views_are_drawn_one_after_the_other_and_normalized_with_the_plans_statistics() -> None:
    plan, images, generator = PLANS["byol-asymmetric"], photographs(20), random_stream(0)
    views = make_views(images, plan, random_stream(0), anchor="augmented")
    for view, augmentation in zip(present(views), (plan.first, plan.second, plan.first), strict=True):
        assert isinstance(augmentation, Augmentation)
        theirs = apply(images, augmentation, draw(augmentation, 20, 32, 32, generator), 32)
        close(denormalized(view, plan), theirs)


@both_ways
@pytest.mark.parametrize("anchor", ["original", "augmented"])
def test_asking_for_an_anchor_does_not_change_the_other_views(anchor: Anchor) -> None:
    plan, images = PLANS["simsiam-cifar"], photographs(20)
    alone = make_views(images, plan, random_stream(5), anchor=None)
    accompanied = make_views(images, plan, random_stream(5), anchor=anchor)
    assert alone.anchor is None
    assert torch.equal(alone.first, accompanied.first)
    assert torch.equal(alone.second, accompanied.second)


@both_ways
def test_the_generator_determines_the_views() -> None:
    plan, images = PLANS["simsiam-cifar"], photographs(20)
    once, again, other = (make_views(images, plan, random_stream(seed)) for seed in (5, 5, 6))
    assert torch.equal(once.first, again.first)
    assert torch.equal(once.second, again.second)
    assert not torch.equal(once.first, other.first)
    assert not torch.equal(once.first, once.second)


@both_ways
def test_a_plan_of_no_augmentation_gives_the_normalized_image_three_times() -> None:
    plan, images = PLANS["none"], photographs(5)
    theirs = torchvision.normalize(images / 255, list(plan.mean), list(plan.std))
    for view in present(make_views(images, plan, random_stream(0))):
        close(view, theirs)


@both_ways
def test_the_authors_original_is_resized_to_36_and_cropped_to_32() -> None:
    """Against torchvision's Resize(36, bicubic) and CenterCrop(32)."""
    plan, images = PLANS["simsiam-cifar"], photographs(5)
    resized = torchvision.resize(images / 255, [36], InterpolationMode.BICUBIC, antialias=True).clamp(0, 1)
    *_, anchor = present(make_views(images, plan, random_stream(0)))
    close(denormalized(anchor, plan), torchvision.center_crop(resized, [32, 32]))


@both_ways
def test_an_evaluator_sees_the_normalized_image_resized_only_if_its_size_differs() -> None:
    plan, images = PLANS["ucl"], photographs(5, 40, 40)
    close(denormalized(prepare(images, plan), plan), images / 255)
    theirs = torchvision.resize(images / 255, [32, 32], InterpolationMode.BICUBIC, antialias=True).clamp(0, 1)
    close(
        denormalized(prepare(images, plan, size=32), plan), theirs, 2.01 / 255
    )  # Pillow rounds and clips to bytes twice


def test_views_are_positional_and_change_together() -> None:
    ones, zeros = torch.ones(1), torch.zeros(1)
    assert Views(ones, zeros).map(lambda view: view + 1).anchor is None
    first, second, anchor = Views(ones, zeros, ones).map(lambda view: view + 1)
    assert [first, second, anchor] == [torch.tensor([value]) for value in (2, 1, 2)]
    assert Views(ones, zeros, ones).to("cpu").second is zeros


@pytest.mark.parametrize(
    ("images", "cure"),
    [
        (torch.zeros(4, 3, 8, 8), "uint8"),
        (torch.zeros(4, 8, 8, 3, dtype=torch.uint8), "Permute"),
        (torch.zeros(4, 1, 8, 8, dtype=torch.uint8), "repeat a gray channel"),
        (torch.zeros(3, 8, 8, dtype=torch.uint8), r"\(n, 3, height, width\)"),
        (torch.zeros(0, 3, 8, 8, dtype=torch.uint8), "skip empty batches"),
    ],
)
def test_images_that_cannot_be_viewed_are_refused_with_the_cure(images: Tensor, cure: str) -> None:
    with pytest.raises(UserError, match=cure):
        make_views(images, PLANS["none"], random_stream(0))
    with pytest.raises(UserError, match=cure):
        prepare(images, PLANS["none"])


def test_a_size_of_nothing_and_an_unknown_anchor_are_refused() -> None:
    with pytest.raises(UserError, match="size is 0"):
        make_views(photographs(2), PLANS["none"], random_stream(0), size=0)
    with pytest.raises(UserError, match="'original', 'augmented' or None"):
        make_views(photographs(2), PLANS["none"], random_stream(0), anchor=cast(Anchor, "copy"))


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"flip": 1.5}, r"flip is 1.5, but"),
        ({"gray_p": -0.1}, "gray_p is -0.1"),
        ({"crop_scale": (0.9, 0.2)}, "low ≤ high"),
        ({"crop_scale": (0.2, 1.5)}, "at most the whole image"),
        ({"blur_sigma": (0.0, 2.0)}, "0 < low"),
        ({"jitter": (0.4, 0.4, 0.4, 0.6)}, "at most 0.5"),
        ({"jitter": (-0.4, 0.4, 0.4, 0.1)}, "four strengths of 0 or more"),
        ({"interpolation": "nearest"}, "'bilinear' or 'bicubic'"),
    ],
)
def test_an_augmentation_that_cannot_be_drawn_is_refused_with_the_cure(wrong: dict[str, object], cure: str) -> None:
    with pytest.raises(UserError, match=cure):
        Augmentation(**wrong)  # type: ignore[arg-type]


def test_a_plan_that_cannot_normalize_is_refused_with_the_cure() -> None:
    with pytest.raises(UserError, match="std above 0"):
        replace(PLANS["none"], std=(0.2, 0.0, 0.2))
    with pytest.raises(UserError, match="'plain' or 'resize-crop'"):
        replace(PLANS["none"], anchor="cropped")  # type: ignore[arg-type]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_another_device_gives_the_same_views() -> None:
    plan, images = PLANS["byol-asymmetric"], photographs(64)
    here, there = make_views(images, plan, random_stream(0)), make_views(images.cuda(), plan, random_stream(0))
    for ours, theirs in zip(present(here), present(there.to("cpu")), strict=True):
        close(ours, theirs, 1e-3)


@both_ways
def test_who_looks_at_one_view_gets_the_first_twice_for_the_price_of_one() -> None:
    images, plan = photographs(6), PLANS["simsiam-cifar"]
    pair = make_views(images, plan, random_stream(0), anchor=None)
    single = make_views(images, replace(plan, second="first"), random_stream(0), anchor=None)
    assert single.second is single.first
    assert torch.equal(single.first, pair.first)


def test_the_description_tells_every_plan_from_every_other() -> None:
    assert len({plan.describe() for plan in PLANS.values()}) == len(PLANS)
