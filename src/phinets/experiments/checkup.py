"""What can be read off a learner beside its losses: how its codes lie, and how its layers stand."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from phinets.config.record import Verdict
from phinets.config.run import Measure
from phinets.data import load
from phinets.engine.feed import Feed, Part
from phinets.evaluation.collapse import health
from phinets.evaluation.features import frozen
from phinets.evaluation.geometry import alignment, spectrum, stable_rank, uniformity, weight_cosine, weight_distance
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


def checkup(learner: Learner, views: Views, measures: tuple[Measure, ...]) -> Readings:
    """The measures that are asked for, of a learner that is left as it was."""
    readings: Readings = {}
    with frozen(learner):
        features = learner.f.backbone(views.first)
        z1, z2 = learner.f.projector(features), learner.f(views.second)
        sample = Sample(*(x.float().cpu() for x in (features, z1, z2)))
        for name in measures:
            readings |= MEASURES[name](learner, sample)
    return readings


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


def report(place: Path, images: int, root: str | None, device: torch.device) -> Report:
    """Every measure of the learner in a run folder or a checkpoint, on two views of the run's first training images."""
    learner, config, step = learner_of(place)
    source = config.source if root is None else replace(config.source, root=root)
    part = load(config.data, source).train
    feed = Feed(
        images=part.images,
        plan=config.plan,
        anchor=None,
        batch=1,
        seed=config.seed,
        size=source.image_size,
        device=device,
    )
    views = first_seen(feed, images).views
    learner = learner.to(device)
    with frozen(learner):
        collapse = health(learner.f(views.first))
    readings: Readings = {**asdict(collapse), **checkup(learner, views, tuple(MEASURES))}
    protocol = (
        f"{config.method}, {config.backbone}, after step {step}; codes z and features of {len(views.first)} training "
        f"images of {config.data} in two views, in eval mode"
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
        ranks |= {f"stable_rank_{name}{i + 1}": stable_rank(weight.float()) for i, weight in enumerate(layers)}
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
