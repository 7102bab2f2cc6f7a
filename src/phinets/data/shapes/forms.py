"""The ten forms: signed distance-like functions of a point (u, v) in the frame of an object.

Negative inside, positive outside, growing by about one per unit of length near the outline, so that drawing can
smooth the edge. Every form fits the unit disc. A new form is one function and one line in `FORMS`.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

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
