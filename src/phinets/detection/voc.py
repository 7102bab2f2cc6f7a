"""Annotated images in VOC's layout: Annotations/*.xml, JPEGImages/*, ImageSets/Main/*.txt."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from zlib import crc32

import numpy as np
import torch
from PIL import Image

from phinets.config.detection import ImageOptions
from phinets.config.errors import UserError, look_up
from phinets.data.decode import ENDINGS, FORMATS, ORIENTATION, SIDEWAYS, printable
from phinets.detection.average_precision import Floats, GroundTruth
from phinets.views import random_stream

TOLERANCE = 1.0
"""Pixels by which a box may exceed the image before it is refused; some tools count from 0, others from 1."""
EDGES = ("xmin", "ymin", "xmax", "ymax")


class Annotation(NamedTuple):
    """An image and its objects by name."""

    path: Path
    width: int
    height: int
    names: tuple[str, ...]
    boxes: Floats
    """(n, 4), from 0 and half-open."""
    difficult: tuple[bool, ...]


class _Builder(ElementTree.TreeBuilder):
    """Refuses a document that defines entities of its own, which could unfold into gigabytes."""

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise UserError("it has a DOCTYPE, which VOC's annotations don't have. Remove it")


def read_annotation(xml: Path, picture: Path) -> Annotation:
    """The annotation in a file, checked against its image.

    VOC counts pixels from 1 and its boxes hold their last pixel. Here they count from 0 and end behind it, as in
    Detectron2: (xmin − 1, ymin − 1, xmax, ymax).
    """
    width, height = upright_size(picture)
    try:
        root = _root(xml)
        _require_size(root, width, height)
        objects = root.findall("object")
        names = tuple(_text(element, "name") for element in objects)
        boxes = [_box(element, width, height) for element in objects]
        difficult = tuple((element.findtext("difficult") or "0").strip() == "1" for element in objects)
    except UserError as error:
        raise UserError(f"the annotation '{printable(xml)}' can't be used: {error}.") from error
    return Annotation(picture, width, height, names, np.array(boxes, np.float64).reshape(-1, 4), difficult)


def upright_size(picture: Path) -> tuple[int, int]:
    """Width and height in the upright orientation, from the file's header."""
    try:
        with Image.open(picture, formats=FORMATS) as file:
            width, height = file.size
            return (height, width) if file.getexif().get(ORIENTATION, 1) in SIDEWAYS else (width, height)
    except Exception as error:  # a damaged file may raise anything
        raise UserError(
            f"the image '{printable(picture)}' can't be read: {error}. Replace it, or remove it and its annotation "
            "from the lists."
        ) from error


def _root(xml: Path) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(xml.read_bytes(), ElementTree.XMLParser(target=_Builder()))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"it is not valid XML ({error}). Replace it, or remove it from the lists") from error
    except OSError as error:
        raise UserError(f"{error.strerror or error}") from error
    if root.tag != "annotation":
        raise UserError(f"it begins with <{root.tag}>, not with <annotation>. Export it in Pascal VOC's format")
    return root


def _require_size(root: ElementTree.Element, width: int, height: int) -> None:
    """Refuse an annotation of another image size, where the file has one."""
    size = root.findtext("size/width"), root.findtext("size/height")
    if None in size:
        return
    try:
        sides = tuple(float(str(text)) for text in size)  # some tools write 640.0
    except ValueError:
        sides = ()
    if sides not in ((0, 0), (width, height)):
        raise UserError(
            f"its image has {size[0]} × {size[1]} pixels, but the image file has {width} × {height}. Restore the "
            "image it was made for"
        )


def _text(element: ElementTree.Element, name: str) -> str:
    text = (element.findtext(name) or "").strip()
    if not text:
        raise UserError(f"an object has no <{name}>. Name it, or remove the object")
    return text


