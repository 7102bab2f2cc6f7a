"""Apply view parameters: uint8 images and parameters in, float images out; nothing random happens here.

A CPU with numba installed uses the compiled kernel, every other device and a CPU without numba use torch. Both agree to
float rounding. The kernel releases Python's lock, so it runs on as many threads as torch uses, and a thread that
prefetches views does not hold up the training thread.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.views import Augmentation, Channels, Interpolation
from phinets.views.parameters import HUE, ViewParams
from phinets.views.transforms import blur_matrix, center, gray, jitter_, resized_crop, sandwich, solarize

Statistics = tuple[Channels, Channels]
"""Mean and std of the channels."""
Records = NDArray[Any]
RECORD = np.dtype(
    [
        ("axes", np.float64, (2, 4)),  # rows and columns: start, step, low, high; see `kernel.lens`
        ("cubic", np.uint8),
        ("jitter", np.uint8),
        ("gray", np.uint8),
        ("solarize", np.uint8),
        ("order", np.int64, 4),
        ("factors", np.float32, 4),
        ("sigma", np.float64),  # 0 for no blur
    ],
    align=True,
)
"""The parameters of one view of one image, as the kernel reads them."""

TORCH_PIXELS = 2**17  # that torch handles at a time on a CPU, so that intermediate results stay in the cache
KERNEL_PIXELS = 2**16  # that pass the kernel's functions together, so that they stay in a core's own cache
THREAD_PIXELS = 2**15  # below which handing them to another thread costs more than it saves
NEVER = 4  # the step at which hue changes, 0 to 3, or this


def apply(
    images: Tensor, augmentation: Augmentation, params: ViewParams, size: int, statistics: Statistics | None = None
) -> Tensor:
    """The augmented images: uint8 (n, 3, H, W) → float (n, 3, size, size), on the images' device.

    In [0, 1], or normalized by `statistics`. Image i depends on row i of `params` alone.
    """
    _require_fit(images, params)
    if _uses_kernel(images):
        return _by_kernel(images, _records(params, augmentation.interpolation, size), size, statistics)
    return _normalize_(_by_torch(images, augmentation, params, size), statistics)


def central(images: Tensor, short_side: int, size: int, statistics: Statistics | None = None) -> Tensor:
    """The images without augmentation: short side to `short_side`, then the central size × size; uint8 → as `apply`."""
    height, width = images.shape[2:]
    if not height == width == short_side == size and _uses_kernel(images):
        return _by_kernel(images, _central_record(height, width, short_side, size), size, statistics)
    views = torch.empty(len(images), 3, size, size, device=images.device)
    for rows in _torch_slices(images, size):
        views[rows] = center(images[rows].float().div_(255), short_side, size)
    return _normalize_(views, statistics)


def _require_fit(images: Tensor, params: ViewParams) -> None:
    """Compiled code does not check that boxes lie within the images."""
    corner, (height, width) = params.box[:, :2], images.shape[2:]
    bottom, right = (corner + params.box[:, 2:]).amax(dim=0).tolist()
    if len(params) != len(images) or bottom > height or right > width or corner.min() < 0:
        raise UserError(
            f"the parameters do not belong to these images: {len(params)} boxes within {bottom} × {right} pixels for "
            f"{len(images)} images of {height} × {width}. Draw for their number and size."
        )


def _normalize_(images: Tensor, statistics: Statistics | None) -> Tensor:
    """(x − mean) / std per channel, in place."""
    if statistics is None:
        return images
    mean, std = (images.new_tensor(values)[:, None, None] for values in statistics)
    return images.sub_(mean).div_(std)


def _by_torch(images: Tensor, augmentation: Augmentation, params: ViewParams, size: int) -> Tensor:
    """Images whose hue changes at the same step are handled together, so that 24 orders need four groups."""
    hue_steps = torch.where(params.jitter, (params.order == HUE).int().argmax(dim=1), NEVER)
    steps, rows = hue_steps.sort(stable=True)
    views = torch.empty(len(images), 3, size, size, device=images.device)
    for some in _torch_slices(images, size):
        here = rows[some].to(images.device)
        new = _augment(images.index_select(0, here), augmentation, params.select(rows[some]), steps[some], size)
        views.index_copy_(0, here, new)
    return views


def _augment(images: Tensor, augmentation: Augmentation, params: ViewParams, steps: Tensor, size: int) -> Tensor:
    on = params.to(images.device)
    views = resized_crop(images.float().div_(255), on.box, on.flip, size, augmentation.interpolation)
    ends = torch.searchsorted(steps, torch.arange(NEVER), right=True).tolist()
    for step, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        if end > start:
            jitter_(views[start:end], on.factors[start:end], on.order[start:end], step)

    def blur(some: Tensor, rows: Tensor) -> Tensor:
        matrix = blur_matrix(on.sigma[rows], size)
        return sandwich(some, matrix, matrix)

    _change_(views, params.gray, lambda some, _: gray(some))
    _change_(views, params.blur, blur)
    _change_(views, params.solarize, lambda some, _: solarize(some))
    return views


def _change_(views: Tensor, selected: Tensor, change: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Change the selected images in place; the selection is read on the CPU, so no device waits for it."""
    rows = selected.nonzero()[:, 0].to(views.device)
    if len(rows):
        views.index_copy_(0, rows, change(views.index_select(0, rows), rows).expand(-1, 3, -1, -1))


