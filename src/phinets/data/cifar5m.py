"""CIFAR-5m (Nakkiran et al. 2021): six million generated images of 32 × 32 in CIFAR-10's classes, read from the disk.

An .npz can't be read in parts, so each part is converted once into two .npy files (`prepare`).
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.blocks import BlockImages, BlockStore
from phinets.data.image_sets import DataSplits, ImageSet
from phinets.data.locations import DatasetFolder
from phinets.data.npz import NpzArray, open_array, open_npz, read_labels, require_pictures

PARTS = range(6)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BANK, TEST = 50_000, 10_000
CHUNK = 1_000
URL = "https://storage.googleapis.com/gresearch/cifar5m"

FOLDER = DatasetFolder(
    name="cifar5m",
    folder="cifar5m",
    cure=(
        f"Fetch part0.npz to part5.npz (3 GB each), e.g. `curl -O {URL}/part0.npz`, into a folder DIR, then say "
        "`phinets data prepare cifar5m --root {root} --from DIR`."
    ),
)


def cifar5m(options: DataOptions) -> DataSplits:
    """CIFAR-5m: five million generated images of ten things, 32 × 32, streamed from the disk.

    Learned from: parts 0 to 4. Asked about: the first 10,000 of part 5. Known: the first 50,000 of part 0.
    """
    folder = FOLDER(options)
    missing = [f"part{i}" for i in PARTS if not prepared_images(folder, i)]
    if missing:
        raise UserError(f"{', '.join(missing)} of cifar5m can't be found in '{folder}'. {FOLDER.advice(options.root)}")
    store = BlockStore([images_path(folder, i) for i in PARTS])
    labels = torch.from_numpy(np.concatenate([np.load(labels_path(folder, i)) for i in PARTS]).astype(np.int64))
    last = int(store.starts[-2])

    def some(numbers: range) -> ImageSet:
        return ImageSet(BlockImages(store, numbers), labels[numbers.start : numbers.stop])

    train, bank = some(range(last)), some(range(min(BANK, store.files[0].images)))
    return DataSplits(train, some(range(last, min(last + TEST, len(store)))), CLASSES, bank=bank)


def images_path(folder: Path, part: int) -> Path:
    """Where the images of a part lie: uint8 (n, 3, 32, 32)."""
    return folder / f"part{part}-images.npy"


def labels_path(folder: Path, part: int) -> Path:
    """Where the labels of a part lie: uint8 (n,)."""
    return folder / f"part{part}-labels.npy"


class PreparedFile(NamedTuple):
    """What became of one part."""

    part: int
    images: int
    state: str
    """converted, already there, or not found."""


def prepare(source: Path, target: Path) -> Iterator[PreparedFile]:
    """Convert the parts of `source`, those that are there and not yet done, one after the other."""
    if not any((source / f"part{i}.npz").is_file() or prepared_images(target, i) for i in PARTS):
        raise UserError(f"'{source}' holds none of part0.npz to part5.npz. {FOLDER.advice(str(target.parent))}")
    for i in PARTS:
        n = prepared_images(target, i)
        if n:
            yield PreparedFile(i, n, "already there")
        elif (source / f"part{i}.npz").is_file():
            yield PreparedFile(i, convert(source / f"part{i}.npz", target, i), "converted")
        else:
            yield PreparedFile(i, 0, "not found")


def prepared_images(folder: Path, part: int) -> int:
    """How many images of a part are ready; 0 where it is not, or not as it should be."""
    try:
        images = np.load(images_path(folder, part), mmap_mode="r", allow_pickle=False)
        labels = np.load(labels_path(folder, part), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return 0
    kinds = images.dtype == labels.dtype == np.uint8
    return len(images) if kinds and images.shape == (len(labels), 3, 32, 32) else 0


def convert(path: Path, target: Path, part: int) -> int:
    """One part from .npz to .npy in little memory, its checksums compared; all of it or nothing."""
    with open_npz(path) as archive:
        target.mkdir(parents=True, exist_ok=True)
        with open_array(archive, "X") as images:
            require_pictures(images, path, side=32)
            n = images.shape[0]
            _require_space(target, n * 3072)
            labels = read_labels(archive, "Y", n)
            if labels.max() >= len(CLASSES):
                raise UserError(f"'{path}' holds the label {labels.max()}, but there are {len(CLASSES)} classes.")
            with _aside(labels_path(target, part)) as file:
                np.save(file, labels.astype(np.uint8))
            with _aside(images_path(target, part)) as file:
                _write(file, images)
    return n


def _write(file: BinaryIO, images: NpzArray) -> None:
    shape = (images.shape[0], 3, 32, 32)
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    for chunk in images.chunks(CHUNK):
        file.write(_channels_first(chunk))


def _channels_first(chunk: NDArray[np.uint8]) -> bytes:
    return np.ascontiguousarray(chunk.transpose(0, 3, 1, 2)).tobytes()


@contextmanager
def _aside(path: Path) -> Iterator[BinaryIO]:
    """A file that takes its place when it is whole, and is gone when it is not."""
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"'{folder}' has {free / 2**30:.1f} GB free, but this part takes {needed / 2**30:.1f}. Free some, or "
            "choose another --root; what is done stays done."
        )