def _box(element: ElementTree.Element, width: int, height: int) -> tuple[float, float, float, float]:
    """The box of an object, clipped to the image."""
    frame = element.find("bndbox")
    if frame is None:
        raise UserError(f"an object ({_text(element, 'name')}) has no <bndbox>. Add one, or remove the object")
    text = ", ".join(f"{edge} {(frame.findtext(edge) or '?').strip()}" for edge in EDGES)
    try:
        left, top, right, bottom = (float(frame.findtext(edge) or "") for edge in EDGES)
    except ValueError:
        raise UserError(f"a box ({text}) must have four numbers: {', '.join(EDGES)}") from None
    left, top = left - 1, top - 1
    if not (right > left and bottom > top and all(map(math.isfinite, (left, top, right, bottom)))):
        raise UserError(f"a box ({text}) is empty or inverted. Swap its sides, or remove it")
    clipped = max(0.0, left), max(0.0, top), min(float(width), right), min(float(height), bottom)
    over = max(abs(a - b) for a, b in zip(clipped, (left, top, right, bottom), strict=True))
    if over > TOLERANCE or clipped[2] <= clipped[0] or clipped[3] <= clipped[1]:
        raise UserError(
            f"a box ({text}) lies outside the image, which has {width} × {height} pixels. Correct or remove it"
        )
    return clipped


LISTS = Path("ImageSets") / "Main"
TEST_SHARE = 0.2
"""Share of test images where there are no lists."""
VOC20 = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow", "diningtable", "dog",
    "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip
"""VOC's classes, in alphabetical order, as all classes here."""
BENCHMARKS = {
    "VOC2007/trainval, tested on VOC2007/test": "VOC 07",
    "VOC2007/trainval + VOC2012/trainval, tested on VOC2007/test": "VOC 07+12",
}
"""Descriptions of data, and the benchmark of the paper that uses them."""


class AnnotatedImage(NamedTuple):
    """An image file and its objects."""

    path: Path
    width: int
    height: int
    truth: GroundTruth


@dataclass(frozen=True, kw_only=True)
class DetectionData:
    """Training and test images."""

    train: tuple[AnnotatedImage, ...]
    test: tuple[AnnotatedImage, ...]
    classes: tuple[str, ...]
    lists: str
    """The lists and folders, in words."""
    benchmark: str | None
    """The benchmark of the paper with exactly these images: VOC 07, or VOC 07+12."""
    empty_images: int
    """Number of training images without an object, which are left out."""

    def digest(self) -> dict[str, str]:
        """The number of images and a checksum of names and boxes for each split, to detect changes."""
        splits = {"train": self.train, "test": self.test}
        return {name: f"{len(images)} images, {_checksum(images):08x}" for name, images in splits.items()}

    def sample(self, options: ImageOptions, seed: int) -> "DetectionData":
        """At most as many images as the options ask for, sampled by the seed."""
        train = _sample(self.train, options.train_images, random_stream(seed, "train-images"))
        test = _sample(self.test, options.test_images, random_stream(seed, "test-images"))
        whole = len(train) == len(self.train) and len(test) == len(self.test)
        return replace(self, train=train, test=test, benchmark=self.benchmark if whole else None)


def read_voc(options: ImageOptions) -> DetectionData:
    """All images of the two lists, or of an automatic split, checked.

    Every folder of --data and --extra-data is trained on. The test list is that of the first folder that has one: with
    VOC 2007 and 2012 together, 2007's.
    """
    homes = _homes(options.data, options)
    further = [home for place in options.extra_data for home in _homes(place, options)]
    with_lists = [home for home in homes if (home / LISTS).is_dir()]
    split = _automatic_split
    if options.test_share is None and (with_lists or options.train_set or options.test_set):
        homes, split = with_lists or homes, _listed_split
    unique: dict[Path, Path] = {}
    for home in (*homes, *further):
        unique.setdefault(home.resolve(), home)
    *ids, lists = split(homes, list(unique.values()), options)
    train, test = ([one for h, names in of.items() for one in _read_annotations(h, names, options)] for of in ids)
    _require_apart(train, test)
    classes = _classes(train, test, options.classes)
    images = [_annotated_image(one, classes) for one in train]
    train_images = tuple(image for image in images if len(image.truth.labels))
    return DetectionData(
        train=train_images,
        test=tuple(_annotated_image(one, classes) for one in test),
        classes=classes,
        lists=lists,
        benchmark=BENCHMARKS.get(lists) if classes == VOC20 else None,
        empty_images=len(images) - len(train_images),
    )


