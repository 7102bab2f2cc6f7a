"""The weighted k-nearest-neighbor vote: exact, and in bounded memory however large the bank is."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from phinets.config.errors import UserError
from phinets.evaluation.features import require_numbers

Rows = Tensor | NDArray[np.floating]
"""Features (n, d): a tensor, or an array that may be a memory map larger than the memory."""

NUMBERS_AT_ONCE = 2**25
KNOWN_AT_ONCE = 65_536
"""Numbers and rows of the bank that are looked at together, at most: 65,536 rows of 512 features, 134 MB."""
ASKED_AT_ONCE = 1_024
ASKED_PER_PASS = 32_768
"""Queries that share one reading of the bank; their k best are held meanwhile."""


class Nearest(NamedTuple):
    """The k nearest of the bank for each query, nearest first: both (q, k)."""

    cosines: Tensor
    rows: Tensor


def nearest(queries: Rows, bank: Rows, k: int, device: torch.device | str = "cpu") -> Iterator[Nearest]:
    """The k rows of the bank whose cosine with each query is highest, by comparing each query with every row.

    queries: (q, d), bank: (n, d), k ≤ n; some thousand queries at a time. The bank is read a part at a time, and the
    best k so far are kept, so that beside the bank no more is held than a part of it, that part's cosines with a chunk
    of queries, and the best.
    """
    if k > len(bank):
        raise UserError(f"k is {k}, but the bank holds {len(bank)} images. Use a smaller k, or a larger bank.")
    for asked in parts(queries, ASKED_PER_PASS, "queries"):
        yield _one_pass(asked, bank, k, torch.device(device))


def _one_pass(queries: Tensor, bank: Rows, k: int, device: torch.device) -> Nearest:
    chunks = [F.normalize(chunk.to(device), dim=1) for chunk in queries.split(ASKED_AT_ONCE)]
    best: list[Nearest | None] = [None] * len(chunks)
    first = 0
    for part in parts(bank, max(1, min(KNOWN_AT_ONCE, NUMBERS_AT_ONCE // bank.shape[1])), "bank"):
        known = F.normalize(part.to(device), dim=1)
        for i, chunk in enumerate(chunks):
            best[i] = _better(best[i], chunk @ known.T, first, k)
        first += len(part)
    found = [one for one in best if one is not None]
    return Nearest(torch.cat([one.cosines for one in found]).cpu(), torch.cat([one.rows for one in found]).cpu())


def _better(best: Nearest | None, cosines: Tensor, first: int, k: int) -> Nearest:
    """The best k among those so far and a further part of the bank, which begins with row `first`."""
    here = cosines.topk(min(k, cosines.shape[1]), dim=1)
    if best is None:
        return Nearest(here.values, here.indices + first)
    values = torch.cat([best.cosines, here.values], dim=1)
    rows = torch.cat([best.rows, here.indices + first], dim=1)
    chosen = values.topk(min(k, values.shape[1]), dim=1)
    return Nearest(chosen.values, rows.gather(1, chosen.indices))


def parts(rows: Rows, size: int, called: str) -> Iterator[Tensor]:
    """The rows in order, `size` at a time, as float tensors; refused where they are not numbers."""
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        part = part.float() if isinstance(part, Tensor) else torch.from_numpy(np.array(part, np.float32))
        require_numbers(part, called, first)
        yield part


def knn_votes(
    queries: Rows, bank: Rows, labels: Tensor, *, k: int, temperature: float = 0.1, device: torch.device | str = "cpu"
) -> Tensor:
    """Votes for each class: the k bank features nearest by cosine weigh exp(cos / T) (Wu et al. 2018).

    queries: (q, d), bank: (n, d), labels: (n,) → (q, labels.max() + 1). With T → ∞ it is the plain majority vote, with
    k = 1 the nearest neighbor.
    """
    classes = int(labels.max()) + 1
    return torch.cat([_votes(found, labels, classes, temperature) for found in nearest(queries, bank, k, device)])


def _votes(found: Nearest, labels: Tensor, classes: int, temperature: float) -> Tensor:
    cosines, rows = found
    weights = ((cosines - cosines[:, :1]) / temperature).exp()  # a common factor per query changes no ranking
    return weights.new_zeros(len(cosines), classes).scatter_add_(1, labels[rows], weights)


def knn_accuracy(
    queries: Rows,
    truth: Tensor,
    bank: Rows,
    labels: Tensor,
    *,
    k: int = 200,
    temperature: float = 0.1,
    device: torch.device | str = "cpu",
) -> float:
    """Percent of queries whose class gets most votes; every query counts."""
    votes = knn_votes(queries, bank, labels, k=k, temperature=temperature, device=device)
    return 100.0 * float((votes.argmax(1) == truth).double().mean())
