"""What can be read off a learner beside its losses: how its codes lie, and how its layers stand."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from phinets.backbones.frozen import frozen
from phinets.config.exam import Looked
from phinets.config.methods import Clock
from phinets.config.record import Verdict
from phinets.config.run import Measure
from phinets.data import load
from phinets.engine.feed import Feed, Part
from phinets.evaluation.collapse import health
from phinets.evaluation.geometry import alignment, spectrum, stable_rank, uniformity, weight_cosine, weight_distance
from phinets.experiments.bench import settled_place
from phinets.experiments.judging import AT_ONCE
from phinets.experiments.subject import learner_of
from phinets.methods import Learner
from phinets.views import Views

Readings = dict[str, float | list[float]]
"""Numbers, and spectra, by name."""


class Sample(NamedTuple):
    """Two views of some images as a frozen learner sees them."""

    features: Tensor
    """Of the first view, (n, features)."""
    z1: Tensor
    z2: Tensor
    """The codes of both, (n, d)."""


def checkup(learner: Learner, views: Views, measures: tuple[Measure, ...], clock: Clock = "fast") -> Readings:
    """The measures that are asked for, of a learner that is left as it was; codes are those of its fast or slow f."""
    return _read(learner, _seen_by(learner, clock, views), measures)


def _read(learner: Learner, sample: Sample, measures: Iterable[Measure]) -> Readings:
    readings: Readings = {}
    for name in measures:
        readings |= MEASURES[name](learner, sample)
    return readings


def _seen_by(learner: Learner, clock: Clock, views: Views) -> Sample:
    """What the frozen encoder makes of two views, some images at a time."""
    f = learner.f if clock == "fast" else learner.slow_encoder()
    parts = []
    with frozen(learner):
        for x1, x2 in zip(views.first.split(AT_ONCE), views.second.split(AT_ONCE), strict=True):
            features = f.backbone(x1)
            parts.append([x.float().cpu() for x in (features, f.projector(features), f(x2))])
    return Sample(*(torch.cat(part) for part in zip(*parts, strict=True)))


def first_seen(feed: Feed, images: int) -> Part:
    """Two views of the first images of a feed, the same whenever they are asked for."""
    feed = replace(feed, batch=min(images, len(feed.images)), parts=1, rank=0, ranks=1, anchor=None)
    return feed.part(0, 0, torch.arange(feed.batch))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that can be read off the learner of a run."""

    readings: Readings
    verdict: Verdict
    protocol: str


def report(place: Path, looked: Looked, device: torch.device) -> Report:
    """Every measure of the learner in a run folder or a checkpoint, on two views of training images."""
    learner, config, step = learner_of(place)
    learner = learner.to(device)
    name = config.data if looked.data is None else settled_place(looked.data)
    options = config.source if looked.root is None else replace(config.source, root=looked.root)
    feed = Feed(
        images=load(name, options).train.images,
        plan=config.plan,
        anchor=None,
        batch=1,
        seed=config.seed,
        size=options.image_size,
        device=device,
        dtype=next(learner.parameters()).dtype,
    )
    views = first_seen(feed, looked.images).views
    sample = _seen_by(learner, looked.encoder, views)
    collapse = health(sample.z1)
    readings: Readings = {**asdict(collapse), **_read(learner, sample, MEASURES)}
    protocol = (
        f"{config.method}, {config.backbone}, after step {step}; codes z and features by the {looked.encoder} encoder, "
        f"of {len(views.first)} training images of {name} in two views, in eval mode"
    )
    return Report(readings=readings, verdict=collapse.verdict, protocol=protocol)


def _alignment(learner: Learner, sample: Sample) -> Readings:
    return {"alignment": alignment(sample.z1, sample.z2), "uniformity": uniformity(sample.z1)}


def _spectrum(learner: Learner, sample: Sample) -> Readings:
    return {"spectrum_codes": spectrum(sample.z1).tolist(), "spectrum_features": spectrum(sample.features).tolist()}


def _stable_rank(learner: Learner, sample: Sample) -> Readings:
    ranks: Readings = {}
    for name, network in learner.predictors().items():
        layers = [layer.weight for layer in network.modules() if isinstance(layer, nn.Linear)]
        ranks |= {f"stable_rank_{name}{i + 1}": stable_rank(weight.float().cpu()) for i, weight in enumerate(layers)}
    return ranks


def _slow_gap(learner: Learner, sample: Sample) -> Readings:
    if learner.slow is None:
        return {}
    fast, slow = list(learner.f.parameters()), list(learner.slow.parameters())
    return {"slow_cosine": weight_cosine(fast, slow), "slow_distance": weight_distance(fast, slow)}


MEASURES: Mapping[Measure, Callable[[Learner, Sample], Readings]] = {
    "alignment": _alignment,
    "spectrum": _spectrum,
    "stable-rank": _stable_rank,
    "slow-gap": _slow_gap,
}
