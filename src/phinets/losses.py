"""The losses, as pure functions of tensors. None of them detaches; stop-gradients are in the learners."""

import torch
import torch.nn.functional as F
from torch import Tensor


def negative_cosine(p: Tensor, z: Tensor) -> Tensor:
    """Mean of −cos(p_i, z_i): D of the paper's pseudocode, L_Cos of its §3.1 for one direction.

    p, z: (n, d). In [−1, 1]: −1 where p and z are parallel, 0 where they are orthogonal.
    """
    return -F.cosine_similarity(p, z, dim=1, eps=1e-12).mean()


def squared_distance(p: Tensor, z: Tensor) -> Tensor:
    """Mean of ‖p̂_i − ẑ_i‖² = 2 − 2cos(p_i, z_i) of l2-normalized vectors: BYOL's regression loss (Grill et al. 2020).

    p, z: (n, d). In [0, 4]: 0 where p and z are parallel.
    """
    return 2.0 + 2.0 * negative_cosine(p, z)


def mean_squared_error(y: Tensor, z: Tensor) -> Tensor:
    """Mean over n·d of (y − z)²: L_NC of the paper's §3.2 as its pseudocode has it (`mse_loss`).

    y, z: (n, d). The text's sum over d is d times this; `sim2_weight` converts one into the other.
    """
    return F.mse_loss(y, z)


def cross_correlation(z1: Tensor, z2: Tensor) -> Tensor:
    """Correlation over the batch of each dimension of z1 with each of z2.

    z1, z2: (n, d) → (d, d), entries in [−1, 1]; the identity where the views agree and the dimensions are independent.
    """
    return _standardize(z1).T @ _standardize(z2) / len(z1)


def _standardize(z: Tensor) -> Tensor:
    return (z - z.mean(0)) / (z.var(0, unbiased=False) + 1e-5).sqrt()


def decorrelation(correlation: Tensor, off_diagonal: float) -> Tensor:
    """Σ_i (1 − C_ii)² + λ Σ_{i≠j} C_ij²: Barlow Twins' loss (Zbontar et al. 2021, eq. 1).

    correlation: (d, d). 0 exactly at the identity.
    """
    diagonal = torch.diagonal(correlation)
    redundancy = correlation.square().sum() - diagonal.square().sum()
    return (1 - diagonal).square().sum() + off_diagonal * redundancy


def info_nce(query: Tensor, key: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """−log softmax of the positive key among all keys: MoCo's InfoNCE (He et al. 2020, eq. 1).

    query, key: (n, d) and queue: (m, d), all l2-normalized. log(m + 1) where all keys are equally similar, 0 in the
    limit where each query is far more similar to its own key.
    """
    positive = (query * key).sum(1, keepdim=True)
    logits = torch.cat([positive, query @ queue.T], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(query), dtype=torch.long, device=query.device))


def batch_nce(query: Tensor, keys: Tensor, first: int, temperature: float) -> Tensor:
    """InfoNCE whose negatives are the batch's other images; the positive of query i is key `first` + i.

    query: (n, d) and keys: (m, d), all l2-normalized. log(m) where all keys are equally similar, 0 in the limit where
    each query is far more similar to its own key.
    """
    own = torch.arange(first, first + len(query), device=query.device)
    return F.cross_entropy(query @ keys.T / temperature, own)
