"""Boxes as arrays: what is there, what was found, and how much two boxes have in common.

A box is (left, top, right, bottom) in pixels from 0, half-open: right and bottom lie just behind the last pixel.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Truth(NamedTuple):
    """The objects of a picture."""

    boxes: Floats
    """(n, 4)."""
    labels: NDArray[np.int64]
    """(n,), classes from 0."""
    difficult: NDArray[np.bool_]
    """(n,), objects that nobody is blamed for not finding."""


class Found(NamedTuple):
    """What a detector says of a picture."""

    boxes: Floats
    """(n, 4)."""
    labels: NDArray[np.int64]
    """(n,), classes from 0."""
    scores: Floats
    """(n,), how sure it is."""


def overlap(one: Floats, other: Floats) -> Floats:
    """Intersection over union of every box of `one` (n, 4) with every box of `other` (m, 4): (n, m), in [0, 1]."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    common = np.prod(np.clip(high - low, 0.0, None), axis=2)
    union = _area(one)[:, None] + _area(other)[None, :] - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=common > 0))


def _area(boxes: Floats) -> Floats:
    return np.asarray(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1))
