"""The seam to the compiled kernel: on a CPU with numba installed, views are made there, elsewhere with torch.

Both ways agree to float rounding. The kernel leaves Python's lock alone, so its parts run on as many threads as torch
uses, and a thread that makes views ahead of time does not hold up the one that learns.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.views import Channels, Interpolation
from phinets.views.parameters import ViewParams

Statistics = tuple[Channels, Channels]
Looks = NDArray[Any]

LOOK = np.dtype(
    [
        ("axes", np.float64, (2, 4)),  # rows and columns: start, step, low, high; see `kernel.lens`
        ("cubic", np.uint8),
        ("jitter", np.uint8),
        ("gray", np.uint8),
        ("solarise", np.uint8),
        ("order", np.int64, 4),
        ("factors", np.float32, 4),
        ("sigma", np.float64),  # 0 for no blur
    ],
    align=True,
)
"""All that a view of one image needs, as the kernel reads it."""

CACHE = 2**16  # pixels that go through the kernel's functions together, so that they stay in a core's own cache
WORTH_A_THREAD = 2**15  # pixels below which handing them to another thread costs more than it saves


@cache
def kernel() -> ModuleType | None:
    """The compiled functions, if numba is installed: imported when first asked for, which takes a moment."""
    try:
        from phinets.views import kernel
    except ImportError:
        return None
    return kernel


def serves(images: Tensor) -> bool:
    """Whether the kernel can make the views of these images."""
    return images.device.type == "cpu" and kernel() is not None


def drawn_looks(drawn: ViewParams, interpolation: Interpolation, size: int) -> Looks:
    """What was drawn for a batch, one look per image."""
    looks = np.zeros(len(drawn), LOOK)
    (top, left), (tall, wide) = drawn.box.numpy().reshape(-1, 2, 2).transpose(1, 2, 0)
    flip = drawn.flip.numpy()
    rows, columns = looks["axes"].transpose(1, 2, 0)
    rows[:] = top, tall / size, top, top + tall
    columns[:] = np.where(flip, left + wide, left), np.where(flip, -wide, wide) / size, left, left + wide
    for name in ("jitter", "gray", "solarise", "order", "factors"):
        looks[name] = getattr(drawn, name).numpy()
    looks["cubic"] = interpolation == "bicubic"
    looks["sigma"] = np.where(drawn.blur.numpy(), drawn.sigma.numpy(), 0)
    return looks


def central_look(height: int, width: int, short_side: int, size: int) -> Looks:
    """`geometry.center` as the one look of every image."""
    look = np.zeros(1, LOOK)
    shortest = min(height, width)
    for axis, extent in enumerate((height, width)):
        resized = int(short_side * extent / shortest)
        step = extent / resized
        look["axes"][0, axis] = round((resized - size) / 2) * step, step, 0, extent
    look["cubic"] = True
    return look


def fused(images: Tensor, looks: Looks, size: int, statistics: Statistics | None) -> Tensor:
    """The images under their looks, one each or one for all: uint8 (n, 3, H, W) → float (n, 3, size, size).

    In [0, 1], or normalized where statistics (mean, std) are given.
    """
    views = torch.empty(len(images), 3, size, size)
    source, target = images.contiguous().numpy(), views.numpy()

    def make(part: slice) -> None:
        _make(source[part], looks if len(looks) == 1 else looks[part], statistics, target[part])

    here, *elsewhere = _shares(len(images), size**2)
    with ThreadPoolExecutor(max(1, len(elsewhere)), thread_name_prefix="views") as threads:
        others = [threads.submit(make, part) for part in elsewhere]
        make(here)
    for other in others:
        other.result()
    return views


def _make(images: NDArray[Any], looks: Looks, statistics: Statistics | None, views: NDArray[Any]) -> None:
    compiled = kernel()
    assert compiled is not None
    size = views.shape[2]
    scratch = _scratch(looks, images.shape[2], images.shape[3], size)
    mean, std = (np.array(values) for values in statistics or ((0.0,) * 3, (1.0,) * 3))
    scale, shift = (1 / std).astype(np.float32), (-mean / std).astype(np.float32)
    changed = bool((looks["jitter"] | looks["gray"]).any())
    blurred = bool(looks["sigma"].any())
    for part in _parts(len(views), max(1, CACHE // size**2)):
        some = looks if len(looks) == 1 else looks[part]
        view = views[part]
        planes = view.reshape(len(view), 3, -1)
        compiled.crop(images[part], some, scratch, view)
        if changed:
            compiled.recolor(planes, some)
        if blurred:
            compiled.blur(view, some)
        compiled.finish(planes, some, scale, shift)


def _scratch(looks: Looks, height: int, width: int, size: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Room for the kernel: where each window begins, its weights, and the rows halfway through a resize."""
    step = max(1.0, np.abs(looks["axes"][:, :, 1]).max())
    taps = 2 * math.ceil(2 * step if looks["cubic"].any() else step)
    lines = np.zeros((height + taps + 1, max(width + taps, size)), np.float32)
    return np.zeros((2, size), np.int64), np.zeros((2, taps, size), np.float32), lines


def _parts(n: int, at_most: int) -> Iterator[slice]:
    return (slice(start, start + at_most) for start in range(0, n, at_most))


def _shares(n: int, pixels: int) -> list[slice]:
    """The batch in as many equal parts as torch has threads, or fewer if it is small."""
    threads = max(1, min(torch.get_num_threads(), n * pixels // WORTH_A_THREAD, n))
    return list(_parts(n, max(1, math.ceil(n / threads))))
