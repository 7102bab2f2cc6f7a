"""How much there is to compute in a piece of work, counted from its settings alone."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from phinets.backbones import backbone
from phinets.config.continual import ContinualConfig
from phinets.config.methods import Contrast, LearnerOptions, Wiring, has_slow, method
from phinets.config.result import Result
from phinets.config.run import DataOptions, PretrainConfig, TrainConfig
from phinets.config.work import Costing, Deriving, Pretraining, Probing, Streaming, Transferring, Work, kind
from phinets.data.home import cache_folder
from phinets.evaluation.linear import fit_probe
from phinets.runs.cost import contender, loader, steps_on
from phinets.runtime.devices import synchronize
from phinets.runtime.environment import device_name
from phinets.runtime.process import own_cores
from phinets.training.run_folder import write_json

BACKWARD = 2
"""A backward pass in forward passes."""
MEASURED = 2 * 512
"""Images that a look's further measures see."""
EVALUATIONS = 250
"""Of the loss, until L-BFGS has found a probe and its strength."""


class Size(NamedTuple):
    """Images of a data set."""

    train: int
    test: int
    bank: int | None = None
    """Labelled ones, where they are not all that is learned from."""


SIZES: Mapping[str, Size] = {
    "shapes": Size(50_000, 10_000),
    "cifar10": Size(50_000, 10_000),
    "cifar100": Size(50_000, 10_000),
    "stl10": Size(105_000, 8_000, 5_000),
    "cifar5m": Size(5_002_240, 10_000, 50_000),
    "imagenet": Size(1_281_167, 50_000),
}
CLASSES: Mapping[str, int] = {"cifar100": 100, "imagenet": 1000}
"""Of data sets that have not ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What is computed."""

    passes: float = 0.0
    """Images that go forward through the encoder; one that comes back as well counts three times."""
    views: float = 0.0
    """Augmented images that are made."""
    steps: float = 0.0
    """Optimizer steps, each of which costs something whatever its size."""
    probes: float = 0.0
    """Evaluations of a linear probe's loss."""
    probed: float = 0.0
    """Products in them."""
    regions: float = 0.0
    """Regions that go through a detector's head; counted as `passes` are."""
    statements: int = 0
    """On learning dynamics."""

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


def amount(work: Work) -> Amount:
    """What a piece of work computes, without what it begins with."""
    return AMOUNTS[type(work)](work)


def passes_of(name: str) -> int:
    """Forward passes that a step needs for each image: two views there and back, and codes without a gradient."""
    there_and_back = 1 + BACKWARD
    match method(name):
        case Contrast():
            return there_and_back + 1
        case Wiring() as wiring:
            slow = 2 * (wiring.sim1_target == "slow") + 2 * wiring.history
            anchor = 0 if wiring.sim2 is None else 1 if wiring.sim2.stop_gradient else there_and_back
            return 2 * there_and_back + slow + anchor
    return 2 * there_and_back


def size_of(config: TrainConfig) -> Size:
    """How many images a run learns from, asks about and knows."""
    known = SIZES.get(config.data, SIZES["cifar10"])
    train = min(known.train, config.source.train_images or known.train)
    test = min(known.test, config.source.test_images or known.test)
    bank = known.bank or train
    return Size(train, test, min(bank, config.evaluation.final_bank or bank))


def _learning(config: TrainConfig, images: int) -> Amount:
    """Some images shown once each, in steps."""
    views = 2 + (method(config.method).anchor is not None)
    return Amount(passes=images * passes_of(config.method), views=images * views, steps=images / config.batch)


def _looks(config: TrainConfig, steps: float) -> Amount:
    evaluation = config.evaluation
    every = steps // evaluation.eval_every if evaluation.eval_every else 0
    each = evaluation.online_bank + evaluation.online_queries + MEASURED * bool(evaluation.health_metrics)
    return Amount(passes=(every + len(evaluation.eval_at_images) + 1) * each)


def _probe(bank: int, features: int, classes: int) -> Amount:
    return Amount(probes=EVALUATIONS, probed=EVALUATIONS * 2.0 * bank * features * classes)


def _pretraining(work: Pretraining) -> Amount:
    """Training, looks, and the last judgement; what an untrained encoder scores is known from other runs."""
    run, size = work.run, size_of(work.run)
    learned = _learning(run, run.epochs * size.train)
    judged = 2 if run.evaluation.encoder == "both" else 1
    score = Amount(passes=judged * ((size.bank or 0) + size.test))
    return learned + _looks(run, learned.steps) + score + _probe(judged * (size.bank or 0), *_widths(run))


