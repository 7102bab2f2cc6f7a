"""Images in arrays on the disk, far too many for the memory: read a block at a time, few blocks kept.

A block is a run of images that lie side by side in one file. Reading 3 kB here and there is what disks are worst at,
so the order of an epoch lets few blocks be in use at any time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.image_sets import ImageBatch

BLOCK = 1_000
"""Images in a block: 3 MB of 32 × 32."""
MIX_BLOCKS = 24
"""Blocks that an epoch's order mixes at any time."""
CACHED_BLOCKS = 32
"""Blocks that are kept in memory: those being mixed, and some more for a large batch that reaches ahead."""
STRIDE = 100_000


class BlockFile(NamedTuple):
    """One file."""

    path: Path
    offset: int
    """Where its first image begins, in bytes."""
    images: int


class BlockStore:
    """Files of images (n, 3, height, width), uint8 in .npy, numbered through as if they were one."""

    def __init__(self, paths: Sequence[Path], kept: int = CACHED_BLOCKS) -> None:
        heads = [_read_head(path) for path in paths]
        self.files = tuple(file for file, _ in heads)
        self.shape = heads[0][1]
        if any(shape != self.shape for _, shape in heads):
            raise UserError(f"the images in '{paths[0].parent}' differ in size from file to file. Prepare them anew.")
        self.starts = np.cumsum([0, *(file.images for file in self.files)])
        """Number of the first image of each file; the last entry is the number of all."""
        self.first_blocks = np.cumsum([0, *(-(-file.images // BLOCK) for file in self.files)])
        """Number of the first block of each file; no block reaches over the end of one."""
        self.block = lru_cache(maxsize=kept)(self._read)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def locate(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The block of each image, and its place in there."""
        file = np.searchsorted(self.starts, numbers, side="right") - 1
        block, place = np.divmod(numbers - self.starts[file], BLOCK)
        return block + self.first_blocks[file], place

    def _read(self, block: int) -> NDArray[np.uint8]:
        which = int(np.searchsorted(self.first_blocks, block, side="right")) - 1
        file, start = self.files[which], (block - int(self.first_blocks[which])) * BLOCK
        n, size = min(BLOCK, file.images - start), math.prod(self.shape)
        pixels = np.fromfile(file.path, np.uint8, n * size, offset=file.offset + start * size)
        if len(pixels) < n * size:
            raise UserError(f"'{file.path}' was cut short while it was read. Prepare it anew.")
        return pixels.reshape(n, *self.shape)


def _read_head(path: Path) -> tuple[BlockFile, tuple[int, ...]]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read: {error}. Prepare it anew.") from error
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[1] != 3 or not array.flags.c_contiguous:
        raise UserError(f"'{path}' holds {array.dtype} {array.shape}, not bytes (n, 3, height, width).")
    return BlockFile(path, array.offset, len(array)), array.shape[1:]


@dataclass(frozen=True, slots=True)
class BlockImages:
    """Some of the images on a shelf."""

    store: BlockStore
    rows: range | Tensor
    """Their numbers on the shelf; best in rising order, for a block to be read once."""

    def __len__(self) -> int:
        return len(self.rows)

    def fetch(self, rows: Tensor) -> ImageBatch:
        """The images of these numbers."""
        blocks, places = self.store.locate(self._numbers(rows))
        pixels = np.empty((len(rows), *self.store.shape), np.uint8)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            pixels[here] = self.store.block(block)[places[here]]
        return ImageBatch(torch.from_numpy(pixels), rows)

    def head(self, n: int | None) -> Self:
        """The first n only."""
        return replace(self, rows=self.rows[:n])

    def subset(self, rows: Tensor) -> Self:
        """Those of these numbers only."""
        return replace(self, rows=torch.from_numpy(self._numbers(rows)))

    def order(self, generator: torch.Generator) -> Tensor:
        """Blocks one after the other in random order, each spread over a random part of the time of MIX_BLOCKS blocks.

        The image's moment is (place of its block + MIX_BLOCKS · u) mod blocks, u uniform; images come by their moments. At
        any time MIX_BLOCKS blocks are in use, the first and the last ones included; with no more than MIX_BLOCKS blocks in all,
        every permutation is equally likely.
        """
        n_blocks = int(self.store.first_blocks[-1])
        used = np.zeros(n_blocks, bool)
        for start in range(0, len(self), STRIDE):
            used[self._blocks(start)] = True
        places = np.zeros(n_blocks, np.float32)
        places[used] = torch.randperm(int(used.sum()), generator=generator).numpy()
        moments = torch.rand(len(self), generator=generator).numpy()
        moments *= min(MIX_BLOCKS, used.sum())
        for start in range(0, len(self), STRIDE):
            moments[start : start + STRIDE] += places[self._blocks(start)]
        np.remainder(moments, np.float32(used.sum()), out=moments)
        return torch.from_numpy(np.argsort(moments, kind="stable"))

    def _blocks(self, start: int) -> NDArray[np.int64]:
        """The blocks of the next STRIDE images: a few at a time, for the sake of the memory."""
        return self.store.locate(self._numbers(torch.arange(start, min(start + STRIDE, len(self)))))[0]

    def _numbers(self, rows: Tensor) -> NDArray[np.int64]:
        found = rows + self.rows.start if isinstance(self.rows, range) else self.rows[rows]
        return np.asarray(found.numpy(), np.int64)
