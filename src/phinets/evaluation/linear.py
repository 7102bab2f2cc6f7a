"""The linear probe `cached`: multinomial logistic regression on features that are computed once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from phinets.data.split import every_tenth
from phinets.evaluation.features import require_numbers

STRENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Strengths of L2 that are tried, from strong to weak."""
SMALL = 2e8
"""Products in an evaluation of the loss that one core does sooner than several."""
AXES_AT_MOST = 4096
"""Beyond so many features or examples their principal axes cost more than they save."""
PATIENCE = 2
"""Strengths that may do worse than the best before weaker ones are no longer tried."""
SLOPE = 1e-4
"""The largest slope that counts as the minimum, in coordinates whose curvature is about 1: the mean loss is then within
about 1e-8 of its minimum for each weight."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A linear classifier on standardised features."""

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    l2: float
    held_out: dict[float, float]
    """Percent right on what was held out, for each strength that was tried."""

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the classes: (n, d) → (n, classes)."""
        return ((features.to(self.mean) - self.mean) / self.scale) @ self.weight + self.bias


def fit_probe(features: Tensor, labels: Tensor, strengths: Sequence[float] = STRENGTHS, slope: float = SLOPE) -> Probe:
    """The probe that minimizes mean cross-entropy + l2/2·‖W‖², with l2 the strength best on a held-out tenth.

    features: (n, d), labels: (n,). W multiplies standardised features. The chosen strength is then fitted to all
    examples. A strength is tried as long as weaker ones may be better; each starts where the last ended.
    """
    require_numbers(features, "bank")
    mean, scale = features.mean(0), features.std(0, unbiased=False).clamp_min(1e-6)
    x = (features - mean) / scale
    axes, along = _principal(x)
    task = Task(x if axes is None else x @ axes, labels.to(x.device), int(labels.max()) + 1, along)
    start, held_out = None, dict[float, float]()
    with alone_if_small(x.numel() * task.classes):
        if len(strengths) > 1:
            start, held_out = _tried(task, strengths, slope)
        chosen = max(held_out, key=lambda l2: held_out[l2]) if held_out else strengths[0]
        solved = _solve(task, chosen, slope, start)
    weight = solved[:-1] if axes is None else axes @ solved[:-1]
    return Probe(mean, scale, weight, solved[-1], chosen, held_out)


@contextmanager
def alone_if_small(products: int) -> Iterator[None]:
    """One core where an evaluation is short: waking others for each of its sums takes several times as long."""
    threads = torch.get_num_threads()
    if products < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Task(NamedTuple):
    """What a probe is fitted to, in the coordinates of the features' principal axes."""

    x: Tensor
    """(n, d)."""
    y: Tensor
    """(n,)."""
    classes: int
    along: Tensor
    """(d,): mean square of the features along each axis."""

    def pick(self, rows: Tensor) -> "Task":
        """Some of the examples."""
        return Task(self.x[rows], self.y[rows], self.classes, self.along)


def _principal(x: Tensor) -> tuple[Tensor | None, Tensor]:
    """The principal axes of features (n, d), as columns, and the mean square along each.

    There are min(n, d): where examples are fewer than features, the best weights lie in the span of the examples. Where
    they would be too many, the features' own axes do.
    """
    n, d = x.shape
    if min(n, d) > AXES_AT_MOST:
        return None, x.square().mean(0)
    if n < d:
        squares, mixed = torch.linalg.eigh((x @ x.T).cpu())
        some = squares > squares[-1] * n * torch.finfo(x.dtype).eps
        axes = (x.T @ mixed[:, some].to(x)) / squares[some].sqrt().to(x)
        return axes, squares[some].to(x) / n
    squares, axes = torch.linalg.eigh((x.T @ x).cpu())
    return axes.to(x), squares.clamp_min(0).to(x) / n


def _tried(task: Task, strengths: Sequence[float], slope: float) -> tuple[Tensor, dict[float, float]]:
    """The solution of the best strength, and percent right on what was held out for each that was tried."""
    known, asked_of = (task.pick(rows.to(task.x.device)) for rows in every_tenth(len(task.x)))
    found: dict[float, Tensor] = {}
    right: dict[float, float] = {}
    start = None
    for l2 in strengths:
        start = found[l2] = _solve(known, l2, slope, start)
        guessed = (asked_of.x @ start[:-1] + start[-1]).argmax(1)
        right[l2] = 100.0 * float((guessed == asked_of.y).double().mean())
        if len(right) > PATIENCE and max(list(right.values())[-PATIENCE:]) <= max(list(right.values())[:-PATIENCE]):
            break
    return found[max(right, key=lambda l2: right[l2])], right


def _solve(task: Task, l2: float, slope: float, start: Tensor | None) -> Tensor:
    """Weights and, in the last row, biases (d + 1, classes) at the minimum, by L-BFGS.

    Along an axis with mean square m the loss curves by about m/classes + l2; each axis is stretched by the root of
    that, so that all curve alike and few steps are enough.
    """
    (n, d), classes, y = task.x.shape, task.classes, task.y[None]
    stretch = torch.cat([task.along / classes + l2, task.along.new_ones(1) / classes]).rsqrt()[:, None]
    x = task.x * stretch[:d].T
    minus_one = -torch.ones_like(y, dtype=x.dtype)

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        both = torch.from_numpy(flat.reshape(d + 1, classes)).to(x)
        bias, weight = both[d] * stretch[d], both[:d] * stretch[:d]
        scores = torch.addmm(bias[:, None], both[:d].T, x.T)  # (classes, n): a softmax down columns is ten times faster
        log_share = torch.log_softmax(scores, dim=0)
        value = l2 / 2 * weight.double().square().sum() - log_share.gather(0, y).double().mean()
        error = log_share.exp_().scatter_add_(0, y, minus_one)
        slopes = torch.cat([(error @ x).T / n + l2 * weight * stretch[:d], error.mean(1)[None] * stretch[d]])
        return float(value), slopes.cpu().double().numpy().ravel()

    first = torch.zeros(d + 1, classes) if start is None else (start / stretch).cpu()
    options = {"maxiter": 1_000, "maxfun": 2_000, "gtol": slope, "ftol": 0.0}
    found = minimize(objective, first.double().numpy().ravel(), jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(found.x.reshape(d + 1, classes)).to(x) * stretch


def linear_accuracy(queries: Tensor, truth: Tensor, features: Tensor, labels: Tensor) -> float:
    """Percent of queries that a probe fitted to the other features gets right."""
    return probe_accuracy(fit_probe(features, labels), queries, truth)


def probe_accuracy(probe: Probe, queries: Tensor, truth: Tensor) -> float:
    """Percent of queries that a probe gets right; every query counts."""
    require_numbers(queries, "queries")
    return 100.0 * float((probe(queries).argmax(1).cpu() == truth).double().mean())
