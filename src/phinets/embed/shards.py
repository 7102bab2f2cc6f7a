"""Features in shards, from which an interrupted command resumes, and the feature file that they become."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.config.plain import differences
from phinets.data import BadImage
from phinets.embed.collection import Collection
from phinets.evaluation.feature_files import pyarrow
from phinets.runtime.files import atomic_write, is_remnant

MANIFEST = "manifest.json"
ALL_FEATURES = "features.npy"
NAME = re.compile(r"batches-(\d{8})-(\d{8})\.npz")
ROW_GROUP = 8_192
"""Rows per row group of a parquet file."""


class FeatureBatch(NamedTuple):
    """The features of one or more batches."""

    features: NDArray[np.float32]
    """(m, d)."""
    rows: NDArray[np.int64]
    """(m,): the rows of the collection."""
    bad: tuple[BadImage, ...]
    """The images that can't be used."""

    def between(self, first: int, stop: int | None) -> "FeatureBatch":
        """Some of the features."""
        return FeatureBatch(self.features[first:stop], self.rows[first:stop], ())


def concatenate(batches: list[FeatureBatch]) -> FeatureBatch:
    """Several as one."""
    features, rows = (
        np.concatenate(arrays) for arrays in zip(*((one.features, one.rows) for one in batches), strict=True)
    )
    return FeatureBatch(features, rows, tuple(bad for one in batches for bad in one.bad))


def shards_folder(out: Path) -> Path:
    """The folder of the shards of a feature file, beside it."""
    return out.with_name(f".{out.name}.shards")


@dataclass
class Shards:
    """A folder of shards with the features of consecutive batches, without a gap."""

    folder: Path
    files: list[tuple[int, Path]] = field(default_factory=list)
    """For each shard the number of the batch after its last one, and its file."""

    @property
    def num_batches(self) -> int:
        """The number of batches in the shards."""
        return self.files[-1][0] if self.files else 0

    def add(self, batch: FeatureBatch, stop: int) -> None:
        """Write the features of the batches up to `stop` − 1 as one shard."""
        path = self.folder / f"batches-{self.num_batches:08d}-{stop:08d}.npz"
        buffer = BytesIO()
        np.savez(buffer, features=batch.features, rows=batch.rows, bad=np.array(json.dumps(batch.bad)))
        atomic_write(path, buffer.getvalue())
        self.files.append((stop, path))

    def __iter__(self) -> Iterator[FeatureBatch]:
        """The shards in order, one at a time."""
        for _, path in self.files:
            arrays = _read(path, "features", "rows", "bad")
            yield FeatureBatch(arrays["features"], arrays["rows"], _bad(arrays))

    def rows(self) -> Iterator[NDArray[np.int64]]:
        """The row numbers of each shard, without reading the features."""
        for _, path in self.files:
            yield _read(path, "rows")["rows"]

    def bad(self) -> Iterator[tuple[BadImage, ...]]:
        """The bad images of each shard."""
        for _, path in self.files:
            yield _bad(_read(path, "bad"))

    def memory_map(self) -> NDArray[np.float32]:
        """All features as one memory-mapped array (n, d), beside the shards."""
        shape = sum(map(len, self.rows())), next(iter(self)).features.shape[1]
        array = _allocate(self.folder / ALL_FEATURES, shape)
        first = 0
        for batch in self:
            array[first : first + len(batch.rows)] = batch.features
            first += len(batch.rows)
        return array

    def discard(self) -> None:
        """Delete them, the manifest last, so that an interrupted deletion is recognized."""
        self.files = []
        _clear(self.folder)
        (self.folder / MANIFEST).unlink(missing_ok=True)
        with suppress(OSError):  # the folder holds other files
            self.folder.rmdir()


def _allocate(path: Path, shape: tuple[int, int]) -> NDArray[np.float32]:
    """A memory-mapped array whose disk space is allocated: without it, writing on a full disk kills the process."""
    array: NDArray[np.float32] = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def open_shards(folder: Path, manifest: Mapping[str, Any], overwrite: bool) -> Shards:
    """The shards in a folder with this manifest; others are refused or, with `overwrite`, deleted."""
    wanted = json.loads(json.dumps(manifest))
    present = _manifest(folder)
    if present is not None and present != wanted and not overwrite:
        raise UserError(
            f"'{folder}' holds the shards of another command: it differs in "
            f"{', '.join(differences(present, wanted))}. Choose another --out, or use --overwrite to start again."
        )
    if present != wanted:
        _clear(folder)
        atomic_write(folder / MANIFEST, json.dumps(wanted, ensure_ascii=False, indent=2).encode())
    shards = Shards(folder)
    for path in sorted(folder.iterdir()):
        match = NAME.fullmatch(path.name)
        if match is not None and int(match[1]) == shards.num_batches:
            shards.files.append((int(match[2]), path))
    return shards


