"""The weighted k-nearest-neighbor vote: exact, and in bounded memory for a bank of any size."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from phinets.config.errors import UserError
from phinets.evaluation.features import Rows, require_finite_features

BANK_CHUNK_NUMBERS = 2**25
BANK_CHUNK = 65_536
"""Most numbers and rows of the bank in memory: 65,536 rows of 512 features, 134 MB."""
QUERY_CHUNK = 1_024
QUERIES_PER_PASS = 32_768
"""Queries that share one pass over the bank."""


class Nearest(NamedTuple):
    """The k nearest of the bank for each query, nearest first: both (q, k)."""

    cosines: Tensor
    rows: Tensor


def nearest(queries: Rows, bank: Rows, k: int, device: torch.device | str = "cpu") -> Iterator[Nearest]:
    """The k rows of the bank whose cosine with each query is highest, by comparing each query with every row.

    queries: (q, d), bank: (n, d), k ≤ n; some thousand queries at a time. The bank is read a chunk at a time, so memory
    holds one chunk of it, that chunk's cosines with a chunk of queries, and the best k so far.
    """
    if k > len(bank):
        raise UserError(f"k is {k}, but the bank holds {len(bank)} images. Use a smaller k, or a larger bank.")
    for chunk in row_chunks(queries, QUERIES_PER_PASS, "queries"):
        yield _one_pass(chunk, bank, k, torch.device(device))


def _one_pass(queries: Tensor, bank: Rows, k: int, device: torch.device) -> Nearest:
    chunks = [F.normalize(chunk.to(device), dim=1) for chunk in queries.split(QUERY_CHUNK)]
    best: list[Nearest | None] = [None] * len(chunks)
    first = 0
    for rows in row_chunks(bank, max(1, min(BANK_CHUNK, BANK_CHUNK_NUMBERS // bank.shape[1])), "bank"):
        unit = F.normalize(rows.to(device), dim=1)
        for i, chunk in enumerate(chunks):
            best[i] = _merge(best[i], chunk @ unit.T, first, k)
        first += len(rows)
    results = [one for one in best if one is not None]
    return Nearest(torch.cat([one.cosines for one in results]).cpu(), torch.cat([one.rows for one in results]).cpu())


def _merge(best: Nearest | None, cosines: Tensor, first: int, k: int) -> Nearest:
    """The best k among those so far and a further chunk of the bank, which begins with row `first`."""
    here = cosines.topk(min(k, cosines.shape[1]), dim=1)
    if best is None:
        return Nearest(here.values, here.indices + first)
    values = torch.cat([best.cosines, here.values], dim=1)
    rows = torch.cat([best.rows, here.indices + first], dim=1)
    chosen = values.topk(min(k, values.shape[1]), dim=1)
    return Nearest(chosen.values, rows.gather(1, chosen.indices))


def row_chunks(rows: Rows, size: int, name: str) -> Iterator[Tensor]:
    """The rows in order, `size` at a time, as float32 tensors; NaN and infinity are refused."""
    for first in range(0, len(rows), size):
        chunk = rows[first : first + size]
        chunk = chunk.float() if isinstance(chunk, Tensor) else torch.from_numpy(np.array(chunk, np.float32))
        yield require_finite_features(chunk, name, first)


def knn_votes(
    queries: Rows, bank: Rows, labels: Tensor, *, k: int, temperature: float = 0.1, device: torch.device | str = "cpu"
) -> Tensor:
    """Votes for each class: the k bank features nearest by cosine weigh exp(cos / T) (Wu et al. 2018).

    queries: (q, d), bank: (n, d), labels: (n,) → (q, labels.max() + 1). With T → ∞ it is the plain majority vote, with
    k = 1 the nearest neighbor.
    """
    votes = []
    for cosines, rows in nearest(queries, bank, k, device):
        weights = ((cosines - cosines[:, :1]) / temperature).exp()  # a common factor per query changes no ranking
        empty = weights.new_zeros(len(cosines), int(labels.max()) + 1)
        votes.append(empty.scatter_add_(1, labels[rows], weights))
    return torch.cat(votes)


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
    """kNN accuracy; every query counts.

    Args:
        queries: test features (q, d).
        truth: their labels (q,).
        bank: train features (n, d), in memory or memory-mapped.
        labels: their labels (n,).
        k: neighbors that vote, at most n.
        temperature: votes weigh exp(cosine / temperature).
        device: where the cosines are computed.

    Returns:
        Percent of the queries whose class gets most votes.

    Raises:
        UserError: where k exceeds the bank, or features are not finite.
    """
    votes = knn_votes(queries, bank, labels, k=k, temperature=temperature, device=device)
    return 100.0 * float((votes.argmax(1) == truth).double().mean())


def knn_protocol(k: int | str, temperature: float) -> str:
    """The vote in words."""
    return f"cosine, k={k}, T={temperature:g}"
