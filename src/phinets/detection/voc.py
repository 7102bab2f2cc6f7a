"""Annotated pictures in VOC's layout: Annotations/*.xml, JPEGImages/*, ImageSets/Main/*.txt."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import torch

from phinets.config.detection import Pictures
from phinets.config.errors import UserError, look_up
from phinets.data.pictures import ENDINGS, shown
from phinets.detection.annotation import Annotated, annotated
from phinets.detection.boxes import Truth
from phinets.views import random_stream

LISTS = Path("ImageSets") / "Main"
VOC20 = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog",
    "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
"""VOC's own classes, which lie in the order of the alphabet, as all classes do here."""
BENCHMARKS = {
    "VOC2007/trainval, asked about VOC2007/test": "VOC 07",
    "VOC2007/trainval + VOC2012/trainval, asked about VOC2007/test": "VOC 07+12",
}
"""Lists of folders by the names that VOC gives them, and the part of the paper's table that is about them."""


class Scene(NamedTuple):
    """A picture in a file, and what is on it."""

    path: Path
    width: int
    height: int
    truth: Truth


@dataclass(frozen=True, kw_only=True)
class Scenes:
    """What is learned from, and what is asked about."""

    train: tuple[Scene, ...]
    test: tuple[Scene, ...]
    classes: tuple[str, ...]
    lists: str
    """Which lists of which folders they come from, in words."""
    benchmark: str | None
    """Which part of the paper's table has all these pictures, and no others: VOC 07, or VOC 07+12."""
    boxless: int
    """Pictures that were left out of what is learned from, since nothing is on them."""

    def digest(self) -> dict[str, str]:
        """For each part the number of pictures and a check sum of names and boxes, to notice when they change."""
        parts = {"train": self.train, "test": self.test}
        return {name: f"{len(part)} pictures, {_checked(part):08x}" for name, part in parts.items()}

    def drawn(self, options: Pictures, seed: int) -> "Scenes":
        """No more pictures than the options ask for, which ones being drawn by the seed."""
        train = _drawn(self.train, options.train_images, random_stream(seed, "train-images"))
        test = _drawn(self.test, options.test_images, random_stream(seed, "test-images"))
        whole = len(train) == len(self.train) and len(test) == len(self.test)
        return replace(self, train=train, test=test, benchmark=self.benchmark if whole else None)


def read_voc(options: Pictures) -> Scenes:
    """All pictures of the two lists, whatever is wrong with them found now.

    Every folder of --data and --also is learned from; what is asked about is the list of the first one that has it, so
    that of VOC 2007 and 2012 together the test is 2007's.
    """
    homes, further = _homes(_place(options.data)), [home for also in options.also for home in _homes(_place(also))]
    tested, test_name = _tested(homes, options.test_set)
    train_name = options.train_set or _train_name(tested, test_name)
    once: dict[Path, Path] = {}
    for home in (*homes, *further):
        once.setdefault(home.resolve(), home)  # one folder, however often it is spelled
    ids = {home: _listed(home, train_name, "--train-set") for home in once.values()}
    train = [one for home, names in ids.items() for one in _annotated(home, names)]
    test = _annotated(tested, _listed(tested, test_name, "--test-set"))
    _require_apart(train, test)
    classes = _classes(train, test, options.classes)
    learned = [_scene(one, classes) for one in train]
    kept = tuple(scene for scene in learned if len(scene.truth.labels))
    lists = f"{' + '.join(f'{home.name}/{train_name}' for home in ids)}, asked about {tested.name}/{test_name}"
    return Scenes(
        train=kept,
        test=tuple(_scene(one, classes) for one in test),
        classes=classes,
        lists=lists,
        benchmark=BENCHMARKS.get(lists) if classes == VOC20 else None,
        boxless=len(learned) - len(kept),
    )


def _place(name: str) -> Path:
    kind, colon, place = name.partition(":")
    if not name or not place or not colon or kind != "voc":
        raise UserError(
            f"'{name}' is no place of annotated pictures. Say --data voc:PATH (and --also voc:PATH), where PATH holds "
            f"Annotations, JPEGImages and {LISTS}."
        )
    return Path(place).expanduser()


def _homes(place: Path) -> list[Path]:
    """The folders in VOC's layout at a place: itself, or VOC2007, VOC2012, … in it or in its VOCdevkit."""
    if not place.is_dir():
        raise UserError(f"there is no folder '{shown(place)}'. Say --data voc:PATH with one in VOC's layout.")
    inside = (*sorted(place.glob("VOC[0-9]*")), *sorted(place.glob("VOCdevkit/VOC[0-9]*")))
    homes = [home for home in ((place,) if (place / "Annotations").is_dir() else inside) if (home / LISTS).is_dir()]
    if not homes:
        raise UserError(
            f"'{shown(place)}' is not in VOC's layout: it must hold Annotations, JPEGImages and {LISTS}, or folders "
            "VOC2007, VOC2012 that do."
        )
    return homes


