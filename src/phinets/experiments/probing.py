"""Judgements that look at augmented views of labelled images: the paper's linear probe, and fine-tuning."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from phinets.backbones import backbone as backbone_called
from phinets.backbones import feature_width, require_features
from phinets.config.errors import UserError
from phinets.config.probes import FineTuning, PaperProbe
from phinets.config.views import PLANS
from phinets.data import ImageSet
from phinets.engine.feed import Feed
from phinets.engine.finetune import fine_tune
from phinets.engine.schedules import half_cosine
from phinets.evaluation.features import frozen, require_numbers
from phinets.evaluation.sgd_probe import fresh_heads, sgd_heads
from phinets.experiments.examining import Examined
from phinets.experiments.judging import Eye
from phinets.views import random_stream

Watch = Callable[[int, int], None]
"""Is told the step, and how many there are."""
HELD_OUT = 10
"""Every so many labelled images one is held out where there is something to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What the paper's probe came to."""

    accuracy: float
    rate: float
    """The learning rate per 256 images that it is of."""
    held_out: dict[float, float]
    """Percent right on what was held out, for each rate; empty where there was but one."""
    batch: int


def paper_probe(examined: Examined, probe: PaperProbe, watch: Watch | None = None) -> Probed:
    """The paper's linear probe: a head trained on augmented views; every test image counts.

    Of several rates, all trained in one pass over the same features, the best on a held-out tenth is reported.
    """
    known, held_out = examined.known, None
    if len(probe.rates) > 1:
        asked = torch.arange(len(known)) % HELD_OUT == 0
        known, held_out = known.pick((~asked).nonzero().flatten()), known.pick(asked.nonzero().flatten())
    assert known.labels is not None
    feed = labelled_feed(examined.eye, known, probe.batch, examined.exam.seed)
    steps = probe.epochs * feed.steps_per_epoch
    encoder = examined.subject.encoder
    generator = random_stream(examined.exam.seed, "probe")
    rates = [rate * feed.batch / 256 for rate in probe.rates]
    width, classes = feature_width(encoder, feed.size), int(known.labels.max()) + 1
    first = fresh_heads(rates, width, classes, generator).to(feed.device)
    with frozen(encoder):
        stream = _features(encoder, feed, known.labels, steps, watch)
        heads = sgd_heads(stream, first, lambda step: half_cosine(step / steps), probe.momentum)
    tried = {} if held_out is None else heads.accuracies(*examined.eye.embedded(held_out, encoder))
    chosen = max(tried, key=lambda rate: tried[rate]) if tried else rates[0]
    accuracy = heads.accuracies(*examined.eye.embedded(examined.asked, encoder))[chosen]
    said = dict(zip(rates, probe.rates, strict=True))
    held = {said[rate]: right for rate, right in tried.items()}
    return Probed(accuracy=accuracy, rate=said[chosen], held_out=held, batch=feed.batch)


def labelled_feed(eye: Eye, part: ImageSet, batch: int, seed: int) -> Feed:
    """Batches of augmented views (crop and flip, normalised as the encoder is used to) of labelled images."""
    return Feed(
        images=part.images,
        plan=replace(eye.plan, first=PLANS["probe"].first, second=None),
        anchor=None,
        batch=min(batch, len(part)),
        seed=seed,
        size=eye.size,
        device=eye.device,
    )


def _features(
    encoder: nn.Module, feed: Feed, labels: Tensor, steps: int, watch: Watch | None
) -> Iterator[tuple[Tensor, Tensor]]:
    for step, part in enumerate(feed.stream(0, steps)):
        found = require_features(encoder(part.views.first)).float()
        require_numbers(found, "training images")
        yield found, labels[part.rows].to(feed.device)
        if watch is not None:
            watch(step + 1, steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuned:
    """What fine-tuning came to."""

    accuracy: float
    scratch: float | None
    """Percent right of the same training from fresh weights, where it was asked for."""
    batch: int


def fine_tuned(examined: Examined, how: FineTuning, *, scratch: bool = False, watch: Watch | None = None) -> FineTuned:
    """Percent right after fine-tuning a copy of the encoder and, beside it, an encoder that has learned nothing."""
    if len(examined.known) < 2:
        raise UserError(f"fine-tuning needs two labelled images at least, but there is {len(examined.known)}.")
    accuracy, batch = _tuned(examined, deepcopy(examined.subject.encoder), how, watch)
    if not scratch:
        return FineTuned(accuracy=accuracy, scratch=None, batch=batch)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(examined.exam.seed, "init").initial_seed())
        fresh = backbone_called(examined.subject.backbone).to(examined.eye.device)
    return FineTuned(accuracy=accuracy, scratch=_tuned(examined, fresh, how, watch)[0], batch=batch)


def _tuned(examined: Examined, encoder: nn.Module, how: FineTuning, watch: Watch | None) -> tuple[float, int]:
    labels = examined.known.labels
    assert labels is not None
    feed = labelled_feed(examined.eye, examined.known, how.batch, examined.exam.seed)
    width = feature_width(encoder, feed.size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(examined.exam.seed, "head").initial_seed())
        head = nn.Linear(width, int(labels.max()) + 1).to(feed.device)
    encoder = encoder.to(memory_format=torch.channels_last)
    fine_tune(encoder, head, feed, labels, how, watch)
    features, truth = examined.eye.embedded(examined.asked, encoder)
    with torch.no_grad():
        guessed = head(features.to(feed.device)).argmax(1).cpu()
    return 100.0 * float((guessed == truth).double().mean()), feed.batch
