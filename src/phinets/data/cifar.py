"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): 50,000 + 10,000 images of 32 × 32, all in memory."""

import hashlib
import io
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits, ImageSet, InMemory
from phinets.data.locations import DOWNLOAD_AGAIN, DatasetFolder, require_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A data set's folder, its files with their MD5 sums, and the keys inside them."""

    folder: DatasetFolder
    train: Mapping[str, str]
    test: Mapping[str, str]
    meta: tuple[str, str]
    labels: str
    names: str


CIFAR10 = Layout(
    folder=DatasetFolder(
        name="cifar10",
        folder="cifar-10-batches-py",
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        md5="c58f30108f718f92721af3b95e74349a",
    ),
    train={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    },
    test={"test_batch": "40351d587109b95175f43aff81a1287e"},
    meta=("batches.meta", "5ff9c542aee3614f3951f8cda6e48888"),
    labels="labels",
    names="label_names",
)
CIFAR100 = Layout(
    folder=DatasetFolder(
        name="cifar100",
        folder="cifar-100-python",
        url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        md5="eb9058c3a382ffc7106e4002c42a8d85",
    ),
    train={"train": "16019d7e3df5f24257cddd939b257f8d"},
    test={"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    meta=("meta", "7973b15100ade9c7d40fb424638fde48"),
    labels="fine_labels",
    names="fine_label_names",
)


def cifar10(options: DataOptions) -> DataSplits:
    """CIFAR-10: 50,000 training and 10,000 test photographs of 32 × 32 in ten classes."""
    return _load(CIFAR10, options)


def cifar100(options: DataOptions) -> DataSplits:
    """CIFAR-100: 50,000 training and 10,000 test photographs of 32 × 32 in a hundred classes."""
    return _load(CIFAR100, options)


def _load(layout: Layout, options: DataOptions) -> DataSplits:
    folder = layout.folder(options)
    names = _read(folder / layout.meta[0], layout.meta[1]).get(layout.names)
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise UserError(f"'{folder / layout.meta[0]}' does not name the classes. {DOWNLOAD_AGAIN}")

    def image_set(files: Mapping[str, str]) -> ImageSet:
        paths = {folder / name: md5 for name, md5 in files.items()}
        batches = [_batch(_read(path, md5), path, layout.labels, len(names)) for path, md5 in paths.items()]
        pixels = np.concatenate([pixels for pixels, _ in batches]).reshape(-1, 3, 32, 32)
        labels = np.concatenate([labels for _, labels in batches])
        return ImageSet(InMemory(torch.from_numpy(pixels)), torch.from_numpy(labels))

    return DataSplits(image_set(layout.train), image_set(layout.test), tuple(names))


def _batch(content: dict[str, Any], path: Path, key: str, classes: int) -> tuple[Any, Any]:
    """The pixels (n, 3072) and labels (n,) of one file, checked."""
    pixels, labels = content.get("data"), content.get(key)
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise UserError(f"'{path}' holds no bytes of shape (n, 3072) under 'data'. {DOWNLOAD_AGAIN}")
    good = isinstance(labels, list) and all(isinstance(i, int) and 0 <= i < classes for i in labels)
    if not good or len(labels or ()) != len(pixels) or not len(pixels):
        raise UserError(f"'{path}' has no {len(pixels)} labels from 0 to {classes - 1} at '{key}'. {DOWNLOAD_AGAIN}")
    return pixels, np.array(labels, dtype=np.int64)


def _read(path: Path, md5: str) -> dict[str, Any]:
    content = require_file(path).read_bytes()
    if hashlib.md5(content, usedforsecurity=False).hexdigest() != md5:
        warnings.warn(f"'{path}' is not the published file: its checksum differs.", stacklevel=2)
    return read_pickle(content, str(path))


def _to_bytes(text: str, encoding: str) -> bytes:
    """How Python 3 stores bytes in an old pickle."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in the encoding {encoding!r} is not expected")
    return text.encode("latin1")


_MAKE_ARRAY = np.empty(0).__reduce__()[0]  # numpy's own, which has moved between modules
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _MAKE_ARRAY,
    ("numpy._core.multiarray", "_reconstruct"): _MAKE_ARRAY,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _to_bytes,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which an array does not need")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to an object outside the file")


def read_pickle(content: bytes, where: str) -> dict[str, Any]:
    """The dict in a pickle of Python 2 or 3; only numpy arrays and plain values are loaded."""
    try:
        value = _Reader(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a damaged pickle may raise anything
        raise UserError(f"'{where}' can't be read: {error}. Remove it and fetch it again.") from error
    if not isinstance(value, dict):
        raise UserError(f"'{where}' holds a {type(value).__name__}, not a dict. Remove it and fetch it again.")
    return value
