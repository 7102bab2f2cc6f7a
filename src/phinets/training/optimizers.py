"""Optimizers: SGD, AdamW and LARS over two groups of parameters, h and the rest."""

from typing import Any

import torch

from phinets.config.run import Optimization
from phinets.methods import Learner


class LARS(torch.optim.Optimizer):
    """SGD with momentum whose step is scaled layer by layer (You et al. 2017).

    g ← g + wd·w; v ← m·v + lr·λ·g; w ← w − v, with λ = trust·‖w‖/‖g‖ for matrices and filters and λ = 1 for biases
    and norms, which are not scaled.
    """

    def __init__(
        self, params: Any, lr: float, momentum: float = 0.9, weight_decay: float = 0.0, trust: float = 0.001
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step for every parameter that has a gradient."""
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
        for group in self.param_groups:
            for w in group["params"]:
                if w.grad is not None:
                    self._update(w, group)
        return value

    def _update(self, w: torch.Tensor, group: dict[str, Any]) -> None:
        update = w.grad.add(w, alpha=group["weight_decay"])  # type: ignore[union-attr]
        if w.ndim > 1:
            weight_norm, grad_norm = w.norm(), update.norm()
            scale = group["trust"] * weight_norm / grad_norm
            scale = torch.where((weight_norm > 0) & (grad_norm > 0), scale, torch.ones_like(scale))
            update = update.mul_(scale)
        velocity = self.state[w].setdefault("velocity", torch.zeros_like(w))
        velocity.mul_(group["momentum"]).add_(update, alpha=group["lr"])
        w.sub_(velocity)


def build_optimizer(learner: Learner, chosen: Optimization) -> torch.optim.Optimizer:
    """The optimizer of a learner: the first group follows the schedule, the second (h) may keep a constant rate."""
    constant = learner.constant_rate_parameters() if chosen.constant_h else []
    ids = {id(p) for p in constant}
    scheduled = [p for p in learner.parameters() if p.requires_grad and id(p) not in ids]
    groups: list[dict[str, Any]] = [{"params": scheduled, "constant_rate": False}]
    if constant:
        groups.append({"params": constant, "constant_rate": True})
    decay = chosen.weight_decay
    if chosen.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=chosen.lr, betas=(chosen.momentum, 0.999), weight_decay=decay)
    if chosen.optimizer == "lars":
        return LARS(groups, lr=chosen.lr, momentum=chosen.momentum, weight_decay=decay)
    return torch.optim.SGD(groups, lr=chosen.lr, momentum=chosen.momentum, weight_decay=decay)


def set_rates(optimizer: torch.optim.Optimizer, *, rate: float, peak: float) -> None:
    """The scheduled rate for the first group, the peak rate for the constant one."""
    for group in optimizer.param_groups:
        group["lr"] = peak if group["constant_rate"] else rate
