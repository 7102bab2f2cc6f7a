"""STL-10 (Coates et al. 2011): 5,000 labelled and 100,000 unlabelled images of 96 × 96, and 8,000 to be asked about."""

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits, ImageSet, InMemory
from phinets.data.locations import Archive, DatasetFolder, file_in

SIDE = 96
BYTES = 3 * SIDE * SIDE
AGAIN = "Remove its folder and fetch it again with --download."
PUBLISHED_COUNTS = {"train": 5_000, "unlabeled": 100_000, "test": 8_000}
CHUNK = 1_000
CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")

FOLDER = DatasetFolder(
    name="stl10",
    folder="stl10_binary",
    archive=Archive(
        url="http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz", md5="91f7769df0f17e558f3565bffb0c7dfb"
    ),
)


def stl10(options: DataOptions) -> DataSplits:
    """STL-10: 105,000 photographs of 96 × 96, most without a label; 5,000 labelled to know, 8,000 to be asked about.

    Learned from: the labelled ones, then the unlabelled ones (label −1), as in the paper's code.
    """
    folder = FOLDER(options)
    labels, asked = _labels(folder, "train"), _labels(folder, "test")
    wanted = None if options.train_images is None else max(0, options.train_images - len(labels))
    pixels = _pixels(folder, ("train", "unlabeled"), wanted)
    known, test = InMemory(pixels).head(len(labels)), InMemory(_pixels(folder, ("test",)))
    for name, images, given in (("train", known, labels), ("test", test, asked)):
        if len(images) != len(given):
            raise UserError(f"'{folder}' holds {len(images)} {name} images with {len(given)} labels. {AGAIN}")
    every = torch.cat([labels, torch.full((len(pixels) - len(labels),), -1)])
    return DataSplits(ImageSet(InMemory(pixels), every), ImageSet(test, asked), CLASSES, bank=ImageSet(known, labels))


def _labels(folder: Path, part: str) -> Tensor:
    path = file_in(folder, f"{part}_y.bin", AGAIN)
    labels = np.fromfile(path, dtype=np.uint8).astype(np.int64) - 1  # the file counts from 1
    if not len(labels) or labels.min() < 0 or labels.max() >= len(CLASSES):
        raise UserError(f"'{path}' holds no labels from 1 to {len(CLASSES)}. {AGAIN}")
    return torch.from_numpy(labels)


def _pixels(folder: Path, parts: tuple[str, ...], last: int | None = None) -> Tensor:
    """The images of some files in one tensor (n, 3, 96, 96); of the last file at most so many.

    A file keeps each channel column by column. It is turned a chunk at a time, so there is never a second copy.
    """
    paths = [file_in(folder, f"{part}_X.bin", AGAIN) for part in parts]
    counts = [_count(path, PUBLISHED_COUNTS[part]) for path, part in zip(paths, parts, strict=True)]
    counts[-1] = counts[-1] if last is None else min(last, counts[-1])
    pixels = torch.empty((sum(counts), 3, SIDE, SIDE), dtype=torch.uint8)
    done = 0
    for path, n in zip(paths, counts, strict=True):
        for start in range(0, n, CHUNK):
            rows = min(CHUNK, n - start)
            turned = np.fromfile(path, np.uint8, rows * BYTES, offset=start * BYTES).reshape(rows, 3, SIDE, SIDE)
            pixels[done : done + rows] = torch.from_numpy(turned).transpose(2, 3)
            done += rows
    return pixels


def _count(path: Path, published: int) -> int:
    n, rest = divmod(path.stat().st_size, BYTES)
    if rest or not n:
        raise UserError(f"'{path}' has {path.stat().st_size} bytes, no multiple of {BYTES}: it is cut short. {AGAIN}")
    if n != published:
        warnings.warn(f"'{path}' is not the published file: it holds {n} images, not {published}.", stacklevel=2)
    return n
