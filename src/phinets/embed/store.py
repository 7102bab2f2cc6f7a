"""Features on disk: the store from which an interrupted command resumes, and the feature file that it becomes."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import IO, Any, BinaryIO, NamedTuple
from zipfile import ZipFile, ZipInfo
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.config.plain import differences
from phinets.data import BadImage
from phinets.embed.collection import Collection
from phinets.evaluation.features import pyarrow
from phinets.runtime.files import advice, is_remnant, write_json

STATE, FEATURES, ROWS = "state.json", "features.f32", "rows.i64"
SECONDS = 15.0
"""The state is saved after this time."""
ROW_GROUP = 8_192
"""Rows written at a time, and per row group of a parquet file."""


@dataclass
class FeatureStore:
    """Features and row numbers of consecutive batches, appended to two files; the state says how many are valid."""

    folder: Path
    width: int
    """Features of an image."""
    manifest: Mapping[str, Any]
    """What decides the features."""
    batches: int = 0
    rows: int = 0
    checksum: int = 0
    """CRC-32 of the features."""
    bad: list[BadImage] = field(default_factory=list)
    """Images that can't be used."""
    saved: float = field(default_factory=monotonic)

    def add(self, features: NDArray[np.float32], rows: NDArray[np.int64], bad: tuple[BadImage, ...]) -> None:
        """Append one batch: features (m, d), and the rows (m,) of the collection."""
        content = np.ascontiguousarray(features).tobytes()
        try:
            for name, data in ((FEATURES, content), (ROWS, rows.tobytes())):
                with (self.folder / name).open("ab") as file:
                    file.write(data)
        except OSError as error:
            raise UserError(f"'{self.folder}' can't be written: {error.strerror}. {advice(error)}") from error
        self.batches, self.rows, self.checksum = self.batches + 1, self.rows + len(rows), crc32(content, self.checksum)
        self.bad += bad
        if monotonic() - self.saved > SECONDS:
            self.save()

    def save(self) -> None:
        """Flush the files to the disk, then replace the state."""
        for name in (FEATURES, ROWS):
            with (self.folder / name).open("ab") as file:
                os.fsync(file.fileno())
        counts = {"batches": self.batches, "rows": self.rows, "checksum": self.checksum}
        write_json(self.folder / STATE, {"manifest": self.manifest, **counts, "bad": self.bad})
        self.saved = monotonic()

    def restore(self) -> None:
        """Cut off what was appended after the state was saved, and compare the checksum."""
        for name, size in ((FEATURES, 4 * self.width), (ROWS, 8)):
            path = self.folder / name
            if not path.is_file() or path.stat().st_size < self.rows * size:
                raise ValueError(f"{name} is too short")
            os.truncate(path, self.rows * size)
        checksum = 0
        with (self.folder / FEATURES).open("rb") as file:
            while content := file.read(2**24):
                checksum = crc32(content, checksum)
        if checksum != self.checksum:
            raise ValueError(f"the checksum of {FEATURES} differs")

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All features (n, d), memory-mapped, and their rows (n,)."""
        features = np.memmap(self.folder / FEATURES, np.float32, "r", shape=(self.rows, self.width))
        return features, np.fromfile(self.folder / ROWS, np.int64, self.rows)

    def clear(self) -> None:
        """Delete the files, the state first: without it the other files count as nothing."""
        for path in (*(self.folder / name for name in (STATE, FEATURES, ROWS)), *self.folder.iterdir()):
            if path.name in (STATE, FEATURES, ROWS) or is_remnant(path):
                path.unlink(missing_ok=True)

    def discard(self) -> None:
        """Delete the files and the folder."""
        self.clear()
        with suppress(OSError):  # the folder holds other files
            self.folder.rmdir()


def store_folder(out: Path) -> Path:
    """The folder of the features of a feature file before it is written, beside it."""
    return out.with_name(f".{out.name}.store")


def open_store(folder: Path, manifest: Mapping[str, Any], width: int, overwrite: bool) -> FeatureStore:
    """The store in a folder with this manifest; another or a damaged one is refused or, with `overwrite`, replaced."""
    manifest = json.loads(json.dumps(manifest))
    try:
        store = _load_store(folder, width)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if not overwrite:
            raise UserError(f"'{folder}' is damaged: {error}. Use --overwrite to start again.") from error
        store = None
    if store is not None and store.manifest != manifest and not overwrite:
        raise UserError(
            f"'{folder}' holds the features of another command: it differs in "
            f"{', '.join(differences(store.manifest, manifest))}. Choose another --out, or use --overwrite to start "
            "again."
        )
    if store is None or store.manifest != manifest:
        store = FeatureStore(folder, width, manifest)
        store.clear()
        store.save()
    return store


def _load_store(folder: Path, width: int) -> FeatureStore | None:
    """The store in a folder; None where there is none. Raises for a damaged one."""
    path = folder / STATE
    if not path.exists():
        return None
    state = json.loads(path.read_text(encoding="utf-8"))
    bad = [BadImage(*one) for one in state["bad"]]
    store = FeatureStore(folder, width, state["manifest"], state["batches"], state["rows"], state["checksum"], bad)
    if state["manifest"].get("features") == width:
        store.restore()
    return store


class Embedding(NamedTuple):
    """The features of images."""

    features: NDArray[np.float32]
    """(n, d), memory-mapped."""
    rows: NDArray[np.int64]
    """(n,): rows of the collection."""
    collection: Collection
    about: Mapping[str, Any]
    """Whose features of which images."""

    def groups(self) -> Iterator[tuple[NDArray[np.float32], list[int]]]:
        """Features and rows of the collection, some thousand at a time."""
        for first in range(0, len(self.rows), ROW_GROUP):
            yield self.features[first : first + ROW_GROUP], self.rows[first : first + ROW_GROUP].tolist()


def require_format(path: Path) -> None:
    """Refuse a file whose suffix names no format, before the work."""
    if path.suffix not in WRITERS:
        raise UserError(f"'{path}' must end in {' or '.join(WRITERS)}. Choose another --out, e.g. features.npz.")
    if path.suffix == ".parquet":
        pyarrow()


def write_npz(file: BinaryIO, table: Embedding) -> None:
    """paths, splits, labels and classes as text, features as float32 (n, d), `about` as JSON; always the same bytes."""
    images = table.collection
    with ZipFile(file, "w") as archive:
        lengths = [[max(map(len, column)) for column in images.columns(rows)] for _, rows in table.groups()]
        for column, name in enumerate(("paths", "splits", "labels")):
            kind = np.dtype(f"<U{max(1, *(longest[column] for longest in lengths))}")
            with _member(archive, name, kind, (len(table.rows),)) as member:
                for _, rows in table.groups():
                    member.write(np.array(images.columns(rows)[column], dtype=kind).tobytes())
        about = np.array(json.dumps(table.about, ensure_ascii=False))
        for name, array in (("classes", np.array(images.classes, dtype=np.str_)), ("about", about)):
            with _member(archive, name, array.dtype, array.shape) as member:
                member.write(array.tobytes())
        with _member(archive, "features", table.features.dtype, table.features.shape) as member:
            for features, _ in table.groups():
                member.write(features.tobytes())


def _member(archive: ZipFile, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> IO[bytes]:
    """An array of an .npz, to be filled; without the time of day, so that equal tables are equal files."""
    member = archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True)
    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, head)
    return member


def write_parquet(file: BinaryIO, table: Embedding) -> None:
    """Columns path, split, label and feature, a list of d floats; `about` is in the metadata as `phinets`."""
    arrow, parquet = pyarrow()
    images, width = table.collection, table.features.shape[1]
    metadata = {"phinets": json.dumps(table.about, ensure_ascii=False), "classes": json.dumps(images.classes)}
    columns = [(name, arrow.string()) for name in ("path", "split", "label")]
    schema = arrow.schema([*columns, ("feature", arrow.list_(arrow.float32(), width))], metadata=metadata)
    with parquet.ParquetWriter(file, schema) as writer:
        for features, rows in table.groups():
            lists = arrow.FixedSizeListArray.from_arrays(arrow.array(features.ravel()), width)
            writer.write_table(arrow.table([*images.columns(rows), lists], schema=schema), row_group_size=ROW_GROUP)


WRITERS: Mapping[str, Callable[[BinaryIO, Embedding], None]] = {".npz": write_npz, ".parquet": write_parquet}
