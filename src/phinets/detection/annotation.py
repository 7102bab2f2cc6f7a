"""One annotated picture in VOC's format: an XML file with boxes, and the picture that they are drawn on."""

import math
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from phinets.config.errors import UserError
from phinets.data.pictures import FORMATS, ORIENTATION, SIDEWAYS, shown
from phinets.detection.boxes import Floats

TOLERANCE = 1.0
"""Pixels by which a box may reach over the edge, and is cut: some tools count from 0, others from 1."""
EDGES = ("xmin", "ymin", "xmax", "ymax")


class Annotated(NamedTuple):
    """A picture and what is on it, by name."""

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
        raise UserError("it has a DOCTYPE, which VOC's annotations don't have and which may hide anything. Take it out")


def annotated(xml: Path, picture: Path) -> Annotated:
    """The annotation in a file, once it agrees with its picture.

    VOC counts pixels from 1 and its boxes hold their last pixel. Here they count from 0 and end behind it, as in
    Detectron2: (xmin − 1, ymin − 1, xmax, ymax).
    """
    width, height = upright_size(picture)
    try:
        root = _root(xml)
        _require_size(root, width, height)
        objects = root.findall("object")
        names = tuple(_text(thing, "name") for thing in objects)
        boxes = [_box(thing, width, height) for thing in objects]
        difficult = tuple(_is_difficult(thing) for thing in objects)
    except UserError as error:
        raise UserError(f"the annotation '{shown(xml)}' can't be used: {error}.") from error
    return Annotated(picture, width, height, names, np.array(boxes, np.float64).reshape(-1, 4), difficult)


def upright_size(picture: Path) -> tuple[int, int]:
    """Width and height as the camera held it, from the file's head."""
    try:
        with Image.open(picture, formats=FORMATS) as file:
            width, height = file.size
            return (height, width) if file.getexif().get(ORIENTATION, 1) in SIDEWAYS else (width, height)
    except Exception as error:  # a damaged file may raise anything
        raise UserError(
            f"the picture '{shown(picture)}' can't be read: {error}. Put a whole one there, or take it and its "
            "annotation out of the lists."
        ) from error


def _root(xml: Path) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(xml.read_bytes(), ElementTree.XMLParser(target=_Builder()))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"it is no whole XML ({error}). Write it anew, or take it out of the lists") from error
    except OSError as error:
        raise UserError(f"{error.strerror or error}") from error
    if root.tag != "annotation":
        raise UserError(f"it begins with <{root.tag}>, not with <annotation>. Export it in Pascal VOC's format")
    return root


def _require_size(root: ElementTree.Element, width: int, height: int) -> None:
    """Refuse boxes that were drawn on another picture, where the file says how large theirs was."""
    said = root.findtext("size/width"), root.findtext("size/height")
    if None in said:
        return
    sides = tuple(_number(str(text)) for text in said)  # some tools write 640.0
    if sides != (0, 0) and sides != (width, height):
        raise UserError(
            f"it is of a picture of {said[0]} × {said[1]} pixels, but the picture has {width} × {height}. Put the "
            "picture back that it was drawn on"
        )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(thing: ElementTree.Element, name: str) -> str:
    text = (thing.findtext(name) or "").strip()
    if not text:
        raise UserError(f"an object has no <{name}>. Name it, or take the object out")
    return text


def _box(thing: ElementTree.Element, width: int, height: int) -> tuple[float, float, float, float]:
    """The box of an object, cut at the picture's edge."""
    frame = thing.find("bndbox")
    if frame is None:
        raise UserError(f"an object ({_text(thing, 'name')}) has no <bndbox>. Give it one, or take the object out")
    said = ", ".join(f"{edge} {(frame.findtext(edge) or '?').strip()}" for edge in EDGES)
    try:
        left, top, right, bottom = (float(frame.findtext(edge) or "") for edge in EDGES)
    except ValueError:
        raise UserError(f"a box ({said}) must have four numbers: {', '.join(EDGES)}") from None
    left, top = left - 1, top - 1
    if not (right > left and bottom > top and all(map(math.isfinite, (left, top, right, bottom)))):
        raise UserError(f"a box ({said}) is empty or inverted. Swap its sides, or take it out")
    cut = max(0.0, left), max(0.0, top), min(float(width), right), min(float(height), bottom)
    over = max(abs(a - b) for a, b in zip(cut, (left, top, right, bottom), strict=True))
    if over > TOLERANCE or cut[2] <= cut[0] or cut[3] <= cut[1]:
        raise UserError(
            f"a box ({said}) lies outside the picture, which has {width} × {height} pixels. Draw it inside, or take it "
            "out"
        )
    return cut


def _is_difficult(thing: ElementTree.Element) -> bool:
    return (thing.findtext("difficult") or "0").strip() == "1"
