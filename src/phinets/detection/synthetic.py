"""Synthetic annotated images in VOC's layout: several forms of `shapes` on each image."""

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
"""Side of an image, in pixels."""
TRAIN, TEST = 96, 48
"""Number of training images and of test images."""
EDITION = 1
"""Increases when the same number gives another image."""
KNOTS = 9
"""The background is interpolated from KNOTS × KNOTS random colors."""
EMPTY = 0.3
"""Probability of an empty cell."""
NOISE = 10
"""Half-width of the uniform noise of each pixel, of 255."""
Pixels = NDArray[np.float32]


class SceneObject(NamedTuple):
    """A form on an image."""

    name: str
    box: tuple[int, int, int, int]
    """Left, top, right and bottom as VOC writes them: pixels counted from 1, the last ones included."""


def synthetic_voc(place: Path) -> Path:
    """The folder of all images under a place; written on the first call, all of it or nothing."""
    home = place / f"pictures-{EDITION}"
    if home.is_dir():
        return home
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".drawing-") as temporary:
            _write(Path(temporary) / home.name)
            _move(Path(temporary) / home.name, home)
    except OSError as error:
        raise UserError(f"'{home}' can't be written: {error.strerror or error}. Choose another place.") from error
    return home


def synthetic_image(number: int, side: int = SIDE) -> tuple[NDArray[np.uint8], tuple[SceneObject, ...]]:
    """The image with a number, (side, side, 3), and its objects; always the same."""
    rng = np.random.default_rng([EDITION, number])
    across = int(rng.integers(1, 4))
    cells = [cell for cell in range(across**2) if rng.random() >= EMPTY] or [int(rng.integers(across**2))]
    canvas = _background(rng, side)
    objects = tuple(_draw(canvas, rng, cell, across) for cell in cells)
    canvas += rng.uniform(-NOISE, NOISE, canvas.shape)
    return np.clip(canvas, 0, 255).astype(np.uint8), objects


def _background(rng: np.random.Generator, side: int) -> Pixels:
    """Smooth colors around mid-gray."""
    knots = rng.integers(76, 180, (KNOTS, KNOTS, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(knots).resize((side, side), Image.Resampling.BILINEAR), np.float32).copy()


def _draw(canvas: Pixels, rng: np.random.Generator, cell: int, across: int) -> SceneObject:
    """Draw a random form, size, angle and color into its cell, lighter or darker than the background."""
    side = len(canvas)
    half = side / across / 2
    radius = half * rng.uniform(0.55, 0.95)
    x0, y0 = ((2 * at + 1) * half + rng.uniform(-1, 1) * (half - radius) for at in (cell % across, cell // across))
    angle, name = rng.uniform(0, 2 * np.pi), CLASSES[rng.integers(len(CLASSES))]
    along = np.arange(side, dtype=np.float32) + 0.5
    x, y = ((along - x0) / radius)[None, :], ((along - y0) / radius)[:, None]
    u, v = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    cover = np.clip(0.5 - FORMS[name](u.astype(np.float32), v.astype(np.float32)) * np.float32(radius), 0, 1)
    paint = (1 if rng.random() < 0.5 else -1) * rng.uniform(64, 102) + rng.uniform(-30, 30, 3)
    canvas += cover[..., None] * paint.astype(np.float32)
    return SceneObject(name, _box(cover > 0.5))


def _box(inside: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    (top, bottom), (left, right) = (np.flatnonzero(inside.any(axis))[[0, -1]] for axis in (1, 0))
    return int(left) + 1, int(top) + 1, int(right) + 1, int(bottom) + 1


def _write(home: Path) -> None:
    lists = {"trainval": range(TRAIN), "test": range(TRAIN, TRAIN + TEST)}
    for folder in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (home / folder).mkdir(parents=True)
    for name, numbers in lists.items():
        for number in numbers:
            pixels, objects = synthetic_image(number)
            Image.fromarray(pixels).save(home / "JPEGImages" / f"{number:06d}.png", compress_level=1)
            (home / "Annotations" / f"{number:06d}.xml").write_text("".join(_xml(objects)), encoding="utf-8")
        names = "".join(f"{number:06d}\n" for number in numbers)
        (home / "ImageSets" / "Main" / f"{name}.txt").write_text(names, encoding="utf-8")


def _xml(objects: tuple[SceneObject, ...]) -> Iterator[str]:
    yield f"<annotation><size><width>{SIDE}</width><height>{SIDE}</height><depth>3</depth></size>"
    for name, (left, top, right, bottom) in objects:
        edges = f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
        yield f"<object><name>{name}</name><difficult>0</difficult><bndbox>{edges}</bndbox></object>"
    yield "</annotation>\n"


def _move(folder: Path, home: Path) -> None:
    """Move it into place, unless another process was faster."""
    try:
        os.rename(folder, home)
    except OSError:
        if not home.is_dir():
            raise
        shutil.rmtree(folder)