def _tested(homes: list[Path], wanted: str | None) -> tuple[Path, str]:
    """The folder whose list is asked about, and the list's name."""
    for name in (wanted,) if wanted else ("test", "val"):
        for home in homes:
            if (home / LISTS / f"{name}.txt").is_file():
                return home, name
    return homes[0], wanted or "test"


def _train_name(home: Path, test_name: str) -> str:
    both = test_name != "val" and (home / LISTS / "trainval.txt").is_file()
    return "trainval" if both else "train"


def _listed(home: Path, name: str, option: str) -> list[str]:
    """The pictures of a list: the first word of each line."""
    path = home / LISTS / f"{name}.txt"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        there = ", ".join(sorted(p.stem for p in (home / LISTS).glob("*.txt"))) or "none"
        raise UserError(f"there is no list '{shown(path)}'. Lists there: {there}. Choose with {option}.") from None
    ids = list(dict.fromkeys(line.split()[0] for line in lines if line.strip()))
    if not ids:
        raise UserError(f"the list '{shown(path)}' is empty. Write the pictures' names into it, or choose {option}.")
    return ids


def _require_apart(train: list[Annotated], test: list[Annotated]) -> None:
    """Refuse a picture on both sides: the same file, however its folder is spelled, or a copy under the same name."""
    learned = {key: one.path for one in train for key in (one.path.resolve(), one.path.stem)}
    both = [(learned.get(one.path.resolve()) or learned.get(one.path.stem), one.path) for one in test]
    both = [(here, there) for here, there in both if here is not None]
    if both:
        here, there = both[0]
        raise UserError(
            f"{len(both)} pictures are both learned from and asked about, by file or by name, e.g. '{there.stem}': "
            f"'{shown(str(here))}' and '{shown(there)}'. Choose lists that share none with --train-set and --test-set, "
            "or leave out a place of --also."
        )


def _annotated(home: Path, ids: list[str]) -> list[Annotated]:
    """The annotated pictures of these names, each of which must have both files."""
    pictures = {p.stem: p for p in sorted((home / "JPEGImages").glob("*")) if p.suffix.lower() in ENDINGS}
    xmls = {p.stem: p for p in (home / "Annotations").glob("*.xml")}
    for mine, what, folder, kind, other in (
        (pictures, "picture", "JPEGImages", "annotation", xmls),
        (xmls, "annotation", "Annotations", "picture", pictures),
    ):
        missing = [name for name in ids if name not in mine]
        if missing:
            has = f"its {kind} is there" if missing[0] in other else f"its {kind} is missing too"
            raise UserError(
                f"{len(missing)} of the {len(ids)} listed pictures in '{shown(home)}' have no {what} in {folder}: the "
                f"first is '{missing[0]}' ({has}). Put them there, or take them out of the lists in {LISTS}."
            )
    return [annotated(xmls[name], pictures[name]) for name in ids]


def _classes(train: list[Annotated], test: list[Annotated], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The classes that there are, or those that are wanted; each must have a box to learn from."""
    learned, asked = ({name for one in part for name in one.names} for part in (train, test))
    for name in wanted:
        look_up("class", name, dict.fromkeys(sorted(learned | asked)))
    classes = tuple(sorted(set(wanted) or learned | asked))
    for part, names in (("learned from", learned), ("asked about", asked)):
        if not names & set(classes):
            of = f" of {', '.join(wanted)}" if wanted else ""
            raise UserError(f"the pictures that are {part} have no box{of}. Annotate some, or choose other lists.")
    empty = [name for name in classes if name not in learned]
    if empty:
        raise UserError(
            f"there is no box to learn from for {', '.join(empty)}. Leave {'it' if len(empty) == 1 else 'them'} out by "
            "naming the others with --classes, or choose other lists."
        )
    return classes


def _scene(one: Annotated, classes: tuple[str, ...]) -> Scene:
    """The picture with its classes by number; what is of no class here is not there."""
    kept = [i for i, name in enumerate(one.names) if name in classes]
    labels = np.array([classes.index(one.names[i]) for i in kept], np.int64)
    truth = Truth(one.boxes[kept], labels, np.array([one.difficult[i] for i in kept], bool))
    return Scene(one.path, one.width, one.height, truth)


def _drawn(scenes: tuple[Scene, ...], most: int | None, stream: torch.Generator) -> tuple[Scene, ...]:
    if most is None or most >= len(scenes):
        return scenes
    rows = torch.randperm(len(scenes), generator=stream)[:most]
    return tuple(scenes[i] for i in sorted(rows.tolist()))


def _checked(scenes: Iterable[Scene]) -> int:
    check = 0
    for scene in scenes:
        check = crc32(scene.path.name.encode(errors="surrogateescape"), check)
        for part in scene.truth:
            check = crc32(np.ascontiguousarray(part).tobytes(), check)
    return check
