"""The ten forms: signed distance-like functions of a point (u, v) in the frame of an object.

Negative inside, positive outside, growing by about one per unit of length near the outline, so that drawing can
smooth the edge. Every form fits the unit disc. A new form is one function and one line in `FORMS`.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phinets.config.errors import UserError
from phinets.data.shapes.scene import WORLD, Numbers, Scene, World, draw_labels, draw_scenes

Plane = NDArray[np.float32]
Form = Callable[[Plane, Plane], Plane]


def _length(u: Plane, v: Plane) -> Plane:
    return np.sqrt(u * u + v * v)


def _box(u: Plane, v: Plane, half_width: float, half_height: float) -> Plane:
    return np.maximum(np.abs(u) - half_width, np.abs(v) - half_height)


def disc(u: Plane, v: Plane) -> Plane:
    return _length(u, v) - 0.85


def ring(u: Plane, v: Plane) -> Plane:
    off_the_middle: Plane = np.abs(_length(u, v) - 0.77)
    return off_the_middle - 0.2


def square(u: Plane, v: Plane) -> Plane:
    return _box(u, v, 0.7, 0.7)


def triangle(u: Plane, v: Plane) -> Plane:
    """Equilateral: half-planes at 120° with inradius ½."""
    farthest: Plane = np.maximum(-v, np.abs(u) * 0.8660254 + v * 0.5)
    return farthest - 0.5


def cross(u: Plane, v: Plane) -> Plane:
    return np.minimum(_box(u, v, 0.95, 0.24), _box(u, v, 0.24, 0.95))


def star(u: Plane, v: Plane) -> Plane:
    """Five points: fold the plane into one wedge of 36°, where the outline is a single straight edge."""
    u = np.abs(u)
    for side in (1.0, -1.0):  # the mirrors have normals (±cos 36°, −sin 36°)
        a, b = np.float32(side * 0.80901699), np.float32(-0.58778525)
        beyond: Plane = np.maximum(u * a + v * b, 0.0)
        beyond += beyond
        u, v = u - beyond * a, v - beyond * b
    return np.abs(u) * 0.8660254 + (v - 1.0) * 0.35


def crescent(u: Plane, v: Plane) -> Plane:
    """A disc less a disc pushed to one side."""
    disc, bite = _length(u, v) - 0.95, 0.75 - _length(u - 0.45, v)
    crescent: Plane = np.maximum(disc, bite)
    return crescent


def bars(u: Plane, v: Plane) -> Plane:
    """Three in parallel."""
    v = np.abs(v)
    nearest: Plane = np.minimum(v, np.abs(v - 0.56))
    return _box(u, nearest, 0.7, 0.15)


def dots(u: Plane, v: Plane) -> Plane:
    """Four discs at the corners of a square."""
    u, v = np.abs(u), np.abs(v)
    return _length(u - 0.5, v - 0.5) - 0.29


def hourglass(u: Plane, v: Plane) -> Plane:
    """Two triangles that meet at their tips."""
    return np.maximum(np.abs(v) - 0.78, np.abs(u) * 0.8 - np.abs(v) * 0.55 - 0.05)


FORMS: Mapping[str, Form] = {
    form.__name__: form for form in (disc, ring, square, triangle, cross, star, crescent, bars, dots, hourglass)
}
CLASSES: tuple[str, ...] = tuple(FORMS)


Window = tuple[slice, slice, slice]
SMALLEST = 8
_SCENES_AT_ONCE = 4096
"""Scenes are cheap and small: make many in one go."""
_PIXELS_AT_ONCE = 64 * 1024
"""Planes of this many float32 stay in the cache; larger and smaller groups are slower."""


def draw(
    indices: ArrayLike, *, seed: int = 0, size: int = 32, world: World = WORLD
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The pictures with these indices and their classes: uint8 (n, 3, size, size) and int64 (n,).

    A pure function of (seed, index, size, world) for each picture: neither its neighbors nor their order matter.
    """
    wanted = _require_indices(indices, size)
    images = np.empty((len(wanted), 3, size, size), np.uint8)
    labels = np.empty(len(wanted), np.int64)
    for rows, scene in _scenes(wanted, seed, size, world):
        images[rows], labels[rows] = _picture(scene, size, world), scene.label[:, 0, 0]
    return images, labels


