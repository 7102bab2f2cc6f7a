"""The encoder f, and the slow copy that follows it."""

import copy
from typing import Literal

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """f: the backbone that is kept, and the projector that is thrown away after training."""

    def __init__(self, backbone: nn.Module, projector: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.projector = projector

    def forward(self, x: Tensor) -> Tensor:
        """The code z = f(x): image (n, 3, s, s) → (n, d)."""
        return self.projector(self.backbone(x))  # type: ignore[no-any-return]


class Slow(Encoder):
    """f_long: a copy of f that takes no gradient and moves only when told to follow.

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
        """The other way round, ξ ← β·ξ + (1−β)·ξ_long: RM-SimSiam's rememory."""
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