def _homes(name: str, options: ImageOptions) -> list[Path]:
    """The folders in VOC's layout at a place: itself, or VOC2007, VOC2012, … in it or in its VOCdevkit."""
    kind, _, text = name.partition(":")
    if kind != "voc" or not text:
        raise UserError(
            f"'{name}' is no place of annotated images. Use --data voc:PATH (and --extra-data voc:PATH), where PATH "
            f"holds Annotations, JPEGImages and {LISTS}."
        )
    place = Path(text).expanduser()
    if not place.is_dir():
        raise UserError(f"there is no folder '{printable(place)}'. Use --data voc:PATH with one in VOC's layout.")
    inside = (*sorted(place.glob("VOC[0-9]*")), *sorted(place.glob("VOCdevkit/VOC[0-9]*")))
    homes = [home for home in (place, *inside) if (home / options.annotations).is_dir()]
    if not homes:
        raise UserError(
            f"'{printable(place)}' is not in VOC's layout: it must hold {options.annotations} and {options.images}, or "
            "folders VOC2007, VOC2012 that do. Give folders of other names with --annotations and --images."
        )
    return [place] if place in homes else homes


Split = tuple[dict[Path, list[str]], dict[Path, list[str]], str]
"""The names of the training images and of the test images by folder, and the split in words."""


def _listed_split(homes: list[Path], all_homes: list[Path], options: ImageOptions) -> Split:
    """By two lists in ImageSets/Main: trainval and test, else train and val, or those of the options."""
    names = (options.test_set,) if options.test_set else ("test", "val")
    tests = [(home, name) for name in names for home in homes if (home / LISTS / f"{name}.txt").is_file()]
    test_home, test_name = (*tests, (homes[0], names[0]))[0]
    whole = test_name != "val" and (test_home / LISTS / "trainval.txt").is_file()
    train_name = options.train_set or ("trainval" if whole else "train")
    train = {home: _read_list(home, train_name, "--train-set") for home in all_homes}
    test = {test_home: _read_list(test_home, test_name, "--test-set")}
    lists = " + ".join(f"{home.name}/{train_name}" for home in train)
    return train, test, f"{lists}, tested on {test_home.name}/{test_name}"


def _automatic_split(homes: list[Path], all_homes: list[Path], options: ImageOptions) -> Split:
    """By a hash of the names, so it is the same at every start; images of --extra-data are for training only."""
    share, train, test = options.test_share or TEST_SHARE, {}, {}
    for home in all_homes:
        names = [path.stem for path in (home / options.annotations).glob("*.xml")]
        names.sort(key=lambda name: sha256(name.encode(errors="surrogateescape")).digest())
        count = max(1, round(share * len(names))) if home in homes else 0
        train[home], test[home] = sorted(names[count:]), sorted(names[:count])
    return train, test, f"{' + '.join(home.name for home in all_homes)}, {share:.0%} of the images for the test"


def _read_list(home: Path, name: str, option: str) -> list[str]:
    """The image names of a list: the first word of each line."""
    path = home / LISTS / f"{name}.txt"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        there = ", ".join(sorted(p.stem for p in (home / LISTS).glob("*.txt"))) or "none"
        raise UserError(f"there is no list '{printable(path)}'. Lists there: {there}. Choose with {option}.") from None
    ids = list(dict.fromkeys(line.split()[0] for line in lines if line.strip()))
    if not ids:
        raise UserError(
            f"the list '{printable(path)}' is empty. Write image names into it, or choose another with {option}."
        )
    return ids