def object_cover(indices: ArrayLike, *, seed: int = 0, size: int = 32, world: World = WORLD) -> NDArray[np.float32]:
    """How much of each pixel the objects cover, 0 to 1: (n, size, size)."""
    wanted = _require_indices(indices, size)
    cover = np.empty((len(wanted), size, size), np.float32)
    for rows, scene in _scenes(wanted, seed, size, world):
        for cell, window in enumerate(_windows(size, world.across)):
            cover[rows, *window[1:]] = _cover(scene, cell, window, size, world.across)
    return cover


def _require_indices(indices: ArrayLike, size: int) -> NDArray[np.int64]:
    """The indices as an array; UserError if they are invalid."""
    wanted = np.asarray(indices)
    if size < SMALLEST:
        raise UserError(f"a picture of {size} × {size} pixels cannot show a form. Ask for size {SMALLEST} or more.")
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise UserError(f"indices must be a flat list of whole numbers, not {wanted.dtype} of shape {wanted.shape}.")
    if wanted.size and wanted.min() < 0:
        raise UserError(f"there is no picture number {wanted.min()}. Count from 0.")
    return wanted.astype(np.int64)


def _scenes(wanted: NDArray[np.int64], seed: int, size: int, world: World) -> Iterator[tuple[NDArray[np.intp], Scene]]:
    """Rows of the result with their scenes, in cache-sized groups sorted by class, so that a group needs few forms."""
    step = max(1, _PIXELS_AT_ONCE // size**2)
    order = np.argsort(draw_labels(wanted, seed), kind="stable")
    for start in range(0, len(order), _SCENES_AT_ONCE):
        rows = order[start : start + _SCENES_AT_ONCE]
        scene = draw_scenes(wanted[rows], seed, world)
        for first in range(0, len(rows), step):
            group = slice(first, first + step)
            yield rows[group], scene.of(group)


def _picture(scene: Scene, size: int, world: World) -> NDArray[np.uint8]:
    """Lay the objects over the ground, light both, and add noise: (n, 3, size, size)."""
    objects = _objects(scene, size, world.across)
    strokes, light = _strokes(scene, size), _light(scene, size)
    noise = scene.noise(3 * size * size).reshape(-1, 3, size, size)
    picture = np.empty(noise.shape, np.uint8)
    for channel in range(3):
        color = objects[channel]
        color += _marble(scene.marble[channel], size)
        color += strokes
        color *= light
        color += noise[:, channel] * np.float32(2.0 * world.noise)
        color += 0.5 - 255.0 * world.noise
        picture[:, channel] = np.clip(color, 0.0, 255.0, out=color)
    return picture


def _pixel_centers(size: int) -> NDArray[np.float32]:
    """From −1 at one edge of the frame to 1 at the other: (size,)."""
    return np.arange(1 - size, size, 2).astype(np.float32) / np.float32(size)


def _ramp(a: Numbers, b: Numbers, x: Numbers, y: Numbers) -> Plane:
    """The plane a·x + b·y; the products are taken along each axis, where they are few."""
    return a * x[..., None, :] + b * y[..., :, None]


def _windows(size: int, across: int) -> list[Window]:
    """The pixels of each cell, row by row."""
    edges = [size * k // across for k in range(across + 1)]
    spans = [slice(low, high) for low, high in pairwise(edges)]
    return [(slice(None), rows, columns) for rows in spans for columns in spans]


def _objects(scene: Scene, size: int, across: int) -> Plane:
    """What the objects add to each channel: (3, n, size, size)."""
    layer = np.empty((3, len(scene.key), size, size), np.float32)
    for cell, window in enumerate(_windows(size, across)):
        cover = _cover(scene, cell, window, size, across)
        cover *= _stripes(scene.stripes[:, cell], window, size, across)
        for channel in range(3):
            np.multiply(cover, scene.paint[channel, cell], out=layer[channel][window])
    return layer


def _cover(scene: Scene, cell: int, window: Window, size: int, across: int) -> Plane:
    """How much of each pixel in its window an object covers: all or none beyond half a pixel from the outline."""
    (cos, sin), radius, half = scene.heading[:, cell], scene.radius[cell], 1.0 / across
    middle = ((cell % across) * 2 + 1 - across) * half, ((cell // across) * 2 + 1 - across) * half
    x, y = (
        (_pixel_centers(size)[span] - (np.float32(start) + center[:, 0] * half)) / (radius[:, 0] * half)
        for span, start, center in zip((window[2], window[1]), middle, scene.center[:, cell], strict=True)
    )
    cover = _distance(scene.label[:, 0, 0], _ramp(cos, sin, x, y), _ramp(-sin, cos, x, y))
    cover *= radius * (-0.5 * half * size)
    cover += 0.5
    return np.clip(cover, 0.0, 1.0, out=cover)


def _stripes(stripes: Numbers, window: Window, size: int, across: int) -> Plane:
    """The share of its paint that an object keeps at each pixel: less between its stripes."""
    often_x, often_y, begin, depth = stripes
    centers = _pixel_centers(size) * np.float32(across)
    share = _ramp(often_x, often_y, centers[window[2]], centers[window[1]])
    share += begin
    share -= np.floor(share)
    share -= 0.5
    np.abs(share, out=share)
    share *= -2.0 * depth
    share += 1.0
    return share


def _distance(label: NDArray[np.int64], u: Plane, v: Plane) -> Plane:
    """Distance from the outline of each picture's own form."""
    distance = np.empty_like(u)
    for k in np.flatnonzero(np.bincount(label)):
        rows = label == k
        distance[rows] = FORMS[CLASSES[k]](u[rows], v[rows])
    return distance


def _strokes(scene: Scene, size: int) -> Plane:
    """A few short strokes, a little lighter or darker than the ground."""
    total = np.zeros((len(scene.key), size, size), np.float32)
    half = np.float32(size * 0.5)
    centers = _pixel_centers(size) * half
    for cx, cy, cos, sin, length, width, tone in scene.strokes:
        x, y = centers - cx[:, 0] * half, centers - cy[:, 0] * half
        along, across = _ramp(cos, sin, x, y), _ramp(-sin, cos, x, y)
        for inside, extent in ((along, length), (across, width)):
            np.abs(inside, out=inside)
            np.subtract(extent * half + 0.5, inside, out=inside)
        np.minimum(along, across, out=along)
        np.clip(along, 0.0, 1.0, out=along)
        along *= tone
        total += along
    return total


def _marble(knots: Numbers, size: int) -> Plane:
    """Smooth blotches: the values at the knots of a coarse lattice, interpolated along x and then along y."""
    lattice = np.moveaxis(knots[..., 0, 0], -1, 0)
    cells = lattice.shape[1] - 1
    place = (_pixel_centers(size) + 1.0) * np.float32(cells * 0.5)
    cell = np.floor(place).astype(np.intp)
    share = place - np.floor(place)
    rows = lattice[:, :, cell]
    rows += (lattice[:, :, cell + 1] - rows) * share
    marble: Plane = rows[:, cell]
    marble += (rows[:, cell + 1] - marble) * share[:, None]
    return marble


def _light(scene: Scene, size: int) -> Plane:
    """The light on each pixel, scaled so that full brightness is 255."""
    centers = _pixel_centers(size) * 255.0
    light = _ramp(scene.light[0], scene.light[1], centers, centers)
    light += scene.light[2] * 255.0
    return light
