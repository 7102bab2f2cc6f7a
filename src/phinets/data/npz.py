"""Images in one .npz file."""

import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits, ImageSet, InMemory, stratified_rows

CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class NpzArray:
    """One array of the file; only its header has been read."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: IO[bytes]

    def chunks(self, rows: int) -> Iterator[NDArray[Any]]:
        """The array, `rows` rows at a time. Reading the last one compares the checksum of the whole."""
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        for start in range(0, self.shape[0], rows):
            n = min(rows, self.shape[0] - start)
            content = self.stream.read(n * size)
            if len(content) < n * size:
                raise EOFError(f"{self.name} ends in row {start + len(content) // size} of {self.shape[0]}")
            yield np.frombuffer(content, self.dtype).reshape(n, *self.shape[1:])
        if self.stream.read(1):  # zipfile compares the checksum at the end of the stream
            raise EOFError(f"{self.name} is longer than its header says")


@contextmanager
def open_npz(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; any error in reading it becomes a UserError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"'{path}' can't be read or converted: {error.strerror or error}.") from error
    except Exception as error:  # zlib, zipfile and numpy each raise their own kinds for a damaged file
        raise UserError(f"'{path}' is not a complete .npz file: {error}. Fetch it again.") from error


@contextmanager
def open_array(archive: zipfile.ZipFile, name: str) -> Iterator[NpzArray]:
    """The array called `name`, ready to be read in chunks."""
    names = [entry.removesuffix(".npy") for entry in archive.namelist()]
    if name not in names:
        raise UserError(f"'{archive.filename}' has no array '{name}', only: {', '.join(names) or 'nothing'}.")
    with archive.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_column, dtype = read(stream)
        if by_column and len(shape) > 1:
            raise UserError(f"'{archive.filename}' holds '{name}' column by column. Save np.ascontiguousarray({name}).")
        if dtype.hasobject or not shape:
            raise UserError(f"'{archive.filename}' holds no plain array under '{name}', but {dtype} {shape}.")
        yield NpzArray(name, shape, dtype, stream)


def require_pictures(array: NpzArray, where: Path, side: int | None = None) -> None:
    """Refuse an array that is not uint8 (n, height, width, 3)."""
    shape, edge = array.shape, side or "size"
    right_size = side is None or shape[1:3] == (side, side)
    if array.dtype == np.uint8 and len(shape) == 4 and shape[3] == 3 and 0 not in shape and right_size:
        return
    cure = " Multiply values from 0 to 1 by 255 and round them." if array.dtype.kind == "f" else ""
    raise UserError(
        f"'{where}' holds {array.dtype} {shape} under '{array.name}', not uint8 (n, {edge}, {edge}, 3).{cure}"
    )


def read_labels(archive: zipfile.ZipFile, name: str, n: int) -> NDArray[np.int64]:
    """The n labels under a name."""
    with open_array(archive, name) as array:
        if array.dtype.kind not in "iu" or array.shape not in ((n,), (n, 1)):
            raise UserError(
                f"'{archive.filename}' holds {array.dtype} {array.shape} under '{name}', not whole numbers ({n},)."
            )
        labels = np.concatenate(list(array.chunks(100_000))).reshape(n)
    for label in (labels.min(), labels.max()):
        if not 0 <= label < 2**63:
            raise UserError(f"'{archive.filename}' holds the label {label}, but labels are 0 to 2⁶³ − 1.")
    return labels.astype(np.int64)


def npz(path: str, options: DataOptions) -> DataSplits:
    """A file of arrays X (uint8, n × height × width × 3) and, with labels, Y (n whole numbers from 0).

    The labels that occur are the classes. A tenth of the images, with labels a tenth of each class, are test images.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no file '{file}'. Use --data npz:PATH, or --data shapes, which needs no files.")
    with open_npz(file) as archive:
        with open_array(archive, "X") as array:
            require_pictures(array, file)
            pixels = _pixels(array, file)
        labels: Tensor | None = None
        classes: tuple[str, ...] = ()
        if "Y.npy" in archive.namelist():
            values, labels = torch.from_numpy(read_labels(archive, "Y", len(pixels))).unique(return_inverse=True)
            classes = tuple(map(str, values.tolist()))
    if len(pixels) < 2:
        raise UserError(f"'{file}' holds one image, but training and test need at least one each.")
    every = ImageSet(InMemory(pixels, torch.arange(len(pixels))), labels)
    train, test = (every.subset(rows) for rows in stratified_rows(len(pixels), labels))
    return DataSplits(train, test, classes)


def _pixels(array: NpzArray, file: Path) -> Tensor:
    """All images, channels first; refuses an array that does not fit into memory before reading it."""
    n, height, width, _ = array.shape
    needed, memory = 2 * n * height * width * 3, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        raise UserError(f"'{file}' needs {needed / 2**30:.1f} GB of memory, but there are {memory / 2**30:.1f}.")
    pixels, done = torch.empty((n, 3, height, width), dtype=torch.uint8), 0
    for chunk in array.chunks(CHUNK):
        pixels[done : done + len(chunk)] = torch.tensor(chunk).permute(0, 3, 1, 2)
        done += len(chunk)
    return pixels
