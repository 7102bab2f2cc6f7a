"""The linear probe on cached features: multinomial logistic regression by L-BFGS."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

STRENGTHS = (1e-1, 1e-2, 1e-3)


@dataclass(frozen=True, slots=True)
class Probe:
    """A linear classifier on standardised features."""

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    l2: float

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the classes: (n, d) → (n, classes)."""
        return ((features - self.mean) / self.scale) @ self.weight + self.bias


def fit_probe(
    features: Tensor, labels: Tensor, *, classes: int, strengths: Sequence[float] = STRENGTHS, iterations: int = 100
) -> Probe:
    """The probe that minimises mean cross-entropy + l2/2·‖W‖², with l2 the strength best on every tenth example.

    features: (n, d), labels: (n,). The chosen strength is then fitted to all examples.
    """
    mean, scale = features.mean(0), features.std(0).clamp_min(1e-6)
    x = (features - mean) / scale
    held_out = torch.arange(len(x)) % 10 == 0
    start, best, chosen = None, -1.0, strengths[0]
    for l2 in strengths:  # from strong to weak, each starting where the last ended
        weight, bias = start = _solve(x[~held_out], labels[~held_out], classes, l2, iterations, start)
        accuracy = float(((x[held_out] @ weight + bias).argmax(1) == labels[held_out]).double().mean())
        if accuracy > best:
            best, chosen = accuracy, l2
    weight, bias = _solve(x, labels, classes, chosen, iterations, start)
    return Probe(mean, scale, weight, bias, chosen)


def _solve(
    x: Tensor, y: Tensor, classes: int, l2: float, iterations: int, start: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Weight (d, classes) and bias (classes,) at the minimum, by L-BFGS."""
    d = x.shape[1]
    truth = F.one_hot(y, classes).to(x.dtype)

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        both = torch.from_numpy(flat.reshape(d + 1, classes)).to(x.dtype)
        weight = both[:d]
        log_share = torch.log_softmax(x @ weight + both[d], dim=1)
        value = F.nll_loss(log_share, y) + l2 / 2 * weight.square().sum()
        error = (log_share.exp() - truth) / len(x)
        gradient = torch.cat([x.T @ error + l2 * weight, error.sum(0, keepdim=True)])
        return float(value), gradient.double().numpy().ravel()

    first = (
        np.zeros((d + 1) * classes) if start is None else torch.cat([start[0], start[1][None]]).double().numpy().ravel()
    )
    found = minimize(
        objective, first, jac=True, method="L-BFGS-B", options={"maxiter": iterations, "gtol": 1e-5, "ftol": 1e-6}
    )
    both = torch.from_numpy(found.x.reshape(d + 1, classes)).to(x.dtype)
    return both[:d], both[d]


def linear_accuracy(queries: Tensor, truth: Tensor, features: Tensor, labels: Tensor) -> float:
    """Percent of queries that a probe fitted to the other features gets right."""
    classes = int(max(int(labels.max()), int(truth.max()))) + 1
    probe = fit_probe(features, labels, classes=classes)
    return 100.0 * float((probe(queries).argmax(1) == truth).double().mean())
