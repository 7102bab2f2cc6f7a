"""Fingerprints of data sets, so that a resumed run notices changed data."""

import os
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from phinets.data.files import Files
from phinets.data.image_sets import DataSplits, Images, ImageSet, InMemory, RowImages
from phinets.data.shapes.dataset import ShapesStream


def fingerprint(split: DataSplits) -> dict[str, str]:
    """For each split its number of images and a checksum of labels and images.

    Images in memory count by their pixels; files by size, time of change and path below their common folder (so data
    may be moved as a whole); images on disk by their selected rows; generated ones by seed, size and rows.
    """
    return {name: set_fingerprint(image_set, whole_paths=False) for name, image_set in split.splits.items()}


def set_fingerprint(image_set: ImageSet, whole_paths: bool = True) -> str:
    """The same for one set, with whole paths of files."""
    images, labels = image_set.images, image_set.labels
    counts = f"{len(image_set)} images, {_image_checksum(images, whole_paths):08x}"
    counts += f", labels {0 if labels is None else crc32(labels.contiguous().numpy().data):08x}"
    return counts + (f", sizes and times of files {_state_checksum(images):08x}" if isinstance(images, Files) else "")


def _state_checksum(files: Files) -> int:
    checksum = 0
    for path in files.paths:
        try:
            stat = os.stat(path)
            state = f"{stat.st_size} {stat.st_mtime_ns}"
        except OSError:
            state = "missing"
        checksum = crc32(f"{state}\0".encode(), checksum)
    return checksum


def _image_checksum(images: Images, whole_paths: bool) -> int:
    if isinstance(images, InMemory):
        return crc32(images.pixels.contiguous().numpy().data)
    if isinstance(images, Files):
        paths = [os.fspath(path) for path in images.paths] if whole_paths else _from_common_folder(images.paths)
        return crc32(os.fsencode("\0".join(paths)))
    if not isinstance(images, RowImages):
        return 0
    checksum = 0 if isinstance(images.rows, range) else crc32(images.rows.contiguous().numpy().data)
    if isinstance(images, ShapesStream):
        return crc32(f"{images.shapes_seed} {images.size}".encode(), checksum)
    return checksum


def _from_common_folder(paths: Sequence[str | Path]) -> list[str]:
    """The paths relative to the innermost folder that holds them all."""
    pairs = [os.path.split(os.path.abspath(path)) for path in paths]
    folders = {folder for folder, _ in pairs}
    common = os.path.commonpath(folders) if folders else ""
    inside = {folder: os.path.relpath(folder, common) for folder in folders}
    return [os.path.join(inside[folder], name) for folder, name in pairs]
