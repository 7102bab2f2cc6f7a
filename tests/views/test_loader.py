"""Views of any torch Dataset, and `make_views` by a plan's name."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, IterableDataset

import phinets
from phinets.config.errors import UserError
from phinets.config.views import PLANS
from phinets.views import make_views, random_stream

PLAN = PLANS["simsiam-cifar"]
IMAGES = torch.randint(256, (20, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


class Samples(Dataset[Any]):
    """Images in any form, in a list."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        return self.samples[index]


class Stream(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        return iter(IMAGES)


def hwc(image: Tensor) -> np.ndarray[Any, Any]:
    return image.permute(1, 2, 0).contiguous().numpy()


FORMS: dict[str, list[Any]] = {
    "tensors": list(IMAGES),
    "labeled": [(image, 3) for image in IMAGES],
    "arrays": [hwc(image) for image in IMAGES],
    "pictures": [(Image.fromarray(hwc(image)), 0) for image in IMAGES],
}


def epochs(samples: list[Any], number: int = 2, **options: Any) -> list[phinets.Views]:
    loader = phinets.data_loader(Samples(samples), "simsiam-cifar", batch_size=8, **options)
    assert len(loader) == len(samples) // 8
    return [views for _ in range(number) for views in loader]


def assert_same(actual: list[phinets.Views], expected: list[phinets.Views]) -> None:
    assert len(actual) == len(expected)
    for pair in zip(actual, expected, strict=True):
        assert all(torch.equal(one, other) for one, other in zip(*pair, strict=True))  # type: ignore[arg-type]


def test_every_form_of_image_gives_the_same_views_and_a_seed_repeats_them() -> None:
    expected = epochs(FORMS["tensors"])
    assert [view.shape for view in expected[0] if view is not None] == [(8, 3, 16, 16)] * 3
    for samples in FORMS.values():
        assert_same(epochs(samples), expected)
    assert not torch.equal(epochs(FORMS["tensors"], seed=1)[0].first, expected[0].first)
    assert not torch.equal(expected[0].first, expected[2].first)  # the second epoch


def test_neither_worker_processes_nor_the_global_generator_matter() -> None:
    expected = epochs(FORMS["labeled"], 1)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert_same(epochs(FORMS["labeled"], 1, num_workers=1), expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_each_image_is_in_an_epoch_once() -> None:
    views = epochs([torch.full((3, 8, 8), i, dtype=torch.uint8) for i in range(16)], 1)
    values = torch.cat([one.anchor[:, 0, 0, 0] for one in views if one.anchor is not None])
    assert len(values.unique()) == 16


def test_images_of_many_sizes_need_a_size_and_a_stream_has_its_own_order() -> None:
    mixed = [image[:, : 9 + i % 5] for i, image in enumerate(IMAGES)]
    assert {view.shape for views in epochs(mixed, size=12) for view in views if view is not None} == {(8, 3, 12, 12)}
    with pytest.raises(UserError, match="size="):
        epochs(mixed)
    batches = list(phinets.data_loader(Stream(), batch_size=8, anchor=None))
    assert [views.anchor for views in batches] == [None, None]


def test_what_is_no_image_is_refused() -> None:
    for sample in (torch.rand(3, 8, 8), np.zeros((8, 8)), "a.jpg", torch.zeros(1, 8, 8, dtype=torch.uint8)):
        with pytest.raises(UserError):
            epochs([sample] * 8)
    with pytest.raises(UserError, match="batch_size"):
        phinets.data_loader(Samples([]))
    with pytest.raises(UserError, match="simsiam-cifar"):
        phinets.data_loader(Samples(FORMS["tensors"]), "simsiam-cifarr", batch_size=8)


def test_views_by_a_plan_s_name_of_arrays_and_with_torch_s_own_generator() -> None:
    expected = make_views(IMAGES, PLAN, random_stream(3))
    assert_same([make_views(IMAGES.numpy(), "simsiam-cifar", random_stream(3))], [expected])
    frozen = IMAGES.numpy().copy()
    frozen.flags.writeable = False
    assert_same(
        [make_views(frozen[::-1], PLAN, random_stream(3))], [make_views(IMAGES.flip(0), PLAN, random_stream(3))]
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first, second = (make_views(IMAGES, "simsiam-cifar").first for _ in range(2))
        torch.manual_seed(1)
        assert torch.equal(make_views(IMAGES, "simsiam-cifar").first, first)
    assert not torch.equal(first, second)
    with pytest.raises(UserError, match="float64"):
        make_views(np.zeros((1, 3, 8, 8)), "simsiam-cifar")  # type: ignore[arg-type]
