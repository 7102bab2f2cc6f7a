"""Images in .npy arrays on disk, too many for memory: read in blocks, with a cache of a few blocks.

A block is a run of consecutive images of one file. Disks are slow at small random reads, so the order of an epoch uses
few blocks at a time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.data.image_sets import ImageBatch, RowImages

BLOCK = 1_000
"""Images in a block: 3 MB of 32 × 32."""
MIX_BLOCKS = 24
"""Blocks that the order of an epoch mixes at any time."""
CACHED_BLOCKS = 32
"""Blocks in memory: those being mixed, and some more for a large batch."""
STRIDE = 100_000
"""Images whose blocks `order` looks up at a time, to save memory."""


class BlockFile(NamedTuple):
    """One .npy file: the byte at which its first image begins, and its number of images."""

    path: Path
    offset: int
    images: int


class BlockStore:
    """.npy files of uint8 images (n, 3, height, width), numbered as one array."""

    def __init__(self, paths: Sequence[Path], cached_blocks: int = CACHED_BLOCKS) -> None:
        heads = [_read_head(path) for path in paths]
        self.files = tuple(file for file, _ in heads)
        self.shape = heads[0][1]
        if any(shape != self.shape for _, shape in heads):
            raise UserError(f"the images in '{paths[0].parent}' differ in size from file to file. Prepare them again.")
        self.starts = np.cumsum([0, *(file.images for file in self.files)])
        """Number of the first image of each file, and the total."""
        self.first_blocks = np.cumsum([0, *(-(-file.images // BLOCK) for file in self.files)])
        """Number of the first block of each file; no block spans two files."""
        self.block = lru_cache(maxsize=cached_blocks)(self._read)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def locate(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The block of each image, and its place in the block."""
        file = np.searchsorted(self.starts, numbers, side="right") - 1
        block, place = np.divmod(numbers - self.starts[file], BLOCK)
        return block + self.first_blocks[file], place

    def _read(self, block: int) -> NDArray[np.uint8]:
        which = int(np.searchsorted(self.first_blocks, block, side="right")) - 1
        file, start = self.files[which], (block - int(self.first_blocks[which])) * BLOCK
        n, size = min(BLOCK, file.images - start), math.prod(self.shape)
        pixels = np.fromfile(file.path, np.uint8, n * size, offset=file.offset + start * size)
        if len(pixels) < n * size:
            raise UserError(f"'{file.path}' is shorter than when it was opened. Prepare it again.")
        return pixels.reshape(n, *self.shape)


def _read_head(path: Path) -> tuple[BlockFile, tuple[int, ...]]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read: {error}. Prepare it again.") from error
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[1] != 3 or not array.flags.c_contiguous:
        raise UserError(f"'{path}' holds {array.dtype} {array.shape}, not bytes (n, 3, height, width).")
    return BlockFile(path, array.offset, len(array)), array.shape[1:]


@dataclass(frozen=True, slots=True)
class BlockImages(RowImages):
    """Images of a store; fastest where `rows` rise, so that each block is read once."""

    store: BlockStore
    sequential: bool = False
    """Whether an epoch follows the files' order instead of a random one."""

    def fetch(self, rows: Tensor) -> ImageBatch:
        blocks, places = self.store.locate(self.numbers(rows).numpy())
        pixels = np.empty((len(rows), *self.store.shape), np.uint8)
        for block in np.unique(blocks).tolist():
            here = blocks == block
            pixels[here] = self.store.block(block)[places[here]]
        return ImageBatch(torch.from_numpy(pixels), rows)

    def order(self, generator: torch.Generator) -> Tensor:
        """Blocks in random order, each mixed with MIX_BLOCKS − 1 others; or 0, 1, 2, … if sequential.

        The image's moment is (place of its block + MIX_BLOCKS · u) mod blocks, u uniform; images come by their moments.
        At any time MIX_BLOCKS blocks are in use, also at both ends; with no more than MIX_BLOCKS blocks in all, every
        permutation is equally likely.
        """
        if self.sequential:
            return torch.arange(len(self))
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
        """The blocks of the next STRIDE images."""
        rows = torch.arange(start, min(start + STRIDE, len(self)))
        return self.store.locate(self.numbers(rows).numpy())[0]
