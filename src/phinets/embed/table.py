"""A table of features in one file, .npz or .parquet: written in one go, some rows at a time."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.embed.collection import Collection
from phinets.embed.shards import Found, Shards, joined
from phinets.runtime.files import atomic_write

GROUP = 8_192
"""Rows of a parquet file that are read together."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Paths, labels and features of images, which lie in shards."""

    shards: Shards
    collection: Collection
    rows: int
    width: int
    about: Mapping[str, Any]
    """Whose features of which images."""


def require_format(path: Path) -> None:
    """Refuse a file that no table can be written into, before there is one."""
    if path.suffix not in WRITERS:
        raise UserError(f"'{path}' must end in {' or '.join(WRITERS)}. Choose another --out, e.g. features.npz.")
    if path.suffix == ".parquet":
        _pyarrow()


def write_table(path: Path, table: Table) -> None:
    """The table in the format that the file's ending names, whole or not at all."""
    atomic_write(path, lambda file: WRITERS[path.suffix](file, table))


def _npz(file: BinaryIO, table: Table) -> None:
    """paths, labels and classes as text, features as float32 (n, d), and `about` as JSON; the same bytes every time."""
    with ZipFile(file, "w") as archive:
        for name, words in (("paths", table.collection.names), ("labels", table.collection.labels)):
            _text(archive, name, words, table)
        _array(archive, "classes", np.array(table.collection.classes, dtype=np.str_))
        _array(archive, "about", np.array(json.dumps(table.about, ensure_ascii=False)))
        with _member(archive, "features", np.dtype(np.float32), (table.rows, table.width)) as member:
            for found in table.shards:
                member.write(np.ascontiguousarray(found.features).data)


def _text(archive: ZipFile, name: str, words: Callable[[list[int]], list[str]], table: Table) -> None:
    """A column of words, as wide as its longest."""
    longest = max(max(map(len, words(rows.tolist())), default=0) for rows in table.shards.rows())
    kind = np.dtype(f"<U{max(1, longest)}")
    with _member(archive, name, kind, (table.rows,)) as member:
        for rows in table.shards.rows():
            member.write(np.array(words(rows.tolist()), dtype=kind).tobytes())


def _array(archive: ZipFile, name: str, array: NDArray[Any]) -> None:
    with _member(archive, name, array.dtype, array.shape) as member:
        member.write(array.tobytes())


def _member(archive: ZipFile, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> IO[bytes]:
    """An array of an .npz, to be filled; without the time of day, which would make every file another one."""
    member = archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True)
    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, head)
    return member


def _parquet(file: BinaryIO, table: Table) -> None:
    """Columns path, label and feature, a list of `width` floats; `about` is in the metadata under `phinets`."""
    arrow, parquet = _pyarrow()
    kind = arrow.list_(arrow.float32(), table.width)
    said = {"phinets": json.dumps(table.about, ensure_ascii=False), "classes": json.dumps(table.collection.classes)}
    columns = [("path", arrow.string()), ("label", arrow.string()), ("feature", kind)]
    schema = arrow.schema(columns, metadata=said)
    with parquet.ParquetWriter(file, schema) as writer:
        for found in _groups(table.shards, GROUP):
            rows = found.rows.tolist()
            features = arrow.FixedSizeListArray.from_arrays(arrow.array(found.features.ravel()), table.width)
            words = table.collection.names(rows), table.collection.labels(rows)
            writer.write_table(arrow.table([*words, features], schema=schema), row_group_size=GROUP)


def _groups(shards: Shards, size: int) -> Iterator[Found]:
    """All rows, `size` at a time, wherever one shard ends and the next begins."""
    held: list[Found] = []
    for found in shards:
        whole = joined([*held, found])
        while len(whole.rows) >= size:
            yield whole.between(0, size)
            whole = whole.between(size, None)
        held = [whole]
    yield from (one for one in held if len(one.rows))


def _pyarrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise UserError(
            "a .parquet file needs pyarrow, which is not installed: pip install 'phinets[parquet]'. Or choose .npz."
        ) from None


WRITERS: Mapping[str, Callable[[BinaryIO, Table], None]] = {".npz": _npz, ".parquet": _parquet}
