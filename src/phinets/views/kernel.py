"""Views by compiled code for the CPU: what `augment` does with torch, several times faster.

A view of 32 × 32 pixels fits into a core's own cache, so each image passes through all its operations there, one image
at a time. The formulas are those of `transforms`, where they are explained.

Importing this module imports numba, so `augment` imports it when it is needed. The code is plain loops over rows, which
compile fast: each slice or array function would add a tenth of a second to a machine's first run.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from phinets.views.parameters import CONTRAST, HUE, SATURATION

F = TypeVar("F", bound=Callable[..., Any])
Array = NDArray[Any]

# float32 by name: a bare 1.0 would be a double, and everything computed with it
ZERO, HALF, ONE, TWO, THREE, FOUR, SIX = (np.float32(x) for x in (0, 0.5, 1, 2, 3, 4, 6))
RED, GREEN, BLUE = np.float32(0.2989), np.float32(0.587), np.float32(0.114)
TINY = np.float32(1e-12)
BYTE = np.float32(1 / 255)

njit: Any = numba.njit  # its stubs lack some of its options
OPTIONS = {"fastmath": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def inner(function: F) -> F:
    """Compile a function that only compiled functions call."""
    return cast(F, njit(no_cpython_wrapper=True, **OPTIONS)(function))


def outer(function: F) -> F:
    """Compile a function when it is first called, and cache the machine code on disk if possible."""
    try:
        return cast(F, njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return cast(F, njit(**OPTIONS)(function))


@inner
def unit(x: np.float32) -> np.float32:
    """Clamp to [0, 1]."""
    x = x if x > ZERO else ZERO
    return x if x < ONE else ONE


@inner
def lens(axis: Array, cubic: bool, first: Array, weights: Array) -> None:
    """`transforms.resize_matrix` without its zeros: output i sees pixel first[i] + t with weights[t, i].

    first (size), weights (taps, size). Output i is centered at start + (i + ½)·step, where a negative step mirrors; no
    pixel below low or from high on is seen.
    """
    start, step, low, high = axis[0], axis[1], int(axis[2]), int(axis[3])
    size, taps = len(first), len(weights)
    sharp = 1 / abs(step) if abs(step) > 1 else 1.0
    reach = (2 if cubic else 1) / sharp
    for i in range(size):
        center = start + (i + 0.5) * step - 0.5
        begin = math.floor(center - reach) + 1
        begin = high - taps if begin > high - taps else begin
        begin = low if begin < low else begin
        first[i] = begin
        total = 0.0
        for t in range(taps):
            d = abs(begin + t - center) * sharp
            if begin + t >= high:
                w = 0.0
            elif not cubic:
                w = 1 - d if d < 1 else 0.0
            elif d < 1:
                w = (1.5 * d - 2.5) * d * d + 1
            else:
                w = ((-0.5 * d + 2.5) * d - 4) * d + 2 if d < 2 else 0.0
            weights[t, i] = w
            total += w
        scale = 1 / total
        for t in range(taps):
            weights[t, i] *= scale


@inner
def narrow(plane: Array, rows: Array, first: Array, weights: Array, lines: Array) -> None:
    """The required rows of a uint8 plane, resized along x: (H, W) → the same rows of `lines`, (·, size)."""
    line = lines[len(lines) - 1]
    for y in range(int(rows[2]), int(rows[3])):
        source, target = plane[y], lines[y]
        for x in range(len(source)):
            line[x] = source[x] * BYTE
        for t in range(0, len(weights), 2):
            w0, w1 = weights[t], weights[t + 1]
            for x in range(len(first)):
                i = np.uint32(first[x] + t)
                target[x] = w0[x] * line[i] + w1[x] * line[i + np.uint32(1)] + (target[x] if t > 0 else ZERO)


@inner
def shorten(lines: Array, first: Array, weights: Array, plane: Array) -> None:
    """The rows resized along y and clamped to [0, 1], which a cubic may leave: `lines` (·, size) → (size, size)."""
    last = len(weights) - 2
    for y in range(len(first)):
        target = plane[y]
        for t in range(0, len(weights), 2):
            w0, w1 = weights[t, y], weights[t + 1, y]
            upper, lower = lines[first[y] + t], lines[first[y] + t + 1]
            for x in range(len(target)):
                value = w0 * upper[x] + w1 * lower[x] + (target[x] if t > 0 else ZERO)
                target[x] = unit(value) if t == last else value


@outer
def crop(images: Array, records: Array, scratch: tuple[Array, Array, Array], views: Array) -> None:
    """Crop, resize and flip: uint8 (n, 3, H, W) → views (n, 3, size, size) in [0, 1].

    A single record holds for all images. scratch: first (2, size) and weights (2, taps, size) with an even number of
    taps; lines, zeros of (H + taps + 1, the larger of W + taps and size), so that a window may end beyond the image.
    """
    first, weights, lines = scratch
    for n in range(len(views)):
        if n < len(records):
            record = records[n]
            for axis in range(2):
                lens(record.axes[axis], record.cubic > 0, first[axis], weights[axis])
        for c in range(3):
            narrow(images[n, c], records[n if n < len(records) else 0].axes[0], first[1], weights[1], lines)
            shorten(lines, first[0], weights[0], views[n, c])


@inner
def mean(view: Array) -> np.float32:
    """The mean luma."""
    red, green, blue = view[0], view[1], view[2]
    total = ZERO
    for i in range(len(red)):
        total += RED * red[i] + GREEN * green[i] + BLUE * blue[i]
    return total / np.float32(len(red))


@inner
def blend(view: Array, f: np.float32, to_gray: np.float32, plus: np.float32) -> None:
    """`transforms.blend_`: f·x + to_gray·gray(x) + plus, clamped to [0, 1]."""
    red, green, blue = view[0], view[1], view[2]
    for i in range(len(red)):
        r, g, b = red[i], green[i], blue[i]
        towards = to_gray * (RED * r + GREEN * g + BLUE * b) + plus
        red[i], green[i], blue[i] = unit(f * r + towards), unit(f * g + towards), unit(f * b + towards)


@inner
def turn(view: Array, turns: np.float32) -> None:
    """`transforms.hue_`; as turns lie in [−½, ½], one addition brings h back to [0, 6]."""
    red, green, blue = view[0], view[1], view[2]
    for i in range(len(red)):
        r, g, b = red[i], green[i], blue[i]
        low, high = r if r < g else g, g if r < g else r
        low, high = b if b < low else low, b if b > high else high
        chroma = high - low
        h = (g + b - r - low) / (chroma if chroma > TINY else TINY) + ONE
        h = (h if g >= b else -h) + SIX * turns
        h = h + SIX if h < ZERO else h
        red[i] = low + chroma * unit(abs(h - THREE) - ONE)
        green[i] = low + chroma * unit(TWO - abs(h - TWO))
        blue[i] = low + chroma * unit(TWO - abs(h - FOUR))


@outer
def recolor(views: Array, records: Array) -> None:
    """Color jitter, each image in its own order, and gray: (n, 3, size²) in place."""
    for n in range(len(records)):
        record, view = records[n], views[n]
        if record.jitter:
            for step in range(4):
                change = record.order[step]
                f = record.factors[change]
                if change == HUE:
                    turn(view, f)
                else:
                    plus = (ONE - f) * mean(view) if change == CONTRAST else ZERO
                    blend(view, f, ONE - f if change == SATURATION else ZERO, plus)
        if record.gray:
            blend(view, ZERO, ONE, ZERO)


@outer
def blur(views: Array, records: Array) -> None:
    """`transforms.blur_matrix` on both axes, where sigma is not 0: (n, 3, size, size) in place.

    Six sigma away a weight is below 1e-8 of the central one and left out.
    """
    size = views.shape[2]
    for n in range(len(records)):
        sigma = records[n].sigma
        if sigma > 0:
            reach = min(max(1, size // 20), math.ceil(6 * sigma))
            lines = np.empty((size + 2, size + 2 * reach), np.float32)
            weights = lines[size + 1]
            total = 0.0
            for k in range(-reach, reach + 1):
                total += math.exp(-0.5 * (k / sigma) ** 2)
            for k in range(-reach, reach + 1):
                weights[k + reach] = math.exp(-0.5 * (k / sigma) ** 2) / total
            for c in range(3):
                smear(views[n, c], reach, weights, lines)


@inner
def smear(plane: Array, reach: int, weights: Array, lines: Array) -> None:
    """One plane blurred along y into `lines`, then along x back into the plane."""
    size = len(plane)
    line = lines[size]
    for y in range(size):
        target = lines[y]
        for k in range(2 * reach + 1):
            mirrored = abs(y + k - reach)
            source = plane[mirrored if mirrored < size else 2 * (size - 1) - mirrored]
            for x in range(size):
                target[x] = weights[k] * source[x] + (target[x] if k > 0 else ZERO)
    for y in range(size):
        source, target = lines[y], plane[y]
        for x in range(size):
            line[x + reach] = source[x]
        for k in range(1, reach + 1):
            line[reach - k], line[size + reach - 1 + k] = source[k], source[size - 1 - k]
        for k in range(2 * reach + 1):
            for x in range(size):
                target[x] = weights[k] * line[x + k] + (target[x] if k > 0 else ZERO)


@outer
def finish(views: Array, records: Array, scale: Array, shift: Array) -> None:
    """Solarize where selected, and normalize to scale·x + shift: (n, 3, size²) in place."""
    for n in range(len(views)):
        inverted = n < len(records) and records[n].solarize > 0
        for c in range(3):
            plane = views[n, c]
            for i in range(len(plane)):
                x = plane[i]
                plane[i] = scale[c] * (ONE - x if inverted and x >= HALF else x) + shift[c]
