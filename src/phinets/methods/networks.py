"""The encoder f, its slow copy (EMA), and MLPs."""

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """f: the backbone, which is kept, and the projector, which is discarded after training."""

    def __init__(self, backbone: nn.Module, projector: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.projector = projector

    def forward(self, x: Tensor) -> Tensor:
        """The code z = f(x): image (n, 3, s, s) → (n, d)."""
        return self.projector(self.backbone(x))  # type: ignore[no-any-return]


class Slow(Encoder):
    """f_long: an exponential moving average of f without gradient.

    In training it normalizes by its own batches, as f does.
    """

    def __init__(self, fast: Encoder, beta: float, buffers: Literal["own", "copy", "average"] = "own") -> None:
        super().__init__(copy.deepcopy(fast.backbone), copy.deepcopy(fast.projector))
        self.requires_grad_(False)
        self.beta = beta
        self.buffers_rule = buffers

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """The slow code of x; no gradient passes."""
        return super().forward(x)

    def follow(self, fast: Encoder) -> None:
        """ξ_long ← β·ξ_long + (1−β)·ξ (paper §3.2); exactly ξ where β = 0."""
        _approach(self, fast, 1.0 - self.beta)
        if self.buffers_rule != "own":
            _approach_buffers(self, fast, 1.0 if self.buffers_rule == "copy" else 1.0 - self.beta)

    def pull(self, fast: Encoder) -> None:
        """The reverse update, ξ ← β·ξ + (1−β)·ξ_long (RM-SimSiam)."""
        _approach(fast, self, 1.0 - self.beta)


@torch.no_grad()
def _approach(moving: nn.Module, goal: nn.Module, share: float) -> None:
    torch._foreach_lerp_(list(moving.parameters()), list(goal.parameters()), share)


@torch.no_grad()
def _approach_buffers(moving: nn.Module, goal: nn.Module, share: float) -> None:
    for m, g in zip(moving.buffers(), goal.buffers(), strict=True):
        if m.is_floating_point():
            m.lerp_(g, share)
        else:  # batch norm's counter of batches
            m.copy_(g)


def mlp(
    widths: Sequence[int], *, hidden_norm: bool = True, last_norm: bool = False, last_affine: bool = True
) -> nn.Sequential:
    """Linear layers of the given widths with (batch norm and) ReLU between them.

    `widths` has the input first: (512, 2048, 2048) is two layers. With `last_norm` the output is normalized too, as in
    a projector. A linear layer in front of a batch norm has no bias, which the norm would cancel.
    """
    layers: list[nn.Module] = []
    last = len(widths) - 2
    for i, (fan_in, fan_out) in enumerate(pairwise(widths)):
        norm = last_norm if i == last else hidden_norm
        layers.append(nn.Linear(fan_in, fan_out, bias=not norm))
        if norm:
            layers.append(nn.BatchNorm1d(fan_out, affine=last_affine or i != last))
        if i != last:
            layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)
