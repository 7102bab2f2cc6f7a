"""The linear probes: `cached` (logistic regression on cached features) and the heads of `paper` (SGD or LARS)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.evaluation import HeadOptimizer
from phinets.data.image_sets import holdout_rows
from phinets.evaluation.features import require_finite_features

STRENGTHS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""L2 strengths to try, from strong to weak."""
SMALL = 2e8
"""Most products per loss evaluation that one core computes faster than several."""
AXES_AT_MOST = 4096
"""Most features or examples for which principal axes save time."""
PATIENCE = 2
"""Early stopping: the number of strengths without improvement."""
SLOPE = 1e-4
"""The largest slope that counts as the minimum, in coordinates whose curvature is about 1: the mean loss is then within
about 1e-8 of its minimum for each weight."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A linear classifier on standardized features."""

    mean: Tensor
    scale: Tensor
    weight: Tensor
    bias: Tensor
    l2: float
    held_out: dict[float, float]
    """Held-out accuracy in percent, for each strength tried."""

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the classes: (n, d) → (n, classes)."""
        return ((features.to(self.mean) - self.mean) / self.scale) @ self.weight + self.bias


def fit_probe(features: Tensor, labels: Tensor, strengths: Sequence[float] = STRENGTHS, slope: float = SLOPE) -> Probe:
    """The probe that minimizes mean cross-entropy + l2/2·‖W‖², with l2 the strength best on a held-out tenth.

    W multiplies standardized features. The chosen strength is then fitted to all examples.

    Args:
        features: (n, d).
        labels: (n,).
        strengths: the values of l2 to try; each starts from the solution of the last one.
        slope: the largest slope that counts as the minimum.

    Returns:
        The probe: features (n, d) → scores of the classes.

    Raises:
        UserError: where features are not finite.
    """
    require_finite_features(features, "bank")
    mean, scale = features.mean(0), features.std(0, unbiased=False).clamp_min(1e-6)
    x = (features - mean) / scale
    axes, along = _principal(x)
    task = Task(x if axes is None else x @ axes, labels.to(x.device), int(labels.max()) + 1, along)
    start, held_out = None, dict[float, float]()
    with one_thread_if_small(x.numel() * task.classes):
        if len(strengths) > 1:
            start, held_out = _try_strengths(task, strengths, slope)
        best = max(held_out, key=lambda l2: held_out[l2]) if held_out else strengths[0]
        solution = _solve(task, best, slope, start)
    weight = solution[:-1] if axes is None else axes @ solution[:-1]
    return Probe(mean, scale, weight, solution[-1], best, held_out)


@contextmanager
def one_thread_if_small(products: int) -> Iterator[None]:
    """One thread for a short computation, whose synchronization would cost more than it saves."""
    threads = torch.get_num_threads()
    if products < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Task(NamedTuple):
    """What a probe is fitted to: x (n, d) along the features' principal axes, y (n,), and mean squares of x (d,)."""

    x: Tensor
    y: Tensor
    classes: int
    along: Tensor


def _principal(x: Tensor) -> tuple[Tensor | None, Tensor]:
    """The principal axes of features (n, d), as columns, and the mean square along each.

    There are min(n, d): where examples are fewer than features, the best weights lie in the span of the examples. Where
    they would be too many, the features' own axes do.
    """
    n, d = x.shape
    if min(n, d) > AXES_AT_MOST:
        return None, x.square().mean(0)
    if n < d:
        squares, mixed = _eigh((x @ x.T).cpu())
        some = squares > squares[-1] * n * torch.finfo(x.dtype).eps
        axes = (x.T @ mixed[:, some].to(x)) / squares[some].sqrt().to(x)
        return axes, squares[some].to(x) / n
    squares, axes = _eigh((x.T @ x).cpu())
    return axes.to(x), squares.clamp_min(0).to(x) / n


