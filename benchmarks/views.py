"""What views cost: two views and the anchor of every image, beside the usual ways to make them, on one core.

All contenders take turns on the same images, round after round. Images per second are those of a contender's fastest
round, and each ratio is the median over the rounds of the ratio within a round, so that a machine that is busy for a
while slows both sides alike. An operation's share is the time that is saved without it.

    python benchmarks/views.py                                  # 32 pixels as for CIFAR, 224 as for ImageNet
    python benchmarks/views.py --rounds 50 --json
"""

import json
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any
from unittest.mock import patch

import torch
import tyro
from PIL import Image, ImageFilter
from torch import Tensor
from torchvision import transforms
from torchvision.transforms import v2

from phinets.config.views import PLANS, Augmentation, ViewPlan
from phinets.views import Views, augment, draw, make_views, random_stream

OURS, OURS_WITH_TORCH = "phinets", "phinets, without numba"
PIL, TENSORS, KORNIA = "torchvision, PIL", "torchvision v2, tensors", "kornia"
Turn = Callable[[], Any]


@dataclass(frozen=True)
class Options:
    """Images per second of this package's views and of the usual ways, and where the time goes."""

    rounds: int = 15
    """How often each contender takes its turn."""
    json: bool = False
    """Print one JSON document."""


@dataclass(frozen=True)
class Setting:
    """Which views, of how many images."""

    plan: str
    size: int
    batch: int


SETTINGS = (Setting("simsiam-cifar", 32, 128), Setting("simsiam-imagenet", 224, 8))


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    torch.set_num_threads(1)
    torch.empty(2**22)  # freed at once, as in any training process: from here on the C library keeps freed memory
    document = {
        "numba": augment.kernel() is not None,
        "kornia": find_spec("kornia") is not None,
        "settings": [measured(setting, options.rounds) for setting in SETTINGS],
    }
    print(json.dumps(document) if options.json else table(document))


def measured(setting: Setting, rounds: int) -> dict[str, Any]:
    """The figures of one setting."""
    images = photographs(setting)
    times = take_turns(contenders(setting, images), rounds)
    return {
        "plan": setting.plan,
        "size": setting.size,
        "batch": setting.batch,
        "contenders": {name: row(name, times, setting.batch) for name in times},
        "shares": shares(setting, images, rounds),
    }


def photographs(setting: Setting) -> Tensor:
    """Smooth random images in which every color occurs."""
    coarse = torch.rand(setting.batch, 3, 8, 8, generator=random_stream(0, "images"))
    smooth = torch.nn.functional.interpolate(coarse, (setting.size, setting.size), mode="bicubic")
    return (smooth.clamp(0, 1) * 255).to(torch.uint8)


def contenders(setting: Setting, images: Tensor) -> dict[str, Turn]:
    """One turn per contender: a batch of images in, a batch of first views, second views and anchors out."""
    plan = PLANS[setting.plan]
    turns: dict[str, Turn] = {}
    if augment.kernel() is not None:
        turns[OURS] = lambda: make_views(images, plan, random_stream(0))
    turns[OURS_WITH_TORCH] = lambda: with_torch(images, plan)
    turns[PIL] = by_pil(images, plan, setting.size)
    turns[TENSORS] = by_tensors(images, plan, setting.size)
    if find_spec("kornia"):
        turns[KORNIA] = by_kornia(images, plan, setting.size)
    return turns


def with_torch(images: Tensor, plan: ViewPlan) -> Views:
    with patch.object(augment, "kernel", lambda: None):
        return make_views(images, plan, random_stream(0))


class PilBlur:
    """SimSiam's own blur (facebookresearch/simsiam, loader.py): PIL's, with a sigma drawn for each image."""

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))


def by_pil(images: Tensor, plan: ViewPlan, size: int) -> Turn:
    """Image by image as torchvision's data sets do: array → PIL → transforms → tensor, and the batch stacked."""
    view, anchor = pipelines(transforms, plan, size, [transforms.ToTensor()], PilBlur())
    arrays = [image.permute(1, 2, 0).contiguous().numpy() for image in images]
    return lambda: one_by_one([Image.fromarray(array) for array in arrays], view, anchor)


