"""Fine-tuning: all weights of an encoder and a linear head, on labelled images."""

import math
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phinets.config.errors import UserError
from phinets.config.probes import FineTuning
from phinets.engine.schedules import half_cosine


def fine_tune(
    encoder: nn.Module, head: nn.Linear, batches: Iterable[tuple[Tensor, Tensor]], steps: int, how: FineTuning
) -> list[float]:
    """Train encoder and head in place by cross-entropy on batches of (views, labels); the loss of every step.

    The rates fall from lr · batch / 256 along half a cosine to 0 after `steps` steps.
    """
    optimiser = _optimiser(encoder, head, how)
    encoder.train()
    losses = []
    for step, (views, labels) in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = group["base"] * len(views) / 256 * half_cosine(step / steps)
        loss = F.cross_entropy(head(encoder(views)), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses.append(_finite(loss, step))
    return losses


def _optimiser(encoder: nn.Module, head: nn.Linear, how: FineTuning) -> torch.optim.Optimizer:
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