def _eigh(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors; in double where single precision fails, as for the constant features of a collapse."""
    try:
        squares, axes = torch.linalg.eigh(gram)
    except RuntimeError:  # torch's LinAlgError
        squares, axes = torch.linalg.eigh(gram.double())
    return squares, axes


def _try_strengths(task: Task, strengths: Sequence[float], slope: float) -> tuple[Tensor, dict[float, float]]:
    """The solution of the best strength, and the held-out accuracy in percent for each strength."""
    splits = (rows.to(task.x.device) for rows in holdout_rows(len(task.x)))
    train, test = (task._replace(x=task.x[rows], y=task.y[rows]) for rows in splits)
    solutions: dict[float, Tensor] = {}
    right: dict[float, float] = {}
    start = None
    for l2 in strengths:
        start = solutions[l2] = _solve(train, l2, slope, start)
        predictions = (test.x @ start[:-1] + start[-1]).argmax(1)
        right[l2] = 100.0 * float((predictions == test.y).double().mean())
        if len(right) > PATIENCE and max(list(right.values())[-PATIENCE:]) <= max(list(right.values())[:-PATIENCE]):
            break
    return solutions[max(right, key=lambda l2: right[l2])], right


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
    result = minimize(objective, first.double().numpy().ravel(), jac=True, method="L-BFGS-B", options=options)
    return torch.from_numpy(result.x.reshape(d + 1, classes)).to(x) * stretch


def probe_accuracy(probe: Probe, queries: Tensor, truth: Tensor) -> float:
    """Percent of queries that a probe gets right; every query counts."""
    require_finite_features(queries, "queries")
    return 100.0 * float((probe(queries).argmax(1).cpu() == truth).double().mean())


TRUST, TINY = 0.001, 1e-8
"""LARS's trust coefficient, and what keeps its quotient finite, as in the ImageNet recipe of SimSiam."""


@dataclass(frozen=True, slots=True)
class Heads:
    """One linear classifier for each learning rate: weight (rates, d, classes) and bias (rates, 1, classes)."""

    rates: tuple[float, ...]
    weight: Tensor
    bias: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Scores of the classes by each head: (n, d) → (rates, n, classes)."""
        return features @ self.weight + self.bias

    def accuracies(self, features: Tensor, truth: Tensor) -> dict[float, float]:
        """Percent that each head gets right, by its learning rate."""
        if not bool(torch.isfinite(self.weight).all()):
            raise UserError(f"the probe has diverged at a learning rate of {max(self.rates):g}. Use a lower one.")
        predictions = self(require_finite_features(features, "test images").to(self.weight)).argmax(2).cpu()
        right = 100.0 * (predictions == truth).double().mean(1)
        return dict(zip(self.rates, right.tolist(), strict=True))


def train_heads(
    batches: Iterable[tuple[Tensor, Tensor]],
    first: Heads,
    decline: Callable[[int], float],
    momentum: float = 0.9,
    optimizer: HeadOptimizer = "sgd",
) -> Heads:
    """The heads after one step on the mean cross-entropy of each batch of (features, labels).

    v ← momentum·v + λ·∇; w ← w − r·decline(t)·v for step t of a head with rate r; λ is 1 for SGD, and for LARS as in
    `lars_scale`. All heads share the features; each is the same as if trained alone.
    """
    scale = lars_scale if optimizer == "lars" else lambda gradient, _: gradient
    weight, bias = first.weight.clone(), first.bias.clone()
    rates = torch.tensor(first.rates, dtype=weight.dtype, device=weight.device)[:, None, None]
    speed_w, speed_b = torch.zeros_like(weight), torch.zeros_like(bias)
    for t, (x, y) in enumerate(batches):
        error = torch.softmax(x @ weight + bias, dim=2)
        error.sub_(F.one_hot(y, error.shape[2])).div_(len(y))
        speed_w.mul_(momentum).add_(scale(x.T @ error, weight))
        speed_b.mul_(momentum).add_(scale(error.sum(1, keepdim=True), bias))
        weight -= rates * decline(t) * speed_w
        bias -= rates * decline(t) * speed_b
    return Heads(first.rates, weight, bias)


def lars_scale(gradient: Tensor, parameter: Tensor) -> Tensor:
    """LARS's step (You et al. 2017), head by head: λ·∇ with λ = trust·‖w‖/‖∇‖, of weights and biases alike.

    Where either is zero λ is 1: so the biases leave 0. Both are (heads, …).
    """
    size, slope = (torch.linalg.vector_norm(each, dim=(1, 2), keepdim=True) for each in (parameter, gradient))
    nonzero = (size > 0) & (slope > 0)
    return gradient * torch.where(nonzero, TRUST * size / (slope + TINY), torch.ones_like(size))


def fresh_heads(
    rates: Sequence[float], width: int, classes: int, generator: torch.Generator, device: torch.device | str = "cpu"
) -> Heads:
    """Heads before their first step, all alike: weights from a normal of deviation 0.01, biases 0 (He et al. 2020)."""
    for rate in rates:
        if not 0 < rate < float("inf"):
            raise UserError(f"a learning rate of {rate} can't be used: it must be above 0. The paper's probe has 30.")
    weight = 0.01 * torch.randn(width, classes, generator=generator).to(device)
    return Heads(tuple(rates), weight.repeat(len(rates), 1, 1), torch.zeros(len(rates), 1, classes, device=device))
