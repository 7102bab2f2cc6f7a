"""How much there is to compute in a piece of work, counted from its settings alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from phinets.config.continual import ContinualConfig
from phinets.config.methods import Contrast, Wiring, has_slow, method
from phinets.config.run import RunConfig, Training
from phinets.config.work import Costing, Deriving, Pretraining, Probing, Streaming, Transferring, Work

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
    """Optimiser steps, each of which costs something whatever its size."""
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


def size_of(config: Training) -> Size:
    """How many images a run learns from, asks about and knows."""
    known = SIZES.get(config.data, SIZES["cifar10"])
    train = min(known.train, config.source.train_images or known.train)
    test = min(known.test, config.source.test_images or known.test)
    bank = known.bank or train
    return Size(train, test, min(bank, config.judging.final_bank or bank))


def _learning(config: Training, images: int) -> Amount:
    """Some images shown once each, in steps."""
    views = 2 + (method(config.method).anchor is not None)
    return Amount(passes=images * passes_of(config.method), views=images * views, steps=images / config.batch)


def _looks(config: Training, steps: float) -> Amount:
    judging = config.judging
    every = steps // judging.look_every if judging.look_every else 0
    each = judging.live_bank + judging.live_queries + MEASURED * bool(judging.measures)
    return Amount(passes=(every + len(judging.look_at) + 1) * each)


def _probe(bank: int, features: int, classes: int) -> Amount:
    return Amount(probes=EVALUATIONS, probed=EVALUATIONS * 2.0 * bank * features * classes)


def _pretraining(work: Pretraining) -> Amount:
    """Training, looks, and the last judgement; what an untrained encoder scores is known from other runs."""
    run, size = work.run, size_of(work.run)
    learned = _learning(run, run.epochs * size.train)
    judged = 2 if run.judging.judged_encoder == "both" else 1
    score = Amount(passes=judged * ((size.bank or 0) + size.test))
    return learned + _looks(run, learned.steps) + score + _probe(judged * (size.bank or 0), *_widths(run))


def _streaming(work: Streaming) -> Amount:
    """Training, and every task read out by every encoder before it and after each task."""
    run, size = work.run, size_of(work.run)
    tasks = tasks_of(run)
    learned = _learning(run, run.epochs_per_task * size.train)
    bank = min(size.train // tasks, run.judging.final_bank or size.train)
    encoders = 2 if run.reading.encoders == "every" and has_slow(method(run.method)) else 1
    readings = encoders * (tasks * run.reading.readings_per_task + 1)
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


def _widths(run: Training) -> tuple[int, int]:
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


def of_run(work: Work) -> RunConfig | ContinualConfig | None:
    """The run that a piece of work is about."""
    return None if isinstance(work, Deriving) else work.run
