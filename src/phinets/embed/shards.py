"""Features on their way into a file: kept in shards beside it, so that whoever is cut can go on."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.config.plain import differences
from phinets.data import BadImage
from phinets.evaluation.feature_sets import room_for
from phinets.runtime.files import atomic_write, is_remnant

MANIFEST = "manifest.json"
GATHERED = "features.npy"
NAME = re.compile(r"batches-(\d{8})-(\d{8})\.npz")


class Found(NamedTuple):
    """The features of one or more batches."""

    features: NDArray[np.float32]
    """(m, d)."""
    rows: NDArray[np.int64]
    """(m,): which images of the collection they are of."""
    bad: tuple[BadImage, ...]
    """Those that can't be used."""

    def between(self, first: int, stop: int | None) -> "Found":
        """Some of the features."""
        return Found(self.features[first:stop], self.rows[first:stop], ())


def joined(found: list[Found]) -> Found:
    """Several as one."""
    features, rows = (np.concatenate(parts) for parts in zip(*((one.features, one.rows) for one in found), strict=True))
    return Found(features, rows, tuple(bad for one in found for bad in one.bad))


def shards_beside(out: Path) -> Path:
    """Where the shards of a file are kept."""
    return out.with_name(f".{out.name}.shards")


@dataclass
class Shards:
    """A folder of shards: each holds the features of some batches, and they follow each other without a gap."""

    folder: Path
    parts: list[tuple[int, Path]] = field(default_factory=list)
    """For each shard the batch after its last, and its file."""

    @property
    def done(self) -> int:
        """How many batches are there."""
        return self.parts[-1][0] if self.parts else 0

    def add(self, found: Found, stop: int) -> None:
        """Keep the features of the batches up to, not with, `stop`: all of them or none."""
        path = self.folder / f"batches-{self.done:08d}-{stop:08d}.npz"
        held = BytesIO()
        np.savez(held, features=found.features, rows=found.rows, bad=np.array(json.dumps(found.bad)))
        atomic_write(path, held.getvalue())
        self.parts.append((stop, path))

    def __iter__(self) -> Iterator[Found]:
        """The shards in order, one at a time."""
        for _, path in self.parts:
            held = _read(path, "features", "rows", "bad")
            yield Found(held["features"], held["rows"], _bad(held))

    def rows(self) -> Iterator[NDArray[np.int64]]:
        """The same without reading the features."""
        for _, path in self.parts:
            yield _read(path, "rows")["rows"]

    def bad(self) -> Iterator[tuple[BadImage, ...]]:
        """The images that can't be used."""
        for _, path in self.parts:
            yield _bad(_read(path, "bad"))

    def gathered(self) -> NDArray[np.float32]:
        """All features as one array on the disk, (n, d), beside the shards."""
        shape = sum(map(len, self.rows())), next(iter(self)).features.shape[1]
        array: NDArray[np.float32] = room_for(self.folder / GATHERED, shape)
        done = 0
        for found in self:
            array[done : done + len(found.rows)] = found.features
            done += len(found.rows)
        return array

    def discard(self) -> None:
        """Take them away, the manifest last, so that what is left of them can still be told."""
        self.parts = []
        _empty(self.folder)
        (self.folder / MANIFEST).unlink(missing_ok=True)
        with suppress(OSError):  # something of somebody else's is in there
            self.folder.rmdir()


def opened_shards(folder: Path, manifest: Mapping[str, Any], anew: bool) -> Shards:
    """The shards in a folder, which must be of this very work; those of another one are refused or, if told to, go."""
    wanted = json.loads(json.dumps(manifest))
    there = _manifest(folder)
    if there is not None and there != wanted and not anew:
        raise UserError(
            f"'{folder}' holds the beginning of other work: it differs in {', '.join(differences(there, wanted))}. "
            "Choose another --out, or say --overwrite to begin anew."
        )
    if there != wanted:
        _empty(folder)
        atomic_write(folder / MANIFEST, json.dumps(wanted, ensure_ascii=False, indent=2).encode())
    return _chain(folder)


def _chain(folder: Path) -> Shards:
    """The shards that follow each other from the first batch on."""
    shards = Shards(folder)
    for path in sorted(folder.iterdir()):
        match = NAME.fullmatch(path.name)
        if match is not None and int(match[1]) == shards.done:
            shards.parts.append((int(match[2]), path))
    return shards


def _manifest(folder: Path) -> dict[str, Any] | None:
    """What the shards in a folder are of; None where there are none."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(
            f"'{folder / MANIFEST}' can't be read: {error}. Take that folder away to begin anew."
        ) from error
    return found if isinstance(found, dict) else {}


def _empty(folder: Path) -> None:
    """Take away what is ours."""
    for path in folder.iterdir():
        if NAME.fullmatch(path.name) or path.name == GATHERED or is_remnant(path):
            path.unlink()


def _read(path: Path, *names: str) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in names}
    except Exception as error:  # a torn archive may raise anything
        raise UserError(
            f"the shard '{path}' can't be read: {error or type(error).__name__}. Take it and all later ones away; the "
            "same command then makes them again."
        ) from error


def _bad(held: Mapping[str, NDArray[Any]]) -> tuple[BadImage, ...]:
    return tuple(BadImage(*one) for one in json.loads(str(held["bad"])))
