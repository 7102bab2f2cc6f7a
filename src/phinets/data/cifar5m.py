"""CIFAR-5m (Nakkiran et al. 2021): six million generated images of 32 × 32 in CIFAR-10's classes, read from disk.

Images of an .npz can't be read at random, so each of its files is converted once into two .npy files (`prepare`).
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.blocks import BlockImages, BlockStore
from phinets.data.image_sets import DataSplits, ImageSet
from phinets.data.locations import DatasetFolder
from phinets.data.npz import NpzArray, open_array, open_npz, read_labels, require_pictures
from phinets.runtime.files import atomic_write

FILES = range(6)
"""Numbers of the published files part0.npz to part5.npz."""
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BANK, TEST = 50_000, 10_000
CHUNK = 1_000
URL = "https://storage.googleapis.com/gresearch/cifar5m"

FOLDER = DatasetFolder(
    name="cifar5m",
    folder="cifar5m",
    cure=(
        f"Fetch part0.npz to part5.npz (3 GB each), e.g. `curl -O {URL}/part0.npz`, into a folder DIR, then run "
        "`phinets data prepare cifar5m --root {root} --from DIR`."
    ),
)


def cifar5m(options: DataOptions) -> DataSplits:
    """CIFAR-5m: five million generated images of 32 × 32 in ten classes, streamed from disk.

    Training images: files 0 to 4. Test images: the first 10,000 of file 5. Bank: the first 50,000 of file 0.
    """
    folder = FOLDER(options)
    missing = [f"part{i}" for i in FILES if not prepared_images(folder, i)]
    if missing:
        raise UserError(f"{', '.join(missing)} of cifar5m can't be found in '{folder}'. {FOLDER.advice(options.root)}")
    store = BlockStore([images_path(folder, i) for i in FILES])
    labels = torch.from_numpy(np.concatenate([np.load(labels_path(folder, i)) for i in FILES]).astype(np.int64))
    last = int(store.starts[-2])

    def image_set(rows: range) -> ImageSet:
        return ImageSet(BlockImages(rows, store), labels[rows.start : rows.stop])

    test, bank = range(last, min(last + TEST, len(store))), range(min(BANK, store.files[0].images))
    return DataSplits(image_set(range(last)), image_set(test), CLASSES, bank=image_set(bank))


def images_path(folder: Path, number: int) -> Path:
    """The converted images of a file: uint8 (n, 3, 32, 32)."""
    return folder / f"part{number}-images.npy"


def labels_path(folder: Path, number: int) -> Path:
    """The converted labels of a file: uint8 (n,)."""
    return folder / f"part{number}-labels.npy"


class PreparedFile(NamedTuple):
    """The result of converting one file."""

    name: str
    images: int
    state: str
    """converted, already there, or not found."""


def prepare(source: Path, target: Path) -> Iterator[PreparedFile]:
    """Convert the files of `source` that are not yet converted, one after the other."""
    archives = {i: source / f"part{i}.npz" for i in FILES}
    if not any(path.is_file() or prepared_images(target, i) for i, path in archives.items()):
        raise UserError(f"'{source}' holds none of part0.npz to part5.npz. {FOLDER.advice(str(target.parent))}")
    for i, path in archives.items():
        n, state = prepared_images(target, i), "already there"
        if not n:
            n, state = (convert(path, target, i), "converted") if path.is_file() else (0, "not found")
        yield PreparedFile(path.stem, n, state)


def prepared_images(folder: Path, number: int) -> int:
    """The number of converted images of a file; 0 where there are none or they are damaged."""
    try:
        images = np.load(images_path(folder, number), mmap_mode="r", allow_pickle=False)
        labels = np.load(labels_path(folder, number), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError):
        return 0
    kinds = images.dtype == labels.dtype == np.uint8
    return len(images) if kinds and images.shape == (len(labels), 3, 32, 32) else 0


def convert(path: Path, target: Path, number: int) -> int:
    """Convert one .npz in little memory, with its checksums compared; all of it or nothing."""
    with open_npz(path) as archive:
        target.mkdir(parents=True, exist_ok=True)
        with open_array(archive, "X") as images:
            require_pictures(images, path, side=32)
            n = images.shape[0]
            _require_space(target, n * 3072)
            labels = read_labels(archive, "Y", n)
            if labels.max() >= len(CLASSES):
                raise UserError(f"'{path}' holds the label {labels.max()}, but there are {len(CLASSES)} classes.")
            atomic_write(labels_path(target, number), lambda file: np.save(file, labels.astype(np.uint8)))
            atomic_write(images_path(target, number), lambda file: _write(file, images))
    return n


def _write(file: BinaryIO, images: NpzArray) -> None:
    shape = (images.shape[0], 3, 32, 32)
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    for chunk in images.chunks(CHUNK):
        file.write(np.ascontiguousarray(chunk.transpose(0, 3, 1, 2)).tobytes())


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"'{folder}' has {free / 2**30:.1f} GB free, but this file takes {needed / 2**30:.1f}. Free some, or use "
            "another --root; converted files stay."
        )
