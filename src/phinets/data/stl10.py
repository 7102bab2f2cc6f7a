"""STL-10 (Coates et al. 2011): 5,000 labeled, 100,000 unlabeled and 8,000 test images of 96 × 96."""

import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits, ImageSet, InMemory
from phinets.data.locations import DOWNLOAD_AGAIN, DatasetFolder, require_file

SIDE = 96
BYTES = 3 * SIDE * SIDE
PUBLISHED_COUNTS = {"train": 5_000, "unlabeled": 100_000, "test": 8_000}
CHUNK = 1_000
CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")

FOLDER = DatasetFolder(
    name="stl10",
    folder="stl10_binary",
    url="http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
    md5="91f7769df0f17e558f3565bffb0c7dfb",
)


def stl10(options: DataOptions) -> DataSplits:
    """STL-10: 105,000 training photographs of 96 × 96, of which 5,000 have a label, and 8,000 test photographs.

    The training images are the labeled, then the unlabeled ones (label −1), as in the paper's code.
    """
    folder = FOLDER(options)
    labels, test_labels = _labels(folder, "train"), _labels(folder, "test")
    limit = None if options.train_images is None else max(0, options.train_images - len(labels))
    pixels = _pixels(folder, ("train", "unlabeled"), limit)
    bank, test = InMemory(pixels).head(len(labels)), InMemory(_pixels(folder, ("test",)))
    for name, n_images, n_labels in (("train", len(bank), len(labels)), ("test", len(test), len(test_labels))):
        if n_images != n_labels:
            raise UserError(f"'{folder}' holds {n_images} {name} images with {n_labels} labels. {DOWNLOAD_AGAIN}")
    train_labels = torch.cat([labels, torch.full((len(pixels) - len(labels),), -1)])
    train = ImageSet(InMemory(pixels), train_labels)
    return DataSplits(train, ImageSet(test, test_labels), CLASSES, bank=ImageSet(bank, labels))


def _labels(folder: Path, split: str) -> Tensor:
    path = require_file(folder / f"{split}_y.bin")
    labels = np.fromfile(path, dtype=np.uint8).astype(np.int64) - 1  # the file counts from 1
    if not len(labels) or labels.min() < 0 or labels.max() >= len(CLASSES):
        raise UserError(f"'{path}' holds no labels from 1 to {len(CLASSES)}. {DOWNLOAD_AGAIN}")
    return torch.from_numpy(labels)


def _pixels(folder: Path, splits: tuple[str, ...], limit: int | None = None) -> Tensor:
    """The images of these files as one tensor (n, 3, 96, 96); at most `limit` of the last file.

    A file stores each channel column by column. It is transposed in chunks, so that no second copy is needed.
    """
    paths = [require_file(folder / f"{split}_X.bin") for split in splits]
    counts = [_count(path, PUBLISHED_COUNTS[split]) for path, split in zip(paths, splits, strict=True)]
    counts[-1] = counts[-1] if limit is None else min(limit, counts[-1])
    pixels = torch.empty((sum(counts), 3, SIDE, SIDE), dtype=torch.uint8)
    done = 0
    for path, n in zip(paths, counts, strict=True):
        for start in range(0, n, CHUNK):
            rows = min(CHUNK, n - start)
            columns = np.fromfile(path, np.uint8, rows * BYTES, offset=start * BYTES).reshape(rows, 3, SIDE, SIDE)
            pixels[done : done + rows] = torch.from_numpy(columns).transpose(2, 3)
            done += rows
    return pixels


def _count(path: Path, published: int) -> int:
    n, rest = divmod(path.stat().st_size, BYTES)
    if rest or not n:
        raise UserError(f"'{path}' is cut short: its size is no multiple of {BYTES} bytes. {DOWNLOAD_AGAIN}")
    if n != published:
        warnings.warn(f"'{path}' is not the published file: it holds {n} images, not {published}.", stacklevel=2)
    return n