def _require_apart(train: list[Annotation], test: list[Annotation]) -> None:
    """Refuse an image in both splits: the same file, or a copy under the same name."""
    train_paths = {key: one.path for one in train for key in (one.path.resolve(), one.path.stem)}
    both = [(train_paths.get(one.path.resolve()) or train_paths.get(one.path.stem), one.path) for one in test]
    both = [(here, there) for here, there in both if here is not None]
    if both:
        here, there = both[0]
        raise UserError(
            f"{len(both)} images are in both splits, training and test, by file or by name, e.g. '{there.stem}': "
            f"'{printable(str(here))}' and '{printable(there)}'. Choose lists that share none with --train-set and "
            "--test-set, or leave out a place of --extra-data."
        )


def _read_annotations(home: Path, ids: list[str], options: ImageOptions) -> list[Annotation]:
    """The annotated images of these names, each of which must have both files."""
    pictures = {p.stem: p for p in sorted((home / options.images).glob("*")) if p.suffix.lower() in ENDINGS}
    xmls = {p.stem: p for p in (home / options.annotations).glob("*.xml")}
    for files, what, folder, kind, other in (
        (pictures, "image", options.images, "annotation", xmls),
        (xmls, "annotation", options.annotations, "image", pictures),
    ):
        missing = [name for name in ids if name not in files]
        if missing:
            has = f"its {kind} is there" if missing[0] in other else f"its {kind} is missing too"
            raise UserError(
                f"{len(missing)} of the {len(ids)} listed images in '{printable(home)}' have no {what} in {folder}: "
                f"the first is '{missing[0]}' ({has}). Add them, or remove them from the lists or the annotations."
            )
    return [read_annotation(xmls[name], pictures[name]) for name in ids]


def _classes(train: list[Annotation], test: list[Annotation], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """All classes, or the wanted ones; each must have a box in the training images."""
    trained, tested = ({name for one in split for name in one.names} for split in (train, test))
    for name in wanted:
        look_up("class", name, dict.fromkeys(sorted(trained | tested)))
    classes = tuple(sorted(set(wanted) or trained | tested))
    for split, names in (("training", trained), ("test", tested)):
        if not names & set(classes):
            of = f" of {', '.join(wanted)}" if wanted else ""
            raise UserError(f"the {split} images have no box{of}. Annotate some, or choose other lists.")
    empty = [name for name in classes if name not in trained]
    if empty:
        raise UserError(
            f"there is no training box for {', '.join(empty)}. Leave {'it' if len(empty) == 1 else 'them'} out by "
            "naming the others with --classes, or choose other lists."
        )
    return classes


def _annotated_image(one: Annotation, classes: tuple[str, ...]) -> AnnotatedImage:
    """The image with its classes as labels; objects of other classes are left out."""
    rows = [i for i, name in enumerate(one.names) if name in classes]
    labels = np.array([classes.index(one.names[i]) for i in rows], np.int64)
    truth = GroundTruth(one.boxes[rows], labels, np.array([one.difficult[i] for i in rows], bool))
    return AnnotatedImage(one.path, one.width, one.height, truth)


def _sample(
    images: tuple[AnnotatedImage, ...], most: int | None, stream: torch.Generator
) -> tuple[AnnotatedImage, ...]:
    if most is None or most >= len(images):
        return images
    rows = torch.randperm(len(images), generator=stream)[:most]
    return tuple(images[i] for i in sorted(rows.tolist()))


def _checksum(images: Iterable[AnnotatedImage]) -> int:
    check = 0
    for image in images:
        check = crc32(image.path.name.encode(errors="surrogateescape"), check)
        for array in image.truth:
            check = crc32(np.ascontiguousarray(array).tobytes(), check)
    return check
