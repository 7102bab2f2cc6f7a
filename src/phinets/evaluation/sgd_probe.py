"""The linear probe `paper`: SGD or LARS on features of augmented views, for one learning rate or for many at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.probes import HeadOptimizer
from phinets.evaluation.features import require_numbers

TRUST, TINY = 0.001, 1e-8
"""LARS's trust coefficient, and what keeps its quotient finite, as in the ImageNet recipe of SimSiam."""


@dataclass(frozen=True, slots=True)
class Heads:
    """One linear classifier for each learning rate."""

    rates: tuple[float, ...]
    weight: Tensor
    """(rates, d, classes)."""
    bias: Tensor
    """(rates, 1, classes)."""

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the classes by each head: (n, d) → (rates, n, classes)."""
        return features @ self.weight + self.bias

    def to(self, device: torch.device) -> "Heads":
        """The same heads on another device."""
        return Heads(self.rates, self.weight.to(device), self.bias.to(device))

    def accuracies(self, features: Tensor, truth: Tensor) -> dict[float, float]:
        """Percent that each head gets right, by its learning rate."""
        if not bool(torch.isfinite(self.weight).all()):
            raise UserError(f"the probe has diverged at a learning rate of {max(self.rates):g}. Use a lower one.")
        require_numbers(features, "test images")
        guessed = self(features.to(self.weight)).argmax(2).cpu()
        right = 100.0 * (guessed == truth).double().mean(1)
        return dict(zip(self.rates, right.tolist(), strict=True))


def sgd_heads(
    batches: Iterable[tuple[Tensor, Tensor]],
    first: Heads,
    decline: Callable[[int], float],
    momentum: float = 0.9,
    optimizer: HeadOptimizer = "sgd",
) -> Heads:
    """The heads after one step on the mean cross-entropy of each batch of (features, labels).

    v ← momentum·v + λ·∇; w ← w − r·decline(t)·v for step t of a head with rate r; λ is 1 for SGD, and for LARS as in
    `trusted`. The features are computed once and serve every head. Each is what it would be if it were trained alone.
    """
    scaled = trusted if optimizer == "lars" else _as_it_is
    weight, bias = first.weight.clone(), first.bias.clone()
    rates = torch.tensor(first.rates, dtype=weight.dtype, device=weight.device)[:, None, None]
    speed_w, speed_b = torch.zeros_like(weight), torch.zeros_like(bias)
    for t, (x, y) in enumerate(batches):
        error = torch.softmax(x @ weight + bias, dim=2)
        error.sub_(F.one_hot(y, error.shape[2])).div_(len(y))
        speed_w.mul_(momentum).add_(scaled(x.T @ error, weight))
        speed_b.mul_(momentum).add_(scaled(error.sum(1, keepdim=True), bias))
        weight -= rates * decline(t) * speed_w
        bias -= rates * decline(t) * speed_b
    return Heads(first.rates, weight, bias)


def trusted(gradient: Tensor, parameter: Tensor) -> Tensor:
    """LARS's step (You et al. 2017), head by head: λ·∇ with λ = trust·‖w‖/‖∇‖, of weights and biases alike.

    Where either is zero λ is 1: so the biases leave 0. Both are (heads, …).
    """
    size, slope = (torch.linalg.vector_norm(each, dim=(1, 2), keepdim=True) for each in (parameter, gradient))
    known = (size > 0) & (slope > 0)
    return gradient * torch.where(known, TRUST * size / (slope + TINY), torch.ones_like(size))


def _as_it_is(gradient: Tensor, parameter: Tensor) -> Tensor:
    return gradient


def fresh_heads(rates: Sequence[float], width: int, classes: int, generator: torch.Generator) -> Heads:
    """Heads before their first step, all alike: weights from a normal of deviation 0.01, biases 0 (He et al. 2020)."""
    for rate in rates:
        if not 0 < rate < float("inf"):
            raise UserError(f"a learning rate of {rate} can't be used: it must be above 0. The paper's probe has 30.")
    weight = 0.01 * torch.randn(width, classes, generator=generator)
    return Heads(tuple(rates), weight.repeat(len(rates), 1, 1), torch.zeros(len(rates), 1, classes))