def _streaming(work: Streaming) -> Amount:
    """Training, and every task read out by every encoder before it and after each task."""
    run, size = work.run, size_of(work.run)
    tasks = tasks_of(run)
    learned = _learning(run, run.epochs_per_task * size.train)
    bank = min(size.train // tasks, run.evaluation.final_bank or size.train)
    encoders = 2 if run.reading.encoders == "every" and has_slow(method(run.method)) else 1
    readings = encoders * (tasks * run.reading.evals_per_task + 1)
    linear = sum(readout.endswith("linear") for readout in run.reading.readouts)
    features, classes = _widths(run)
    probes = readings * tasks * linear
    read = Amount(passes=readings * (tasks * bank + size.test), probes=probes * EVALUATIONS)
    each = _probe(bank, features, max(2, classes // tasks))
    return learned + _looks(run, learned.steps) + read + Amount(probed=probes * each.probed)


def tasks_of(run: ContinualConfig) -> int:
    """How many tasks a stream has."""
    return run.stream.shape[0] if run.stream.shape else CLASSES.get(run.data, 10) // 2


def _probing(work: Probing) -> Amount:
    size, probe = size_of(work.run), work.probe
    seen = probe.epochs * (size.bank or 0)
    return Amount(passes=seen + size.test, views=seen, steps=seen / probe.batch)


def _transferring(work: Transferring) -> Amount:
    """Pictures there and back, and the regions of each; areas are counted in images of the encoder's own size."""
    how, seen, looks = work.detection.training, work.detection.pictures, work.detection.proposals
    side, own = sum(seen.train_sides) / len(seen.train_sides), work.run.source.image_size
    pictures, asked = how.iterations * how.batch, seen.test_images or 4_952
    learned = pictures * (1 + BACKWARD) * (side / own) ** 2
    regions = pictures * (1 + BACKWARD) * looks.regions + asked * looks.test_proposals
    return Amount(passes=learned + asked * (seen.test_side / own) ** 2, steps=how.iterations, regions=regions)


def _costing(work: Costing) -> Amount:
    """A round that does not count, and one more whose memory is watched."""
    rounds = work.rounds + 2
    passes = sum(passes_of(name) for name in work.methods)
    return Amount(passes=rounds * passes * work.run.batch, steps=rounds * len(work.methods))


def _widths(run: TrainConfig) -> tuple[int, int]:
    """Features of the encoder, and classes of the data; features only nearly, since it is not built for this."""
    wide = {"resnet-tiny": 128, "resnet50": 2048}
    return wide.get(run.backbone, 512), CLASSES.get(run.data, 10)


AMOUNTS: Mapping[type[Work], Callable[[Any], Amount]] = {
    Pretraining: _pretraining,
    Streaming: _streaming,
    Probing: _probing,
    Transferring: _transferring,
    Costing: _costing,
    Deriving: lambda work: Amount(statements=len(work.statements)),
}


def of_run(work: Work) -> PretrainConfig | ContinualConfig | None:
    """The run that a piece of work is about."""
    return None if isinstance(work, Deriving) else work.run


SMALL, LARGE = "resnet-tiny", "resnet18-cifar"
"""Encoders that stand for those with little and with much arithmetic in each layer."""
SIDE = 32
FILE = "speed.json"
REGION = 7
"""Side of the map that a detector's head makes of a region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds of what work is made of: of a GPU, or of one core."""

    step: float
    """A step, beyond its arithmetic."""
    small: float
    """A multiply-add in a small encoder."""
    large: float
    """A multiply-add in a large one."""
    view: float
    """A pixel of an augmented view."""
    evaluation: float
    """An evaluation of a linear probe's loss, beyond its arithmetic."""

    def multiply_add(self, each: float) -> float:
        """In an encoder with so many of them for each image: between the small and the large one on a log scale."""
        few, many = (multiply_adds(name, SIDE) for name in (SMALL, LARGE))
        share = min(1.0, max(0.0, math.log(each / few) / math.log(many / few)))
        return math.exp((1 - share) * math.log(self.small) + share * math.log(self.large))


def known_speed(device: torch.device) -> Speed:
    """The speed of a device: as it was measured before on this machine, else measured now."""
    path = cache_folder() / FILE
    name = f"{device_name(device)}, torch {torch.__version__}"
    kept = _kept(path)
    with suppress(TypeError):
        if name in kept:
            return Speed(**kept[name])
    found = measured(device)
    with suppress(OSError, ValueError):  # a folder that can't be written: measured anew the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**kept, name: asdict(found)})
    return found


def measured(device: torch.device) -> Speed:
    """About a second of short steps."""
    few, many = (4, 32) if device.type == "cpu" else (32, 256)
    with _one_core():
        short, long = _step_seconds(SMALL, few, device), _step_seconds(SMALL, many, device)
        heavy, view = _step_seconds(LARGE, few, device, times=1), _view_seconds(device)
        probe = _probe_seconds()
    each = max((long - short) / (many - few), 0.1 * long / many)
    step, passes = max(short - few * each, 0.0), passes_of("simsiam")
    return Speed(
        step=step,
        small=each / passes / multiply_adds(SMALL, SIDE),
        large=max(heavy - step, 0.1 * heavy) / few / passes / multiply_adds(LARGE, SIDE),
        view=view,
        evaluation=probe / EVALUATIONS,
    )


@contextmanager
def _one_core() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@cache
def multiply_adds(name: str, side: int) -> float:
    """Of an encoder, for one image; nothing is computed for it."""
    return _counted(name, side)[0]


@cache
def region_multiply_adds(name: str, side: int) -> float:
    """Of a C4 detector's head, for one region: those of the encoder's last stage on a map of 7 × 7."""
    return _counted(name, side)[1]


@cache
def _counted(name: str, side: int) -> tuple[float, float]:
    with torch.device("meta"):
        encoder = backbone(name).eval()
        picture = torch.zeros(1, 3, side, side)
    areas: list[int] = []
    last = getattr(encoder, "layer4", encoder)

    def note(module: nn.Module, given: Any, made: Tensor) -> None:
        areas.append(made.shape[-1] * made.shape[-2] if made.ndim == 4 else REGION**2)

    last.register_forward_hook(note)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        encoder(picture)
    total = counter.get_total_flops() / 2
    of_last = sum(counter.get_flop_counts().get(f"{type(encoder).__name__}.layer4", {}).values()) / 2
    return total, (of_last or total) * REGION**2 / areas[0]


def _step_seconds(name: str, batch: int, device: torch.device, times: int = 3) -> float:
    config = PretrainConfig(
        method="simsiam",
        backbone=name,
        batch=batch,
        source=DataOptions(image_size=SIDE),
        learner=LearnerOptions(projector=(256, 256), h_hidden=(64,)),
    )
    made = loader(config, device)
    train_state, views = contender(config, device), made.part(0, 0, made.order(0)).views
    return _quickest(lambda: steps_on(train_state, views), device, times)


def _view_seconds(device: torch.device, images: int = 128) -> float:
    """Of a pixel: two views and the image itself are made of each."""
    made = loader(PretrainConfig(batch=images, source=DataOptions(image_size=SIDE)), device)
    rows = made.order(0)
    return _quickest(lambda: made.part(0, 0, rows), device, 2) / (3 * images * SIDE**2)


def _probe_seconds() -> float:
    draw = torch.Generator().manual_seed(0)
    features, labels = torch.randn(300, 128, generator=draw), torch.arange(300) % 2
    return _quickest(lambda: fit_probe(features, labels), torch.device("cpu"), 1)


def _quickest(task: Callable[[], object], device: torch.device, times: int) -> float:
    """Seconds of the quickest of some turns, after one that does not count.

    On a CPU they are the seconds of the core alone, which others who want it too don't make longer.
    """
    now = process_time if device.type == "cpu" else perf_counter
    found = []
    for _ in range(times + 1):
        began = now()
        task()
        synchronize(device)
        found.append(now() - began)
    return min(found[1:])


def _kept(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


STATEMENT = 1.0
"""Seconds that a statement on dynamics takes to check."""
Sort = tuple[Any, ...]
"""What works have in common whose time is mended alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderName:
    """Tells how long work may take."""

    speed: Speed
    at_once: int = 1
    """Pieces of work that go on side by side: one for each core, where there is no GPU."""
    mended: Mapping[Sort, float] = field(default_factory=dict)
    """By what estimates of some sorts of work are multiplied."""

    def seconds(self, work: Work) -> float:
        """Of this machine, all of it being at such work."""
        ratio = next((self.mended[sort] for sort in sorts(work) if sort in self.mended), 1.0)
        return raw_seconds(work, self.speed) * ratio / self.at_once


def clock(device: torch.device, results: Iterable[Result] = ()) -> EncoderName:
    """The clock of this machine, mended by results of the same device."""
    speed, on_cores = known_speed(device), device.type == "cpu"
    ratios: dict[Sort, list[float]] = defaultdict(list)
    for result in results:
        if result.failed is None and result.environment.get("device_name") == device_name(device):
            threads = int(result.environment.get("threads", 1)) if on_cores else 1
            ratio = result.seconds * threads / raw_seconds(result.work, speed)
            for sort in sorts(result.work):
                ratios[sort].append(ratio)
    mended = {sort: median(found) for sort, found in ratios.items()}
    return EncoderName(speed=speed, at_once=own_cores() if on_cores else 1, mended=mended)


def raw_seconds(work: Work, speed: Speed) -> float:
    """What the amount of computing comes to on one GPU or core."""
    parts = amount(work)
    if isinstance(work, Deriving):
        return parts.statements * STATEMENT
    run, side = work.run, work.run.source.image_size
    each = multiply_adds(run.backbone, side)
    arithmetic = parts.passes * each
    if parts.regions:
        arithmetic += parts.regions * region_multiply_adds(run.backbone, side)
    return (
        arithmetic * speed.multiply_add(each)
        + parts.views * side**2 * speed.view
        + parts.steps * speed.step
        + parts.probes * speed.evaluation
        + parts.probed * speed.large
    )


def sorts(work: Work) -> tuple[Sort, ...]:
    """From the narrowest to the widest: the same method and batch, the same encoder, the same kind of work."""
    if isinstance(work, Deriving):
        return ((kind(work),),)
    whole = (kind(work), work.run.backbone, work.run.source.image_size)
    if isinstance(work, Costing):
        return (whole,)
    return ((*whole, work.run.batch, work.run.method), (*whole, work.run.batch), whole)