def by_tensors(images: Tensor, plan: ViewPlan, size: int) -> Turn:
    """Image by image with transforms.v2 on uint8 tensors."""
    to_float = [v2.ToDtype(torch.float32, scale=True)]
    view, anchor = pipelines(v2, plan, size, to_float, v2.GaussianBlur(size // 20 * 2 + 1, (0.1, 2.0)))
    return lambda: one_by_one(images, view, anchor)


def pipelines(t: Any, plan: ViewPlan, size: int, to_float: list[Any], blur: Any) -> tuple[Any, Any]:
    """The plan as people write it with torchvision: the transforms of a view, and those of the anchor."""
    a = plan.first or Augmentation()
    end = [*to_float, t.Normalize(plan.mean, plan.std)]
    blurring = [t.RandomApply([blur], a.blur_p)] if a.blur_p else []
    view = t.Compose(
        [
            t.RandomResizedCrop(size, scale=a.crop_scale),
            t.RandomHorizontalFlip(),
            t.RandomApply([t.ColorJitter(*a.jitter)], a.jitter_p),
            t.RandomGrayscale(a.gray_p),
            *blurring,
            *end,
        ]
    )
    return view, t.Compose([t.Resize(size * 8 // 7, t.InterpolationMode.BICUBIC), t.CenterCrop(size), *end])


def one_by_one(images: Any, view: Any, anchor: Any) -> Views:
    first, second, original = zip(*((view(image), view(image), anchor(image)) for image in images), strict=True)
    return Views(torch.stack(first), torch.stack(second), torch.stack(original))


def by_kornia(images: Tensor, plan: ViewPlan, size: int) -> Turn:
    """Kornia's augmentations on the batch, parameters drawn per image; crops by slicing, its default and faster way."""
    k, geometry = import_module("kornia.augmentation"), import_module("kornia.geometry.transform")
    a = plan.first or Augmentation()
    normalize = k.Normalize(torch.tensor(plan.mean), torch.tensor(plan.std))
    kernel = size // 20 * 2 + 1
    blurring = [k.RandomGaussianBlur((kernel, kernel), (0.1, 2.0), p=a.blur_p)] if a.blur_p else []
    view = torch.nn.Sequential(
        k.RandomResizedCrop((size, size), scale=a.crop_scale),
        k.RandomHorizontalFlip(),
        k.ColorJitter(*a.jitter, p=a.jitter_p),
        k.RandomGrayscale(p=a.gray_p),
        *blurring,
        normalize,
    )

    def turn() -> Views:
        floats = images.float() / 255
        resized = geometry.resize(floats, size * 8 // 7, interpolation="bicubic", antialias=True)
        return Views(view(floats), view(floats), normalize(geometry.center_crop(resized, (size, size))))

    return turn


def take_turns(turns: Mapping[str, Turn], rounds: int) -> dict[str, list[float]]:
    """Seconds of each contender in each round, after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in turns}
    for i in range(rounds + 1):
        for name, turn in turns.items():
            began = perf_counter()
            turn()
            if i > 0:
                times[name].append(perf_counter() - began)
    return times


def row(name: str, times: dict[str, list[float]], batch: int) -> dict[str, Any]:
    """A contender's figures: images per second, and how many times as fast our own two ways are."""
    faster = {
        ours: statistics.median(b / a for a, b in zip(times[ours], times[name], strict=True))
        for ours in (OURS, OURS_WITH_TORCH)
        if ours in times
    }
    return {"images_per_second": batch / min(times[name]), "times_as_fast": faster}


def shares(setting: Setting, images: Tensor, rounds: int) -> dict[str, float]:
    """Each operation's share of our own time."""
    plan = PLANS[setting.plan]

    def without(**changes: float) -> Turn:
        view = replace(plan.first or Augmentation(), **changes)  # type: ignore[arg-type]
        return lambda: make_views(images, replace(plan, first=view, second=view), random_stream(0))

    def drawing() -> None:
        for view in (plan.first, plan.second):
            draw(
                view if isinstance(view, Augmentation) else Augmentation(),
                setting.batch,
                setting.size,
                setting.size,
                random_stream(0),
            )

    turns: dict[str, Turn] = {"everything": without(), "drawing": drawing}
    turns["anchor"] = lambda: make_views(images, plan, random_stream(0), anchor=None)
    turns |= {"color jitter": without(jitter_p=0.0), "gray": without(gray_p=0.0), "blur": without(blur_p=0.0)}
    best = {name: min(times) for name, times in take_turns(turns, 4 * rounds).items()}
    whole = best.pop("everything")
    found = {name: max(0.0, time if name == "drawing" else whole - time) / whole for name, time in best.items()}
    return found | {"crop, flip, normalize": 1 - sum(found.values())}


def table(document: dict[str, Any]) -> str:
    """The same for people."""
    lines = [] if document["kornia"] else ["kornia is not installed and takes no part (pip install kornia)"]
    if not document["numba"]:
        lines.append("numba is not installed: this package uses torch (pip install numba)")
    for setting in document["settings"]:
        lines += ["", f"{setting['plan']}, {setting['size']} pixels, {setting['batch']} images, one thread"]
        ours = next(iter(setting["contenders"].values()))["times_as_fast"]
        lines.append(f"{'':26}{'images/s':>10}" + "".join(f"{name + ' ×':>26}" for name in ours))
        for name, figures in setting["contenders"].items():
            ratios = "".join(f"{figures['times_as_fast'][one]:26.2f}" for one in ours)
            lines.append(f"{name:26}{figures['images_per_second']:10.0f}{ratios}")
        shares = sorted(setting["shares"].items(), key=lambda item: -item[1])
        lines.append("its time: " + ", ".join(f"{name} {share:.0%}" for name, share in shares))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
