"""Images by number: the same laws in memory, in files, and on the disk."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from phinets.data.blocks import BLOCK, BlockImages, BlockStore
from phinets.data.files import Files
from phinets.data.image_sets import Images, InMemory, batches
from tests.data.making import noise

N = 60
KINDS = ("memory", "files", "store", "last rows of a store", "subset of a store")


@pytest.fixture(params=KINDS)
def images(request: pytest.FixtureRequest, tmp_path: Path) -> Images:
    pixels = noise(N, 3, 8, 8)
    if request.param == "memory":
        return InMemory(torch.from_numpy(pixels))
    if request.param == "files":
        paths = [str(tmp_path / f"{i}.png") for i in range(N)]
        for path, image in zip(paths, pixels, strict=True):
            Image.fromarray(image.transpose(1, 2, 0)).save(path)
        return Files(paths, 8)
    other = noise(7, 3, 8, 8, seed=1)
    parts = {"store": [pixels], "last rows of a store": [other, pixels[:40], pixels[40:]]}.get(
        request.param, [other, pixels]
    )
    arrays = [tmp_path / f"{i}.npy" for i in range(len(parts))]
    for array, part in zip(arrays, parts, strict=True):
        np.save(array, part)
    store = BlockStore(arrays)
    if request.param == "subset of a store":
        return BlockImages(range(len(store)), store).subset(torch.arange(7, 7 + N))
    return BlockImages(range(len(store) - N, len(store)), store)


def test_they_are_what_was_put_there(images: Images) -> None:
    whole = torch.cat([taken.images for taken in batches(images, 16)])
    assert len(images) == N
    assert (whole.numpy() == noise(N, 3, 8, 8)).all()


def test_any_numbers_in_any_order_even_twice(images: Images) -> None:
    rows = torch.tensor([59, 0, 7, 7, 41, 39, 40])
    taken = images.fetch(rows)
    assert (taken.images.numpy() == noise(N, 3, 8, 8)[rows.numpy()]).all()
    assert taken.images.dtype == torch.uint8
    assert (taken.rows == rows).all()
    assert taken.bad == ()


def test_the_head_is_the_first_ones(images: Images) -> None:
    assert len(images.head(9)) == 9
    assert len(images.head(None)) == len(images.head(10_000)) == N
    assert (images.head(9).fetch(torch.tensor([8])).images == images.fetch(torch.tensor([8])).images).all()


def test_picked_ones_count_anew(images: Images) -> None:
    rows = torch.tensor([50, 3, 12, 44])
    picked = images.subset(rows)
    assert len(picked) == 4
    assert (picked.fetch(torch.arange(4)).images == images.fetch(rows).images).all()
    assert (
        picked.subset(torch.tensor([2, 0])).fetch(torch.arange(2)).images == images.fetch(rows[[2, 0]]).images
    ).all()


def test_an_order_is_a_permutation_that_the_generator_alone_decides(images: Images) -> None:
    one, same, other = (torch.as_tensor(images.order(torch.Generator().manual_seed(seed))) for seed in (1, 1, 2))
    assert one.dtype == torch.int64
    assert (one.sort().values == torch.arange(N)).all()
    assert (one == same).all()
    assert (one != other).any()
    assert (one != torch.arange(N)).any()


def test_of_few_images_every_order_is_as_likely_as_any_other(images: Images) -> None:
    assert N < BLOCK
    few, generator = images.head(3), torch.Generator().manual_seed(0)
    seen = torch.stack([torch.as_tensor(few.order(generator)) for _ in range(1200)]) @ torch.tensor([9, 3, 1])
    counts = torch.bincount(seen)
    counts = counts[counts > 0]
    assert len(counts) == 6
    assert ((counts - 200) ** 2 / 200).sum() < 20.5  # chi-square, 5 degrees of freedom, p = 0.001
