"""Annotated pictures that the package draws itself, in VOC's layout: the forms of `shapes`, several on one picture."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phinets.config.errors import UserError
from phinets.data.shapes import CLASSES, FORMS

SIDE = 128
"""Of a picture, in pixels."""
TRAIN, TEST = 96, 48
"""How many there are to learn from, and to be asked about."""
EDITION = 1
"""Counts up when the same number gives another picture."""
KNOTS = 9
"""The ground is interpolated from so many random colors across."""
EMPTY = 0.3
"""Chance that a cell of a picture is left empty."""
NOISE = 10
"""Half-width of the uniform noise of each pixel, of 255."""
Pixels = NDArray[np.float32]


class Thing(NamedTuple):
    """A form on a picture."""

    name: str
    box: tuple[int, int, int, int]
    """Left, top, right and bottom as VOC writes them: pixels counted from 1, the last ones included."""


def drawn_voc(place: Path) -> Path:
    """The folder of all drawn pictures under a place; written where it is not there yet: all of it or nothing."""
    home = place / f"pictures-{EDITION}"
    if home.is_dir():
        return home
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".drawing-") as aside:
            _write(Path(aside) / home.name)
            _put(Path(aside) / home.name, home)
    except OSError as error:
        raise UserError(f"'{home}' can't be written: {error.strerror or error}. Choose another place.") from error
    return home


def picture(number: int, side: int = SIDE) -> tuple[NDArray[np.uint8], tuple[Thing, ...]]:
    """The picture with a number, (side, side, 3), and what is on it; the same whenever it is asked for."""
    dice = np.random.default_rng([EDITION, number])
    across = int(dice.integers(1, 4))
    cells = [cell for cell in range(across**2) if dice.random() >= EMPTY] or [int(dice.integers(across**2))]
    canvas = _ground(dice, side)
    things = tuple(_lay(canvas, dice, cell, across) for cell in cells)
    canvas += dice.uniform(-NOISE, NOISE, canvas.shape)
    return np.clip(canvas, 0, 255).astype(np.uint8), things


def _ground(dice: np.random.Generator, side: int) -> Pixels:
    """Smooth blotches around mid-gray."""
    knots = dice.integers(76, 180, (KNOTS, KNOTS, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(knots).resize((side, side), Image.Resampling.BILINEAR), np.float32).copy()


def _lay(canvas: Pixels, dice: np.random.Generator, cell: int, across: int) -> Thing:
    """Draw a form of chance, size, turn and paint into its cell, lighter or darker than the ground."""
    side = len(canvas)
    half = side / across / 2
    radius = half * dice.uniform(0.55, 0.95)
    x0, y0 = ((2 * at + 1) * half + dice.uniform(-1, 1) * (half - radius) for at in (cell % across, cell // across))
    turn, name = dice.uniform(0, 2 * np.pi), CLASSES[dice.integers(len(CLASSES))]
    along = np.arange(side, dtype=np.float32) + 0.5
    x, y = ((along - x0) / radius)[None, :], ((along - y0) / radius)[:, None]
    u, v = np.cos(turn) * x + np.sin(turn) * y, np.cos(turn) * y - np.sin(turn) * x
    cover = np.clip(0.5 - FORMS[name](u.astype(np.float32), v.astype(np.float32)) * np.float32(radius), 0, 1)
    paint = (1 if dice.random() < 0.5 else -1) * dice.uniform(64, 102) + dice.uniform(-30, 30, 3)
    canvas += cover[..., None] * paint.astype(np.float32)
    return Thing(name, _box(cover > 0.5))


def _box(inside: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    (top, bottom), (left, right) = (np.flatnonzero(inside.any(axis))[[0, -1]] for axis in (1, 0))
    return int(left) + 1, int(top) + 1, int(right) + 1, int(bottom) + 1


def _write(home: Path) -> None:
    lists = {"trainval": range(TRAIN), "test": range(TRAIN, TRAIN + TEST)}
    for folder in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (home / folder).mkdir(parents=True)
    for name, numbers in lists.items():
        for number in numbers:
            pixels, things = picture(number)
            Image.fromarray(pixels).save(home / "JPEGImages" / f"{number:06d}.png", compress_level=1)
            (home / "Annotations" / f"{number:06d}.xml").write_text("".join(_xml(things)), encoding="utf-8")
        listed = "".join(f"{number:06d}\n" for number in numbers)
        (home / "ImageSets" / "Main" / f"{name}.txt").write_text(listed, encoding="utf-8")


def _xml(things: tuple[Thing, ...]) -> Iterator[str]:
    yield f"<annotation><size><width>{SIDE}</width><height>{SIDE}</height><depth>3</depth></size>"
    for name, (left, top, right, bottom) in things:
        edges = f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
        yield f"<object><name>{name}</name><difficult>0</difficult><bndbox>{edges}</bndbox></object>"
    yield "</annotation>\n"


def _put(made: Path, home: Path) -> None:
    """Into its place, unless somebody else was faster."""
    try:
        os.rename(made, home)
    except OSError:
        if not home.is_dir():
            raise
        shutil.rmtree(made)
