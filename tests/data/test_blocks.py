"""Images on the disk: far more than the memory holds, shuffled well enough, read in an order that disks like."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.data.blocks import BLOCK, CACHED_BLOCKS, MIX_BLOCKS, BlockImages, BlockStore
from tests.data.making import noise

COUNTS = (41_500, 60_000, 30_003)


@pytest.fixture
def stored(tmp_path: Path) -> BlockImages:
    """131,503 tiny images in three files, each a number: what four bytes of it say."""
    paths, start = [], 0
    for i, n in enumerate(COUNTS):
        numbers = np.arange(start, start + n, dtype="<u4").view(np.uint8).reshape(n, 4)
        paths.append(tmp_path / f"{i}.npy")
        np.save(paths[-1], np.repeat(numbers[:, None], 3, axis=1).reshape(n, 3, 2, 2))
        start += n
    store = BlockStore(paths)
    return BlockImages(range(len(store)), store)


def numbers(images: torch.Tensor) -> np.ndarray:
    return np.ascontiguousarray(images.numpy()[:, 0].reshape(-1, 4)).view("<u4").flatten().astype(np.int64)


def order(images: BlockImages, seed: int = 0) -> np.ndarray:
    return images.order(torch.Generator().manual_seed(seed)).numpy()


def test_every_image_comes_once_in_an_epoch(stored: BlockImages) -> None:
    shuffled = torch.from_numpy(order(stored))
    seen = np.concatenate([numbers(stored.fetch(rows).images) for rows in shuffled.split(512)])
    assert (seen == shuffled.numpy()).all()
    assert (np.sort(seen) == np.arange(sum(COUNTS))).all()


def test_no_block_reaches_from_one_file_into_the_next(stored: BlockImages) -> None:
    blocks, places = stored.store.locate(np.array([41_499, 41_500, 101_499, 101_500]))
    assert blocks.tolist() == [41, 42, 101, 102]
    assert places.tolist() == [499, 0, 999, 0]


def test_neighbors_in_an_epoch_are_rarely_neighbors_on_the_disk(stored: BlockImages) -> None:
    blocks = stored.store.locate(order(stored))[0]
    together = (blocks[1:] == blocks[:-1]).mean()
    assert 0.7 / MIX_BLOCKS < together < 1.4 / MIX_BLOCKS


def test_a_batch_is_drawn_from_many_blocks_and_from_the_whole_of_each(stored: BlockImages) -> None:
    blocks, places = stored.store.locate(order(stored))
    for start in range(0, len(blocks) - 512, 512):
        assert len(np.unique(blocks[start : start + 512])) >= MIX_BLOCKS - 2
    first = places[: 20 * BLOCK]
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.02
    assert abs(first.mean() / BLOCK - 0.5) < 0.02


def test_few_blocks_are_in_use_at_any_time(stored: BlockImages) -> None:
    blocks = stored.store.locate(order(stored))[0]
    for start in range(0, len(blocks), 1000):
        assert len(np.unique(blocks[start : start + 1000])) <= MIX_BLOCKS + 3 < CACHED_BLOCKS


def test_an_epoch_reads_each_block_about_once(stored: BlockImages) -> None:
    for rows in torch.from_numpy(order(stored)).split(512):
        stored.fetch(rows)
    n_blocks = sum(-(-n // BLOCK) for n in COUNTS)
    assert (
        n_blocks <= stored.store.block.cache_info().misses <= n_blocks + 2 * MIX_BLOCKS
    )  # the last ones come first, too


def test_some_classes_of_many_are_shuffled_and_read_as_well(stored: BlockImages) -> None:
    picked = stored.subset(torch.arange(0, len(stored), 5))
    shuffled = order(picked)
    assert (np.sort(shuffled) == np.arange(len(picked))).all()
    blocks = stored.store.locate(5 * shuffled)[0]
    for start in range(0, len(blocks), 200):
        assert len(np.unique(blocks[start : start + 200])) <= MIX_BLOCKS + 3


def test_every_epoch_goes_through_the_blocks_in_another_order(stored: BlockImages) -> None:
    begun = [set(stored.store.locate(order(stored, seed)[:512])[0].tolist()) for seed in range(4)]
    assert all(len(one & other) < MIX_BLOCKS * 0.6 for i, one in enumerate(begun) for other in begun[:i])


WALK = """
import sys, torch
from pathlib import Path
from phinets.data.blocks import BlockStore, BlockImages
torch.set_num_threads(1)
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
store = BlockStore([Path(p) for p in sys.argv[1:]])
images = BlockImages(range(len(store)), store)
before = most = resident()
for rows in images.order(torch.Generator().manual_seed(0)).split(512):
    images.fetch(rows)
    most = max(most, resident())
print(len(images), most - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells the resident set in this way")
def test_the_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    """600 MB in three sparse files."""
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for path in paths:
        with path.open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (65_000, 3, 32, 32)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + 65_000 * 3072)
    done = subprocess.run([sys.executable, "-c", WALK, *map(str, paths)], capture_output=True, text=True, check=True)
    n, growth = map(int, done.stdout.split())
    assert n == 195_000
    assert growth < 200e6


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (noise(4, 8, 8, 3), "not bytes"),
        (noise(4, 3, 8, 8).astype(np.float32), "float32"),
        (np.asfortranarray(noise(4, 3, 8, 8)), "not bytes"),
        (noise(4, 3, 8), "not bytes"),
    ],
)
def test_another_array_is_refused(array: np.ndarray, says: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UserError, match=says):
        BlockStore([tmp_path / "a.npy"])


def test_files_of_different_sizes_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", noise(4, 3, 8, 8))
    np.save(tmp_path / "b.npy", noise(4, 3, 9, 9))
    with pytest.raises(UserError, match="differ in size"):
        BlockStore([tmp_path / "a.npy", tmp_path / "b.npy"])


def test_a_file_cut_short_is_refused_at_the_start_and_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, noise(40, 3, 8, 8))
    images = BlockImages(range(40), BlockStore([path]))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="is shorter"):
        images.fetch(torch.arange(2))
    with pytest.raises(UserError, match="can't be read"):
        BlockStore([path])
