"""How codes lie on their sphere, how many directions they use, and how many a layer keeps."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor


def alignment(z1: Tensor, z2: Tensor) -> float:
    """Mean squared distance of l2-normalised codes of two views of one image (Wang & Isola 2020, α = 2).

    z1, z2: (n, d). 0 where both views get the same direction, 2 where they are orthogonal, 4 where opposite.
    """
    return float((F.normalize(z1, dim=1) - F.normalize(z2, dim=1)).square().sum(1).mean())


def uniformity(z: Tensor) -> float:
    """log of the mean over all pairs of exp(−2‖ẑᵢ − ẑⱼ‖²) of l2-normalised codes (Wang & Isola 2020, t = 2).

    z: (n, d), n ≥ 2. 0 for constant codes, −4 for orthogonal ones; the lower, the more evenly the sphere is used.
    """
    return float(torch.pdist(F.normalize(z, dim=1)).square().mul(-2).exp().mean().log())


def spectrum(z: Tensor) -> Tensor:
    """Singular values of codes or features, falling, divided by the first.

    z: (n, d) → (min(n, d),). All 1 for orthogonal codes of one length; 1, 0, 0, … for codes on one line, constant ones
    among them; all 0 where every code is 0.
    """
    values: Tensor = torch.linalg.svdvals(z)
    return values / values[0].clamp_min(torch.finfo(values.dtype).tiny)


def stable_rank(matrix: Tensor) -> float:
    """‖M‖_F² / ‖M‖₂², the paper's rank of a layer; at most the rank, and hardly moved by small singular values.

    matrix: (m, n). 1 for rank one (a constant matrix among them), min(m, n) where the rows or columns are orthogonal
    with equal lengths, 0 for the zero matrix.
    """
    squares = torch.linalg.svdvals(matrix.detach()).square()
    return float(squares.sum() / squares[0].clamp_min(torch.finfo(squares.dtype).tiny))


def weight_cosine(first: Iterable[Tensor], second: Iterable[Tensor]) -> float:
    """Cosine between two sets of weights, each taken as one long vector: 1 where one is a multiple of the other."""
    a, b = _joined(first), _joined(second)
    return float(a @ b / (a.norm() * b.norm()).clamp_min(torch.finfo(a.dtype).tiny))


def weight_distance(first: Iterable[Tensor], second: Iterable[Tensor]) -> float:
    """‖a − b‖ / ‖a‖ between two sets of weights, each taken as one long vector: 0 where they are the same."""
    a, b = _joined(first), _joined(second)
    return float((a - b).norm() / a.norm().clamp_min(torch.finfo(a.dtype).tiny))


def _joined(weights: Iterable[Tensor]) -> Tensor:
    return torch.cat([w.detach().cpu().double().flatten() for w in weights])
