"""Evaluations that train on augmented views of labeled images: the paper's linear probe, and fine-tuning."""

import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.backbones import eval_mode, feature_width, require_features
from phinets.config.errors import UserError
from phinets.config.evaluation import FineTuning, PaperProbe
from phinets.config.views import PLANS
from phinets.data import ImageSet
from phinets.data.image_sets import holdout_rows
from phinets.evaluation.encoders import fresh_encoder
from phinets.evaluation.features import FeatureExtractor, require_finite_features
from phinets.evaluation.linear import fresh_heads, train_heads
from phinets.evaluation.setup import EvalSetup
from phinets.training.loader import ViewLoader
from phinets.training.schedule import half_cosine
from phinets.views import random_stream

OnStep = Callable[[int, int], None]
"""Callback with the step and the number of steps."""


class LabeledLoader:
    """Batches of augmented views (crop and flip, normalized for the encoder) and labels, for some epochs."""

    def __init__(self, extractor: FeatureExtractor, images: ImageSet, batch: int, epochs: int, seed: int) -> None:
        assert images.labels is not None
        self.extractor, self.labels = extractor, images.labels
        self.loader = ViewLoader(
            images=images.images,
            plan=replace(extractor.plan, first=PLANS["probe"].first, second="first"),
            anchor=None,
            batch=min(batch, len(images)),
            seed=seed,
            size=extractor.size,
            device=extractor.device,
            dtype=extractor.dtype,
        )
        self.steps = epochs * self.loader.steps_per_epoch
        self.classes = int(images.labels.max()) + 1

    def stream(self, on_step: OnStep | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Each batch in turn; the extractor records bad images."""
        for step, batch in enumerate(self.loader.batches(0, self.steps)):
            self.extractor.bad_images.add(batch.bad)
            yield batch.views.first, self.labels[batch.rows].to(self.extractor.device)
            if on_step is not None:
                on_step(step + 1, self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The accuracy of the paper's probe."""

    accuracy: float
    rate: float
    """Its learning rate per 256 images."""
    held_out: dict[float, float]
    """Accuracy in percent on the held-out tenth, for each rate; empty for a single rate."""
    batch: int


def paper_probe(setup: EvalSetup, probe: PaperProbe, on_step: OnStep | None = None) -> ProbeResult:
    """The paper's linear probe: a head trained on augmented views; every test image counts.

    Several rates are trained in one pass over the same features, and a held-out tenth chooses among them.
    """
    train, held_out = setup.train, None
    if len(probe.rates) > 1:
        train, held_out = (train.subset(rows) for rows in holdout_rows(len(train)))
    extractor, encoder, seed = setup.extractor, setup.loaded.module, setup.options.seed
    loader = LabeledLoader(extractor, train, probe.batch, probe.epochs, seed)
    rates = [rate * loader.loader.batch / 256 for rate in probe.rates]
    width = feature_width(encoder, extractor.size)
    first = fresh_heads(rates, width, loader.classes, random_stream(seed, "probe"), extractor.device)
    with eval_mode(encoder):
        vectors = ((require_features(encoder(x), len(x)).float(), y) for x, y in loader.stream(on_step))
        stream = ((require_finite_features(x, "training images"), y) for x, y in vectors)
        heads = train_heads(
            stream, first, lambda step: half_cosine(step / loader.steps), probe.momentum, probe.optimizer
        )
    trials = {} if held_out is None else heads.accuracies(*extractor.extract(held_out, encoder).tensors())
    best = max(trials, key=lambda rate: trials[rate]) if trials else rates[0]
    accuracy = heads.accuracies(*extractor.extract(setup.test, encoder).tensors())[best]
    setup.warn_of_bad_images()
    per_256 = dict(zip(rates, probe.rates, strict=True))
    by_rate = {per_256[rate]: right for rate, right in trials.items()}
    return ProbeResult(accuracy=accuracy, rate=per_256[best], held_out=by_rate, batch=loader.loader.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuneResult:
    """The accuracy after fine-tuning."""

    accuracy: float
    scratch: float | None
    """Accuracy in percent of the same training from fresh weights, if requested."""
    batch: int


def evaluate_finetuning(
    setup: EvalSetup, options: FineTuning, *, scratch: bool = False, on_step: OnStep | None = None
) -> FineTuneResult:
    """Accuracy after fine-tuning a copy of the encoder and, with `scratch`, an encoder with fresh weights."""
    if len(setup.train) < 2:
        raise UserError(f"fine-tuning needs at least two labeled images, but there is {len(setup.train)}.")
    extractor, seed = setup.extractor, setup.options.seed
    loader = LabeledLoader(extractor, setup.train, options.batch, options.epochs, seed)
    accuracy = _accuracy(setup, deepcopy(setup.loaded.module), loader, options, on_step)
    fresh = None
    if scratch:
        module = fresh_encoder(setup.loaded.backbone, seed).to(extractor.device, extractor.dtype)
        fresh = _accuracy(setup, module, loader, options, on_step)
    setup.warn_of_bad_images()
    return FineTuneResult(accuracy=accuracy, scratch=fresh, batch=loader.loader.batch)


def _accuracy(
    setup: EvalSetup, encoder: nn.Module, loader: LabeledLoader, options: FineTuning, on_step: OnStep | None
) -> float:
    """Accuracy in percent on the test images after fine-tuning."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_stream(setup.options.seed, "head").initial_seed())
        head = nn.Linear(feature_width(encoder, setup.extractor.size), loader.classes)
    head = head.to(setup.extractor.device, setup.extractor.dtype)
    fine_tune(encoder.to(memory_format=torch.channels_last), head, loader.stream(on_step), loader.steps, options)
    features, labels = setup.extractor.extract(setup.test, encoder).tensors()
    with torch.no_grad():
        predictions = head(require_finite_features(features, "test images").to(head.weight)).argmax(1).cpu()
    return 100.0 * float((predictions == labels).double().mean())


def fine_tune(
    encoder: nn.Module, head: nn.Linear, batches: Iterable[tuple[Tensor, Tensor]], steps: int, options: FineTuning
) -> list[float]:
    """Train encoder and head in place by cross-entropy on batches of (views, labels); returns the loss of every step.

    The rates fall from lr · batch / 256 along half a cosine to 0 after `steps` steps.
    """
    rates = ((encoder, options.lr), (head, options.head_lr))
    groups = [{"params": list(module.parameters()), "base": rate} for module, rate in rates]
    optimizer = torch.optim.SGD(groups, lr=0.0, momentum=options.momentum, weight_decay=options.weight_decay)
    encoder.train()
    losses = []
    for step, (views, labels) in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * len(views) / 256 * half_cosine(step / steps)
        loss = F.cross_entropy(head(encoder(views)), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if not math.isfinite(losses[-1]):
            raise UserError(
                f"fine-tuning has diverged: the loss is not finite at step {step + 1}. Use a lower --lr and --head-lr."
            )
    return losses