def _manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of the shards in a folder; None where there is none."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"'{folder / MANIFEST}' can't be read: {error}. Delete that folder to start again.") from error
    return manifest if isinstance(manifest, dict) else {}


def _clear(folder: Path) -> None:
    """Delete the shards and their temporary files."""
    for path in folder.iterdir():
        if NAME.fullmatch(path.name) or path.name == ALL_FEATURES or is_remnant(path):
            path.unlink()


def _read(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except Exception as error:  # a torn archive may raise anything
        raise UserError(
            f"the shard '{path}' can't be read: {error or type(error).__name__}. Delete it and all later ones; the "
            "same command then computes them again."
        ) from error


def _bad(arrays: Mapping[str, NDArray[Any]]) -> tuple[BadImage, ...]:
    return tuple(BadImage(*one) for one in json.loads(str(arrays["bad"])))


@dataclass(frozen=True, kw_only=True)
class ShardTable:
    """Paths, splits, labels and features of images, in shards."""

    shards: Shards
    collection: Collection
    num_rows: int
    width: int
    about: Mapping[str, Any]
    """Whose features of which images."""


def require_format(path: Path) -> None:
    """Refuse a file whose suffix names no format, before the work."""
    if path.suffix not in WRITERS:
        raise UserError(f"'{path}' must end in {' or '.join(WRITERS)}. Choose another --out, e.g. features.npz.")
    if path.suffix == ".parquet":
        pyarrow()


def write_table(path: Path, table: ShardTable) -> None:
    """The table in the format that the file's suffix names, written atomically."""
    atomic_write(path, lambda file: WRITERS[path.suffix](file, table))


def _write_npz(file: BinaryIO, table: ShardTable) -> None:
    """paths, splits, labels and classes as text, features as float32 (n, d), `about` as JSON; always the same bytes."""
    images = table.collection
    with ZipFile(file, "w") as archive:
        for name, words in (("paths", images.names), ("splits", images.splits), ("labels", images.labels)):
            _write_text(archive, name, words, table)
        _write_array(archive, "classes", np.array(images.classes, dtype=np.str_))
        _write_array(archive, "about", np.array(json.dumps(table.about, ensure_ascii=False)))
        with _member(archive, "features", np.dtype(np.float32), (table.num_rows, table.width)) as member:
            for batch in table.shards:
                member.write(np.ascontiguousarray(batch.features).data)


def _write_text(archive: ZipFile, name: str, words: Callable[[list[int]], list[str]], table: ShardTable) -> None:
    """A column of text, as wide as its longest entry."""
    longest = max(max(map(len, words(rows.tolist())), default=0) for rows in table.shards.rows())
    kind = np.dtype(f"<U{max(1, longest)}")
    with _member(archive, name, kind, (table.num_rows,)) as member:
        for rows in table.shards.rows():
            member.write(np.array(words(rows.tolist()), dtype=kind).tobytes())


def _write_array(archive: ZipFile, name: str, array: NDArray[Any]) -> None:
    with _member(archive, name, array.dtype, array.shape) as member:
        member.write(array.tobytes())


def _member(archive: ZipFile, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> IO[bytes]:
    """An array of an .npz, to be filled; without the time of day, so that equal tables are equal files."""
    member = archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True)
    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, head)
    return member


def _write_parquet(file: BinaryIO, table: ShardTable) -> None:
    """Columns path, split, label and feature, a list of `width` floats; `about` is in the metadata as `phinets`."""
    arrow, parquet = pyarrow()
    images = table.collection
    metadata = {"phinets": json.dumps(table.about, ensure_ascii=False), "classes": json.dumps(images.classes)}
    columns = [(name, arrow.string()) for name in ("path", "split", "label")]
    schema = arrow.schema([*columns, ("feature", arrow.list_(arrow.float32(), table.width))], metadata=metadata)
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in _groups(table.shards, ROW_GROUP):
            rows = batch.rows.tolist()
            features = arrow.FixedSizeListArray.from_arrays(arrow.array(batch.features.ravel()), table.width)
            text = images.names(rows), images.splits(rows), images.labels(rows)
            writer.write_table(arrow.table([*text, features], schema=schema), row_group_size=ROW_GROUP)


def _groups(shards: Shards, size: int) -> Iterator[FeatureBatch]:
    """All rows, `size` at a time, independent of the shards' sizes."""
    pending: list[FeatureBatch] = []
    for batch in shards:
        whole = concatenate([*pending, batch])
        while len(whole.rows) >= size:
            yield whole.between(0, size)
            whole = whole.between(size, None)
        pending = [whole]
    yield from (one for one in pending if len(one.rows))


WRITERS: Mapping[str, Callable[[BinaryIO, ShardTable], None]] = {".npz": _write_npz, ".parquet": _write_parquet}
