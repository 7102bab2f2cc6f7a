"""Fine-tuning: all weights of an encoder and a linear head, on labelled images."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.config.errors import UserError
from phinets.config.probes import FineTuning
from phinets.engine.feed import Feed
from phinets.engine.schedules import half_cosine


def fine_tune(
    encoder: nn.Module,
    head: nn.Linear,
    feed: Feed,
    labels: Tensor,
    how: FineTuning,
    watch: Callable[[int, int], None] | None = None,
) -> list[float]:
    """Train encoder and head in place by cross-entropy on the first view of each batch; the loss of every step.

    labels: (n,), of the feed's images. `watch` is told the step and how many there are.
    """
    steps = how.epochs * feed.steps_per_epoch
    optimiser = _optimiser(encoder, head, how, feed.batch)
    peaks = [group["lr"] for group in optimiser.param_groups]
    encoder.train()
    losses = []
    for step, part in enumerate(feed.stream(0, steps)):
        for group, peak in zip(optimiser.param_groups, peaks, strict=True):
            group["lr"] = peak * half_cosine(step / steps)
        loss = F.cross_entropy(head(encoder(part.views.first)), labels[part.rows].to(feed.device))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(_finite(loss, step))
        if watch is not None:
            watch(step + 1, steps)
    return losses


def _optimiser(encoder: nn.Module, head: nn.Linear, how: FineTuning, batch: int) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": list(encoder.parameters()), "lr": how.lr * batch / 256},
        {"params": list(head.parameters()), "lr": how.head_lr * batch / 256},
    ]
    return torch.optim.SGD(groups, momentum=how.momentum, weight_decay=how.weight_decay)


def _finite(loss: Tensor, step: int) -> float:
    value = float(loss.detach())
    if not math.isfinite(value):
        raise UserError(
            f"fine-tuning has diverged: the loss is no longer a finite number at step {step + 1}. Use a lower --lr and "
            "--head-lr."
        )
    return value
