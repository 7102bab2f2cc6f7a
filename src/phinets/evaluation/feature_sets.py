"""An encoder before a judge, as the command line asks for it."""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.backbones import feature_width, require_room
from phinets.config.errors import UserError
from phinets.config.exam import EvalOptions
from phinets.config.plain import from_plain, to_plain
from phinets.config.run import DataOptions, EvalConfig
from phinets.data import BadImages, ImageSet, load
from phinets.evaluation.encoders import Subject, data_of, plan_of, settled_sight, subject
from phinets.evaluation.evaluator import Embedded, Eye, require_classes, sides_protocol
from phinets.evaluation.knn import Rows
from phinets.runtime.devices import pick_device
from phinets.views import random_stream


@dataclass(frozen=True, kw_only=True)
class Examined:
    """An encoder on its device, the eye, and the labelled images on both sides."""

    place: Path
    subject: Subject
    eye: Eye
    known: ImageSet
    asked: ImageSet
    classes: tuple[str, ...]
    """The classes' names."""
    data: str
    exam: EvalOptions

    def embedded(self) -> tuple[Embedded, Embedded]:
        """Features and labels of the known images and of those that are asked about."""
        encoder = self.subject.encoder
        sides = self.eye.embedded(self.known, encoder), self.eye.embedded(self.asked, encoder)
        self.tell_bad_images()
        return sides

    def tell_bad_images(self) -> None:
        """A note for each image that could not be used; refuses to go on where there are too many."""
        for where, why in self.eye.bad_images.drain():
            warnings.warn(f"'{where}' can't be used, and its neighbor stands in for it: {why}.", stacklevel=3)
        self.eye.bad_images.require_few()

    @property
    def document(self) -> dict[str, Any]:
        """Who was judged on what, for machines."""
        return {
            "target": str(self.place),
            "encoder": self.subject.clock,
            "backbone": self.subject.backbone,
            "data": self.data,
            "classes": len(self.classes),
            "image_size": self.eye.size,
            "labels": self.exam.labels,
            "bank": len(self.known),
            "queries": len(self.asked),
            "bad_images": len(self.eye.bad_images.known),
            "seed": self.exam.seed,
        }

    def describe(self) -> str:
        """Whose features of which images, in words."""
        share = "" if self.exam.share == 1 else f", {self.exam.labels} of the labels (seed {self.exam.seed})"
        chosen = f" ({', '.join(self.classes)})" if self.exam.classes else ""
        sides = sides_protocol(len(self.known), len(self.asked), every=self.exam.test_images is None)
        bad = f", {len(self.eye.bad_images.known)} bad ones replaced by their neighbors" * bool(
            self.eye.bad_images.known
        )
        seen = f"{len(self.classes)} classes{chosen} at {self.eye.size} pixels"
        return f"{self.subject.called}; {self.data}, {seen}{share}: {sides}{bad}"


def examined(place: Path, exam: EvalOptions) -> Examined:
    """The encoder at a place with what it is judged on: what `exam` leaves open is as in its run."""
    exam = settled_sight(exam)
    who = subject(place, exam.encoder, exam.backbone)
    name, source = _data(exam, who)
    require_room(who.backbone, source.image_size)
    feature_width(who.encoder, source.image_size)  # says at once what is wrong with an encoder that gives no features
    eye = Eye(
        plan=plan_of(exam, who),
        size=source.image_size,
        device=pick_device(exam.device),
        dtype=next(who.encoder.parameters()).dtype,
        bad_images=BadImages(exam.max_bad_images),
    )
    split = load(name, source)
    known, asked = split.known.labelled.head(_bank(exam, who)), split.test.labelled
    require_classes(known.labels, asked.labels, name)
    return Examined(
        place=place,
        subject=replace(who, encoder=who.encoder.to(eye.device).to(memory_format=torch.channels_last)),
        eye=eye,
        known=known.share(exam.share, random_stream(exam.seed, "labels")),
        asked=asked,
        classes=split.classes,
        data=name,
        exam=exam,
    )


def _bank(exam: EvalOptions, who: Subject) -> int | None:
    """How many labelled images are known: as the run's own last judgement where it is on the run's own data."""
    if exam.bank is not None or who.config is None or exam.data not in (None, who.config.data):
        return exam.bank
    return who.config.evaluation.final_bank


def _data(exam: EvalOptions, who: Subject) -> tuple[str, DataOptions]:
    """The data's name and options, and as many images of each part as the exam asks for."""
    name, source = data_of(exam, who)
    return name, replace(
        source,
        train_images=_most(exam.bank, source.train_images),
        test_images=exam.test_images or source.test_images,
    )


def _most(bank: int | None, images: int | None) -> int | None:
    """How many training images are read: as many as the bank asks for, where those of the run are fewer."""
    return images if bank is None or images is None else max(bank, images)


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
    evaluation: EvalConfig


def about(place: Path) -> About | None:
    """What a folder of kept features says of itself; nothing where somebody else made it."""
    file = place / ABOUT
    if not file.is_file():
        return None
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        return About(said["described"], said["document"], from_plain(EvalConfig, said["evaluation"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"'{file}' can't be read: {error}. Make the features anew, or take that file away.") from error


def keep_features(who: Examined, folder: Path) -> None:
    """Write features and labels of both sides as arrays, a batch at a time: no more memory than a batch needs."""
    with _appearing(folder) as aside:
        for side, part in zip(SIDES, (who.known, who.asked), strict=True):
            _write(who, part, aside / side)
        who.tell_bad_images()
        evaluation = EvalConfig() if who.subject.config is None else who.subject.config.evaluation
        said = {"described": who.describe(), "document": who.document, "evaluation": to_plain(evaluation)}
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


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """What is known and what is asked about."""

    known: Side
    asked: Side
    described: str
    """Whose features of which images, in words."""
    document: dict[str, Any]
    """The same for machines."""
    evaluation: EvalConfig
    """The run's own protocol, or the paper's."""


def embedding(place: Path, exam: EvalOptions) -> Embedding:
    """The features at a place, or those that the encoder at a place gives."""
    if is_features(place):
        return _kept(place, exam)
    who = examined(place, exam)
    known, asked = who.embedded()
    return Embedding(
        known=Side(*known),
        asked=Side(*asked),
        described=who.describe(),
        document=who.document,
        evaluation=EvalConfig() if who.subject.config is None else who.subject.config.evaluation,
    )


def in_memory(side: Side) -> tuple[Tensor, Tensor]:
    """The same with its features as a tensor."""
    features = side.features
    return features if isinstance(features, Tensor) else torch.from_numpy(np.array(features, np.float32)), side.labels


def _kept(place: Path, exam: EvalOptions) -> Embedding:
    if exam != EvalOptions(device=exam.device):
        raise UserError(
            f"'{place}' holds features that are already there. Leave out everything that says how to make them; k, "
            "temperature and device are all that has a meaning."
        )
    known, asked = read_features(place)
    said = about(place)
    if said is not None:
        return Embedding(
            known=known,
            asked=asked,
            described=f"kept features of the {said.described}",
            document=said.document | {"target": str(place)},
            evaluation=said.evaluation,
        )
    counts = len(known.labels), len(asked.labels)
    return Embedding(
        known=known,
        asked=asked,
        described=f"features in {place.name}: {sides_protocol(*counts)}",
        document={"target": str(place), "bank": counts[0], "queries": counts[1]},
        evaluation=EvalConfig(),
    )
