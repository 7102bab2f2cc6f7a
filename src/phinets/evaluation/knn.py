"""The weighted k-nearest-neighbour vote."""

import torch
import torch.nn.functional as F
from torch import Tensor


def knn_votes(
    queries: Tensor, bank: Tensor, labels: Tensor, *, classes: int, k: int = 200, temperature: float = 0.1
) -> Tensor:
    """Votes for each class: the k bank features nearest by cosine weigh exp(cos / T) (Wu et al. 2018).

    queries: (q, d), bank: (n, d), labels: (n,) → (q, classes). Queries are taken in chunks, so memory stays bounded; k
    is cut to the size of the bank. With T → ∞ it is the plain majority vote, with k = 1 the nearest neighbour.
    """
    known = F.normalize(bank, dim=1)
    k = min(k, len(bank))
    votes = [
        _vote(F.normalize(chunk, dim=1) @ known.T, labels, classes, k, temperature) for chunk in queries.split(1024)
    ]
    return torch.cat(votes)


def _vote(similarity: Tensor, labels: Tensor, classes: int, k: int, temperature: float) -> Tensor:
    nearest, where = similarity.topk(k, dim=1)
    weights = ((nearest - nearest[:, :1]) / temperature).exp()  # a common factor per query changes no ranking
    votes = torch.zeros(len(similarity), classes, dtype=weights.dtype, device=weights.device)
    return votes.scatter_add_(1, labels[where], weights)


def knn_accuracy(
    queries: Tensor, truth: Tensor, bank: Tensor, labels: Tensor, *, k: int = 200, temperature: float = 0.1
) -> float:
    """Percent of queries whose class gets most votes; every query counts."""
    classes = int(max(int(labels.max()), int(truth.max()))) + 1
    votes = knn_votes(queries, bank, labels, classes=classes, k=k, temperature=temperature)
    return 100.0 * float((votes.argmax(1) == truth).double().mean())
