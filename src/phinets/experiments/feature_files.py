"""Features in files: written a batch at a time, read without bringing them into memory."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.plain import from_plain, to_plain
from phinets.config.run import Judging
from phinets.data import ImageSet
from phinets.evaluation.knn import Rows
from phinets.experiments.examining import Examined
from phinets.experiments.judging import require_classes

MOST = 1_000_000
"""Classes that a label may name: what is more is an identity, not a class."""
SIDES = ("train", "test")
ABOUT = "about.json"
"""What is known, and what is asked about: train_features, train_labels, test_features, test_labels."""


class Side(NamedTuple):
    """Features (n, d), in memory or on the disk, and labels (n,)."""

    features: Rows
    labels: Tensor


def is_features(place: Path) -> bool:
    """Whether a place holds kept features: a folder of arrays, or an .npz."""
    return place.suffix == ".npz" or (place / "train_features.npy").exists()


def require_images(place: Path) -> None:
    """Refuse kept features where images are needed."""
    if is_features(place):
        raise UserError(
            f"'{place}' holds features, but this judgement looks at images. Give a run or weights, and --data."
        )


def read_features(place: Path) -> tuple[Side, Side]:
    """What is known and what is asked about, from a folder of arrays or from an .npz."""
    _require_sides(place)
    known, asked = (_side(place, side) for side in SIDES)
    if known.features.shape[1] != asked.features.shape[1]:
        widths = known.features.shape[1], asked.features.shape[1]
        raise UserError(f"'{place}' holds features of two widths, {widths[0]} and {widths[1]}: of two encoders.")
    require_classes(known.labels, asked.labels, str(place))
    return known, asked


def _require_sides(place: Path) -> None:
    """Refuse what `phinets embed` wrote, which is one table."""
    names: set[str] = set()
    with suppress(OSError, BadZipFile), ZipFile(place) as archive:  # a folder, or a torn file, which is told later
        names |= set(archive.namelist())
    if {"about.npy", "features.npy"} <= names and "train_features.npy" not in names:
        raise UserError(
            f"'{place}' is a table by `phinets embed`, which does not say what is known and what is asked about. "
            "Give the run or the weights themselves, or features that `phinets eval features` kept of them."
        )


def _side(place: Path, side: str) -> Side:
    features, labels = (_array(place, f"{side}_{what}") for what in ("features", "labels"))
    if features.ndim != 2 or 0 in features.shape or not np.issubdtype(features.dtype, np.floating):
        raise UserError(
            f"{side}_features in '{place}' is {features.dtype} {features.shape}, but must be floats (n, d)."
        )
    fit = labels.shape == (len(features),) and np.issubdtype(labels.dtype, np.integer)
    if not fit or not 0 <= labels.min() <= labels.max() < MOST:
        raise UserError(
            f"{side}_labels in '{place}' are {labels.dtype} {labels.shape}, but must be a class number, from 0 to "
            f"{MOST}, for each of the {len(features)} features."
        )
    return Side(features, torch.from_numpy(labels.astype(np.int64)))


def _array(place: Path, name: str) -> NDArray[Any]:
    """One array; from a folder it stays on the disk."""
    try:
        if place.suffix == ".npz":
            with np.load(place, allow_pickle=False) as arrays:
                return np.asarray(arrays[name])
        mapped: NDArray[Any] = np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        return mapped
    except (FileNotFoundError, KeyError):
        wanted = ", ".join(f"{side}_{what}" for side in SIDES for what in ("features", "labels"))
        raise UserError(f"there is no {name} in '{place}'. It must hold {wanted}.") from None
    except Exception as error:  # a torn archive may raise anything
        raise UserError(f"{name} in '{place}' can't be read: {error or type(error).__name__}.") from error


class About(NamedTuple):
    """Whose features of which images, and how their run would judge them."""

    described: str
    document: dict[str, Any]
    judging: Judging


def about(place: Path) -> About | None:
    """What a folder of kept features says of itself; nothing where somebody else made it."""
    file = place / ABOUT
    if not file.is_file():
        return None
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        return About(said["described"], said["document"], from_plain(Judging, said["judging"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{file}' can't be read: {error}. Make the features anew, or take that file away.") from error


def keep_features(who: Examined, folder: Path) -> None:
    """Write features and labels of both sides as arrays, a batch at a time: no more memory than a batch needs."""
    with _appearing(folder) as aside:
        for side, part in zip(SIDES, (who.known, who.asked), strict=True):
            _write(who, part, aside / side)
        who.tell_bad_images()
        judging = Judging() if who.subject.config is None else who.subject.config.judging
        said = {"described": who.describe(), "document": who.document, "judging": to_plain(judging)}
        (aside / ABOUT).write_text(json.dumps(said, ensure_ascii=False), encoding="utf-8")


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder that is filled aside and appears when it is whole."""
    aside = folder.with_name(f".{folder.name}.part")
    try:
        rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        yield aside
        aside.replace(folder)
    except OSError as error:
        raise UserError(f"'{folder}' can't be written: {error.strerror or error}. Choose another --out.") from error
    finally:
        rmtree(aside, ignore_errors=True)


def _write(who: Examined, part: ImageSet, stem: Path) -> None:
    assert part.labels is not None
    rows: list[Tensor] = []
    array: NDArray[Any] | None = None
    done = 0
    for found in who.eye.stream(part, who.subject.encoder):
        if array is None:
            shape = (len(part), found.images.shape[1])
            array = room_for(Path(f"{stem}_features.npy"), shape)
        array[done : done + len(found.images)] = found.images.numpy()
        done += len(found.images)
        rows.append(found.rows)
    np.save(f"{stem}_labels.npy", part.labels[torch.cat(rows)].numpy(), allow_pickle=False)


def room_for(path: Path, shape: tuple[int, int]) -> NDArray[Any]:
    """An array on the disk whose room is there: writing into a mapped file that has none would kill the process."""
    array: NDArray[Any] = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=shape)
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array
