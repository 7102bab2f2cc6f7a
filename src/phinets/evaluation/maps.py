"""Features on a plane, to be looked at: principal components, or t-SNE."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from phinets.config.errors import UserError
from phinets.evaluation.features import require_numbers
from phinets.evaluation.knn import Rows, parts
from phinets.evaluation.linear import alone_if_small

AT_ONCE = 8_192
LONG, EXAGGERATED = 500, 150
"""Steps of t-SNE, and how many of them pull neighbours together more strongly than they are."""
EXAGGERATION = 12.0
FEWEST, MOST = 4, 3_000
"""Points that t-SNE can be asked for: each is compared with every other at every step."""
AXES = 50
"""Principal components that t-SNE sees."""
PER_PAIR = 100
"""About what a step costs for each pair of points, in products of the linear probe."""


class Principal(NamedTuple):
    """The principal axes of some vectors."""

    mean: Tensor
    """(d,)."""
    axes: Tensor
    """(d, k), the widest first; the largest entry of each is positive, so that they are the same everywhere."""
    shares: Tensor
    """(k,): which share of the variance lies along each."""

    def __call__(self, vectors: Tensor) -> Tensor:
        """Coordinates along the axes: (n, d) → (n, k)."""
        return (vectors - self.mean) @ self.axes


def principal(features: Rows, k: int = 2) -> Principal:
    """The k principal axes of features (n, d) at unit length, since neighbours are found by cosine.

    Exact, in double precision; the features are read some rows at a time, so they may be larger than the memory.
    """
    n, d = features.shape
    mean = torch.stack([part.sum(0) for part in _unit(features)]).sum(0) / n
    spread = torch.zeros(d, d, dtype=torch.float64)
    for part in _unit(features):
        spread += (part - mean).T @ (part - mean)
    squares, axes = torch.linalg.eigh(spread)
    axes = axes.flip(1)[:, :k]
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    shares = squares.flip(0).clamp_min(0) / squares.clamp_min(0).sum().clamp_min(1e-300)
    return Principal(mean, axes * torch.where(largest < 0, -1.0, 1.0), shares[:k])


def principal_map(features: Rows, along: Principal) -> Tensor:
    """Where features (n, d) at unit length lie along the axes: (n, k)."""
    return torch.cat([along(part) for part in _unit(features)])


def _unit(features: Rows) -> Iterator[Tensor]:
    for part in parts(features, AT_ONCE, "images"):
        yield F.normalize(part.double(), dim=1)


def tsne(points: Tensor, perplexity: float = 30.0, steps: int = LONG) -> Tensor:
    """t-SNE (van der Maaten & Hinton 2008), exact: points (n, d) on a plane (n, 2) so that neighbours stay neighbours.

    Minimises KL(P‖Q), Q ∝ 1/(1 + ‖yᵢ − yⱼ‖²), by gradient steps with momentum and gains. It begins with the first two
    coordinates instead of a random drawing, so the same points give the same map. n ≤ 3,000.
    """
    if not FEWEST <= len(points) <= MOST:
        raise UserError(
            f"t-SNE was asked for {len(points)} points, but takes {FEWEST} to {MOST:,}. Use PCA, or fewer images."
        )
    require_numbers(points, "map")
    n = len(points)
    with alone_if_small(PER_PAIR * n * n):
        p = affinities(points.double(), min(perplexity, (n - 1) / 3)).float()
        y = points[:, :2].float()
        y = 1e-4 * (y - y.mean(0)) / y[:, 0].std().clamp_min(1e-12)
        return _descended(p, y, steps)


def _descended(p: Tensor, y: Tensor, steps: int) -> Tensor:
    """Where y ends on its way down KL(P‖Q)."""
    speed, gains, rate = torch.zeros_like(y), torch.ones_like(y), max(len(y) / EXAGGERATION / 4, 50.0)
    for step in range(steps):
        early = step < EXAGGERATED
        slope = tsne_slope(p * EXAGGERATION if early else p, y)
        gains = torch.where(slope * speed < 0, gains + 0.2, gains * 0.8).clamp_min(0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gains * slope
        y = y + speed
    return y - y.mean(0)


def affinities(points: Tensor, perplexity: float) -> Tensor:
    """P of t-SNE, (n, n): symmetric, zero on the diagonal, sum 1.

    p(j|i) ∝ exp(−βᵢ ‖xᵢ − xⱼ‖²), βᵢ such that the entropy of row i is log(perplexity), found by bisection.
    """
    n = len(points)
    squares = torch.cdist(points, points).square()
    squares = squares / squares.mean().clamp_min(1e-300)
    squares.fill_diagonal_(math.inf)
    low, high = (torch.full((n, 1), end, dtype=points.dtype) for end in (-10.0, 30.0))
    for _ in range(40):
        middle = (low + high) / 2
        row = torch.softmax(-squares * middle.exp(), dim=1)
        too_wide = torch.special.entr(row).sum(1, keepdim=True) > math.log(perplexity)
        low, high = torch.where(too_wide, middle, low), torch.where(too_wide, high, middle)
    row = torch.softmax(-squares * ((low + high) / 2).exp(), dim=1)
    return (row + row.T) / (2 * n)


def tsne_slope(p: Tensor, y: Tensor) -> Tensor:
    """The gradient of KL(P‖Q) by the places y (n, 2): 4 Σⱼ (pᵢⱼ − qᵢⱼ)(yᵢ − yⱼ)/(1 + ‖yᵢ − yⱼ‖²)."""
    apart = [column[:, None] - column for column in y.T]
    near = apart[0].square_().add_(apart[1].square_()).add_(1).reciprocal_().fill_diagonal_(0)
    pull: Tensor = (near / -near.sum()).add_(p).mul_(near)
    return 4 * (pull.sum(1, keepdim=True) * y - pull @ y)
