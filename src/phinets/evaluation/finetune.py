"""Judgements that look at augmented views of labelled images: the paper's linear probe, and fine-tuning."""

import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.backbones import backbone as backbone_called
from phinets.backbones import feature_width, require_features
from phinets.backbones.frozen import frozen
from phinets.config.errors import UserError
from phinets.config.probes import FineTuning, PaperProbe
from phinets.config.views import PLANS
from phinets.data import ImageSet
from phinets.data.split import every_tenth
from phinets.evaluation.evaluator import Eye
from phinets.evaluation.feature_sets import Examined
from phinets.evaluation.features import require_numbers
from phinets.evaluation.sgd_probe import fresh_heads, sgd_heads
from phinets.training.loader import ViewLoader
from phinets.training.schedule import half_cosine
from phinets.views import random_stream

Watch = Callable[[int, int], None]
"""Is told the step, and how many there are."""


class Lessons:
    """Batches of augmented views (crop and flip, normalized as the encoder is used to) and labels, for some epochs."""

    def __init__(self, eye: Eye, part: ImageSet, batch: int, epochs: int, seed: int) -> None:
        assert part.labels is not None
        self.eye, self.labels = eye, part.labels
        self.loader = ViewLoader(
            images=part.images,
            plan=replace(eye.plan, first=PLANS["probe"].first, second="first"),
            anchor=None,
            batch=min(batch, len(part)),
            seed=seed,
            size=eye.size,
            device=eye.device,
            dtype=eye.dtype,
        )
        self.steps = epochs * self.loader.steps_per_epoch
        self.classes = int(part.labels.max()) + 1

    def stream(self, watch: Watch | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Each batch in turn; the eye takes note of bad images."""
        for step, part in enumerate(self.loader.stream(0, self.steps)):
            self.eye.bad_images.add(part.bad)
            yield part.views.first, self.labels[part.rows].to(self.eye.device)
            if watch is not None:
                watch(step + 1, self.steps)


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
        known, held_out = (known.pick(rows) for rows in every_tenth(len(known)))
    eye, encoder, seed = examined.eye, examined.subject.encoder, examined.exam.seed
    lessons = Lessons(eye, known, probe.batch, probe.epochs, seed)
    rates = [rate * lessons.loader.batch / 256 for rate in probe.rates]
    width = feature_width(encoder, eye.size)
    first = fresh_heads(rates, width, lessons.classes, random_stream(seed, "probe")).to(eye.device)
    with frozen(encoder):
        stream = _features(encoder, lessons.stream(watch))
        heads = sgd_heads(
            stream, first, lambda step: half_cosine(step / lessons.steps), probe.momentum, probe.optimizer
        )
    tried = {} if held_out is None else heads.accuracies(*eye.embedded(held_out, encoder))
    chosen = max(tried, key=lambda rate: tried[rate]) if tried else rates[0]
    accuracy = heads.accuracies(*eye.embedded(examined.asked, encoder))[chosen]
    examined.tell_bad_images()
    said = dict(zip(rates, probe.rates, strict=True))
    held = {said[rate]: right for rate, right in tried.items()}
    return Probed(accuracy=accuracy, rate=said[chosen], held_out=held, batch=lessons.loader.batch)


def _features(encoder: nn.Module, batches: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    for views, labels in batches:
        found = require_features(encoder(views), len(views)).float()
        require_numbers(found, "training images")
        yield found, labels


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
    lessons = Lessons(examined.eye, examined.known, how.batch, how.epochs, examined.exam.seed)
    accuracy = _tuned(examined, deepcopy(examined.subject.encoder), lessons, how, watch)
    fresh = _tuned(examined, fresh_encoder(examined), lessons, how, watch) if scratch else None
    examined.tell_bad_images()
    return FineTuned(accuracy=accuracy, scratch=fresh, batch=lessons.loader.batch)


def fresh_encoder(examined: Examined) -> nn.Module:
    """An encoder of the same kind that has learned nothing."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(examined.exam.seed, "init").initial_seed())
        return backbone_called(examined.subject.backbone).to(examined.eye.device, examined.eye.dtype)


def _tuned(examined: Examined, encoder: nn.Module, lessons: Lessons, how: FineTuning, watch: Watch | None) -> float:
    """Percent of the test images that are right after the lessons."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(examined.exam.seed, "head").initial_seed())
        head = nn.Linear(feature_width(encoder, examined.eye.size), lessons.classes)
    head = head.to(examined.eye.device, examined.eye.dtype)
    fine_tune(encoder.to(memory_format=torch.channels_last), head, lessons.stream(watch), lessons.steps, how)
    features, truth = examined.eye.embedded(examined.asked, encoder)
    require_numbers(features, "test images")
    with torch.no_grad():
        guessed = head(features.to(head.weight)).argmax(1).cpu()
    return 100.0 * float((guessed == truth).double().mean())


def fine_tune(
    encoder: nn.Module, head: nn.Linear, batches: Iterable[tuple[Tensor, Tensor]], steps: int, how: FineTuning
) -> list[float]:
    """Train encoder and head in place by cross-entropy on batches of (views, labels); the loss of every step.

    The rates fall from lr · batch / 256 along half a cosine to 0 after `steps` steps.
    """
    optimizer = _optimizer(encoder, head, how)
    encoder.train()
    losses = []
    for step, (views, labels) in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * len(views) / 256 * half_cosine(step / steps)
        loss = F.cross_entropy(head(encoder(views)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(_finite(loss, step))
    return losses


def _optimizer(encoder: nn.Module, head: nn.Linear, how: FineTuning) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": list(encoder.parameters()), "base": how.lr},
        {"params": list(head.parameters()), "base": how.head_lr},
    ]
    return torch.optim.SGD(groups, lr=0.0, momentum=how.momentum, weight_decay=how.weight_decay)


def _finite(loss: Tensor, step: int) -> float:
    value = float(loss.detach())
    if not math.isfinite(value):
        raise UserError(
            f"fine-tuning has diverged: the loss is no longer a finite number at step {step + 1}. Use a lower --lr and "
            "--head-lr."
        )
    return value
