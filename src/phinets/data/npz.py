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
from phinets.data.image_sets import DataSplits, ImageSet, InMemory, holdout_rows

CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class NpzArray:
    """One array of the file, of which only the header was read."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: IO[bytes]

    def chunks(self, rows: int) -> Iterator[NDArray[Any]]:
        """The array, some rows at a time. At the end the checksum of the whole was compared."""
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        for start in range(0, self.shape[0], rows):
            n = min(rows, self.shape[0] - start)
            content = self.stream.read(n * size)
            if len(content) < n * size:
                raise EOFError(f"{self.name} ends in row {start + len(content) // size} of {self.shape[0]}")
            yield np.frombuffer(content, self.dtype).reshape(n, *self.shape[1:])
        if self.stream.read(1):  # the checksum is looked at when the end is reached
            raise EOFError(f"{self.name} is longer than its header says")

    def whole(self) -> NDArray[Any]:
        """All of the array."""
        return np.concatenate([np.empty((0, *self.shape[1:]), self.dtype), *self.chunks(100_000)])


@contextmanager
def open_npz(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; whatever goes wrong in reading it is said as the person's matter."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"'{path}' can't be read or converted: {error.strerror or error}.") from error
    except Exception as error:  # zlib, zipfile and numpy each have their own words for a damaged file
        raise UserError(f"'{path}' is no whole .npz file: {error}. Fetch it again.") from error


@contextmanager
def open_array(archive: zipfile.ZipFile, name: str) -> Iterator[NpzArray]:
    """The array called `name`, ready to be read."""
    names = [entry.removesuffix(".npy") for entry in archive.namelist()]
    if name not in names:
        raise UserError(f"'{archive.filename}' has no array '{name}', only: {', '.join(names) or 'nothing'}.")
    with archive.open(f"{name}.npy") as stream:
        shape, by_column, dtype = _header(stream)
        if by_column and len(shape) > 1:
            raise UserError(f"'{archive.filename}' holds '{name}' column by column. Save np.ascontiguousarray({name}).")
        if dtype.hasobject or not shape:
            raise UserError(f"'{archive.filename}' holds no plain array under '{name}', but {dtype} {shape}.")
        yield NpzArray(name, shape, dtype, stream)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(stream)


def require_pictures(open_array: NpzArray, where: Path, side: int | None = None) -> None:
    """Refuse what is not bytes (n, height, width, 3)."""
    shape, edge = open_array.shape, side or "size"
    decode_square = side is None or shape[1:3] == (side, side)
    if open_array.dtype == np.uint8 and len(shape) == 4 and shape[3] == 3 and 0 not in shape and decode_square:
        return
    cure = " Multiply values from 0 to 1 by 255 and round them." if open_array.dtype.kind == "f" else ""
    raise UserError(
        f"'{where}' holds {open_array.dtype} {shape} under '{open_array.name}', not uint8 (n, {edge}, {edge}, 3).{cure}"
    )


def read_labels(archive: zipfile.ZipFile, name: str, n: int) -> NDArray[np.int64]:
    """The n labels under a name, counted from 0."""
    with open_array(archive, name) as found:
        if found.dtype.kind not in "iu" or found.shape not in ((n,), (n, 1)):
            raise UserError(
                f"'{archive.filename}' holds {found.dtype} {found.shape} under '{name}', not whole numbers ({n},)."
            )
        labels = found.whole().reshape(n).astype(np.int64)
    if labels.min() < 0:
        raise UserError(f"'{archive.filename}' holds the label {labels.min()}, but labels count from 0.")
    return labels


def npz(path: str, options: DataOptions) -> DataSplits:
    """Arrays X (uint8, n × height × width × 3) and, where labels are known, Y (n whole numbers from 0).

    Every tenth image of a fixed shuffle is asked about and the others are learned from.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no file '{file}'. Say --data npz:PATH; `--data shapes` works without any data.")
    with open_npz(file) as archive:
        with open_array(archive, "X") as found:
            require_pictures(found, file)
            pixels = _pixels(found, file)
        named = "Y.npy" in archive.namelist()
        labels = torch.from_numpy(read_labels(archive, "Y", len(pixels))) if named else None
    if len(pixels) < 2:
        raise UserError(f"'{file}' holds one image, but at least two are needed: to learn from and to ask about.")
    classes = () if labels is None else tuple(str(i) for i in range(int(labels.max()) + 1))
    every = ImageSet(InMemory(pixels, torch.arange(len(pixels))), labels)
    train, test = (every.subset(rows) for rows in holdout_rows(len(pixels)))
    return DataSplits(train, test, classes)


def _pixels(found: NpzArray, file: Path) -> Tensor:
    """All images, channels first. A file that claims more than the machine's memory is not even begun."""
    n, height, width, _ = found.shape
    needed, there = 2 * n * height * width * 3, _memory()
    if needed > there:
        raise UserError(f"'{file}' needs {needed / 2**30:.1f} GB of memory, and this machine has {there / 2**30:.1f}.")
    pixels, done = torch.empty((n, 3, height, width), dtype=torch.uint8), 0
    for chunk in found.chunks(CHUNK):
        pixels[done : done + len(chunk)] = torch.tensor(chunk).permute(0, 3, 1, 2)
        done += len(chunk)
    return pixels


def _memory() -> int:
    """Bytes of memory in this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
