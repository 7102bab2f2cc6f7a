"""The compiled kernel and torch make the same views, to float rounding."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from phinets.config.views import PLANS, Augmentation, Interpolation, ViewPlan
from phinets.views import Views, apply, augment, draw, make_views, random_stream
from phinets.views.augment import central

compiled = pytest.mark.skipif(augment.kernel() is None, reason="the compiled kernel needs numba")
EVERYTHING = Augmentation(crop_scale=(0.01, 1.0), jitter=(0.4, 0.4, 0.4, 0.5), blur_p=0.7, solarize_p=0.5)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def noise(n: int, height: int, width: int) -> Tensor:
    """The hardest image to resize, with places in black, white and gray."""
    images = torch.randint(256, (n, 3, height, width), dtype=torch.uint8, generator=random_stream(0, "images"))
    images[:, :, 0], images[:, :, 1], images[:, :, 2] = 0, 255, images[:, :1, 2]
    return images


def in_units_of_brightness(views: Views, plan: ViewPlan) -> Views:
    """Without the division by std, which magnifies rounding five times."""
    return views.map(lambda view: view * torch.tensor(plan.std)[:, None, None])


def use_torch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(augment, "kernel", lambda: None)


def agree(kernels: Tensor | None, torchs: Tensor | None) -> None:
    assert kernels is not None
    assert torchs is not None
    torch.testing.assert_close(kernels, torchs, atol=1e-5, rtol=0)


@compiled
@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 32), (20, 90, 41), (150, 64, 24), (5, 5, 8)])
def test_both_ways_agree_whether_a_crop_grows_or_shrinks(
    monkeypatch: pytest.MonkeyPatch, interpolation: Interpolation, height: int, width: int, size: int
) -> None:
    augmentation, images = replace(EVERYTHING, interpolation=interpolation), noise(100, height, width)
    params = draw(augmentation, 100, height, width, random_stream(1))
    kernels = apply(images, augmentation, params, size)
    use_torch(monkeypatch)
    agree(kernels, apply(images, augmentation, params, size))


@compiled
@pytest.mark.parametrize(
    ("height", "width", "short_side", "size"), [(32, 32, 36, 32), (50, 33, 20, 16), (9, 40, 64, 64)]
)
def test_both_ways_agree_on_the_center(
    monkeypatch: pytest.MonkeyPatch, height: int, width: int, short_side: int, size: int
) -> None:
    images = noise(30, height, width)
    kernels = central(images, short_side, size)
    use_torch(monkeypatch)
    agree(kernels, central(images, short_side, size))


@compiled
@pytest.mark.parametrize("name", PLANS)
def test_both_ways_agree_on_every_plan(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plan, images = PLANS[name], noise(60, 32, 32)
    kernels = make_views(images, plan, random_stream(2), size=28)
    use_torch(monkeypatch)
    torchs = make_views(images, plan, random_stream(2), size=28)
    for kernel, other in zip(in_units_of_brightness(kernels, plan), in_units_of_brightness(torchs, plan), strict=True):
        agree(kernel, other)


@compiled
def test_the_kernel_is_what_a_cpu_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would compare torch with itself otherwise; here rounding tells the two apart."""
    plan, images = PLANS["simsiam-cifar"], noise(60, 32, 32)
    kernels = make_views(images, plan, random_stream(2))
    use_torch(monkeypatch)
    assert not torch.equal(kernels.first, make_views(images, plan, random_stream(2)).first)


@compiled
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("n", [1, 2, 63, 128])
def test_the_number_of_threads_changes_nothing_at_all(n: int) -> None:
    def views() -> Views:
        return make_views(noise(n, 32, 32), PLANS["byol-asymmetric"], random_stream(2))

    shared = views()
    torch.set_num_threads(1)
    for one, two in zip(views(), shared, strict=True):
        assert one is not None
        assert two is not None
        assert torch.equal(one, two)


@pytest.mark.usefixtures("way")
def test_images_need_not_lie_in_memory_in_order() -> None:
    plan, images = PLANS["simsiam-cifar"], noise(12, 32, 32)
    scattered = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert not scattered.is_contiguous()
    assert torch.equal(
        make_views(scattered, plan, random_stream(2)).first, make_views(images, plan, random_stream(2)).first
    )


@compiled
def test_where_nothing_can_be_written_the_kernel_is_compiled_without_being_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from phinets.views import kernel

    def njit(**options: bool) -> Callable[[Any], Any]:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(kernel, "njit", njit)
    assert kernel.outer(len) is len


def test_without_numba_there_is_no_kernel_and_nothing_else_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "phinets.views.kernel", raising=False)
    monkeypatch.delattr("phinets.views.kernel", raising=False)
    augment.kernel.cache_clear()
    try:
        assert augment.kernel() is None
        assert make_views(noise(4, 32, 32), PLANS["simsiam-cifar"], random_stream(0)).first.isfinite().all()
    finally:
        augment.kernel.cache_clear()
