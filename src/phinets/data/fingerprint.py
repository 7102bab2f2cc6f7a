"""Which data a run has seen, in few words, so that a resumed one notices when they have changed."""

import os
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from torch import Tensor

from phinets.data.blocks import BlockImages
from phinets.data.files import Files
from phinets.data.image_sets import DataSplits, Images, ImageSet, InMemory
from phinets.data.shapes.dataset import ShapesStream


def fingerprint(split: DataSplits) -> dict[str, str]:
    """For each part the number of its images and a check sum: of the labels, and of the pixels in memory, of the paths
    of files, of which images of arrays on the disk were picked, or of the world and the size of pictures that are drawn
    as they arrive.

    The contents of files and of arrays on the disk are not read for it. Paths count from the folder that all files of a
    part have in common, so that data may be moved as a whole.
    """
    return {
        name: f"{len(split)} images, {_of_labels(split, _checked(split.images)):08x}"
        for name, split in split.splits.items()
    }


def set_fingerprint(split: ImageSet) -> str:
    """The same for one set, more sharply: files by their whole paths, sizes and times."""
    images = split.images
    of_images = _states(images) if isinstance(images, Files) else _checked(images)
    return f"{len(split)} images, {of_images:08x}, {_of_labels(split):08x}"


def _of_labels(split: ImageSet, before: int = 0) -> int:
    """A check sum that goes on from another one; the same one where nobody said a label."""
    return before if split.labels is None else crc32(split.labels.contiguous().numpy().data, before)


def _states(files: Files) -> int:
    """A check sum over what the system knows of files without reading them."""
    found = 0
    for path in files.paths:
        try:
            state = os.stat(path)
            known = f"{state.st_size} {state.st_mtime_ns}"
        except OSError:
            known = "gone"
        found = crc32(os.fsencode(path) + f"\0{known}\0".encode(), found)
    return found


def _checked(images: Images) -> int:
    if isinstance(images, InMemory):
        return crc32(images.pixels.contiguous().numpy().data)
    if isinstance(images, Files):
        return crc32(os.fsencode("\0".join(_from_common_folder(images.paths))))
    if isinstance(images, ShapesStream):
        return crc32(f"{images.shapes_seed} {images.size}".encode(), _rows(images.rows))
    return _rows(images.rows) if isinstance(images, BlockImages) else 0


def _from_common_folder(paths: Sequence[str | Path]) -> list[str]:
    """The paths as they are told from the innermost folder that holds them all."""
    parted = [os.path.split(os.path.abspath(path)) for path in paths]
    folders = {folder for folder, _ in parted}
    common = os.path.commonpath(folders) if folders else ""
    inside = {folder: os.path.relpath(folder, common) for folder in folders}
    return [os.path.join(inside[folder], name) for folder, name in parted]


def _rows(rows: range | Tensor) -> int:
    """Which ones of all were picked; 0 where they lie side by side."""
    return 0 if isinstance(rows, range) else crc32(rows.contiguous().numpy().data)