def _torch_slices(images: Tensor, size: int) -> Iterator[slice]:
    """A few images at a time on a CPU, all at once elsewhere."""
    pixels = max(size**2, images.shape[2] * images.shape[3])
    return _slices(len(images), TORCH_PIXELS // pixels if images.device.type == "cpu" else len(images))


def _slices(n: int, length: int) -> Iterator[slice]:
    length = max(1, length)
    return (slice(start, start + length) for start in range(0, n, length))


@cache
def kernel() -> ModuleType | None:
    """The compiled functions, if numba is installed; the first import takes a moment."""
    try:
        from phinets.views import kernel
    except ImportError:
        return None
    return kernel


def _uses_kernel(images: Tensor) -> bool:
    return images.device.type == "cpu" and kernel() is not None


def _records(params: ViewParams, interpolation: Interpolation, size: int) -> Records:
    """A batch's parameters, one record per image."""
    records = np.zeros(len(params), RECORD)
    (top, left), (tall, wide) = params.box.numpy().reshape(-1, 2, 2).transpose(1, 2, 0)
    flip = params.flip.numpy()
    rows, columns = records["axes"].transpose(1, 2, 0)
    rows[:] = top, tall / size, top, top + tall
    columns[:] = np.where(flip, left + wide, left), np.where(flip, -wide, wide) / size, left, left + wide
    for name in ("jitter", "gray", "solarize", "order", "factors"):
        records[name] = getattr(params, name).numpy()
    records["cubic"] = interpolation == "bicubic"
    records["sigma"] = np.where(params.blur.numpy(), params.sigma.numpy(), 0)
    return records


def _central_record(height: int, width: int, short_side: int, size: int) -> Records:
    """`transforms.center` as one record for all images."""
    record = np.zeros(1, RECORD)
    shortest = min(height, width)
    for axis, extent in enumerate((height, width)):
        resized = int(short_side * extent / shortest)
        step = extent / resized
        record["axes"][0, axis] = round((resized - size) / 2) * step, step, 0, extent
    record["cubic"] = True
    return record


def _by_kernel(images: Tensor, records: Records, size: int, statistics: Statistics | None) -> Tensor:
    """The views by the compiled kernel, with one record for each image or one for all, on torch's number of threads."""
    views = torch.empty(len(images), 3, size, size)
    source, target, n = images.contiguous().numpy(), views.numpy(), len(images)

    def run(rows: slice) -> None:
        _run_kernel(source[rows], records if len(records) == 1 else records[rows], statistics, target[rows])

    threads = max(1, min(torch.get_num_threads(), n * size**2 // THREAD_PIXELS, n))
    here, *elsewhere = _slices(n, math.ceil(n / threads))
    with ThreadPoolExecutor(max(1, len(elsewhere)), thread_name_prefix="views") as pool:
        others = [pool.submit(run, rows) for rows in elsewhere]
        run(here)
    for other in others:
        other.result()
    return views


def _run_kernel(images: NDArray[Any], records: Records, statistics: Statistics | None, views: NDArray[Any]) -> None:
    compiled = kernel()
    assert compiled is not None
    size = views.shape[2]
    step = max(1.0, np.abs(records["axes"][:, :, 1]).max())
    taps = 2 * math.ceil(2 * step if records["cubic"].any() else step)
    lines = np.zeros((images.shape[2] + taps + 1, max(images.shape[3] + taps, size)), np.float32)
    scratch = np.zeros((2, size), np.int64), np.zeros((2, taps, size), np.float32), lines  # see `kernel.crop`
    mean, std = (np.array(values) for values in statistics or ((0.0,) * 3, (1.0,) * 3))
    scale, shift = (1 / std).astype(np.float32), (-mean / std).astype(np.float32)
    recolor, blur = bool((records["jitter"] | records["gray"]).any()), bool(records["sigma"].any())
    for rows in _slices(len(views), KERNEL_PIXELS // size**2):
        some = records if len(records) == 1 else records[rows]
        view = views[rows]
        planes = view.reshape(len(view), 3, -1)
        compiled.crop(images[rows], some, scratch, view)
        if recolor:
            compiled.recolor(planes, some)
        if blur:
            compiled.blur(view, some)
        compiled.finish(planes, some, scale, shift)
