"""What an accuracy matrix says: how much is known at the end, how much was lost, how much was passed on.

a[t, i] is the accuracy on task i once task t was learned, both from 0 here and from 1 in the equations, T tasks in all.
It is NaN where it could not be asked: in the rows above a task that was appended later, in the column of a task without
labels. Such entries take no part in any mean; a mean over nothing is NaN, so that of one task nothing is forgotten and
nothing is transferred.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phinets.config.errors import UserError

Floats = NDArray[np.float64]


def average(a: ArrayLike) -> float:
    """A_T = 1/T Σ_i a[T, i]: the mean of the last row."""
    return _mean(_matrix(a)[-1])


def stages(a: ArrayLike) -> Floats:
    """A_t = 1/t Σ_{i≤t} a[t, i] after every task: the mean over the tasks that have come. (T, T) → (T,), A_T last."""
    return np.array([_mean(row[: t + 1]) for t, row in enumerate(_matrix(a))])


def forgetting(a: ArrayLike, rule: Literal["max", "diag"] = "max") -> float:
    """What is no longer known of the tasks before the last; negative where they are known better than ever.

    `max`, the paper's formula: F = 1/(T−1) Σ_{i<T} max_{t<T} (a[t, i] − a[T, i]), whose maximum also looks at what was
    known of a task before it came. `diag`, UCL's code: 1/(T−1) Σ_{i<T} (a[i, i] − a[T, i]), which is never above `max`.
    """
    m = _matrix(a)
    if rule == "diag":
        return _mean(np.diagonal(m)[:-1] - m[-1, :-1])
    before = np.where(np.isnan(m[:-1, :-1]), -np.inf, m[:-1, :-1])
    best = before.max(axis=0, initial=-np.inf)
    return _mean(np.where(np.isneginf(best), np.nan, best) - m[-1, :-1])


def backward_transfer(a: ArrayLike) -> float:
    """BWT = 1/(T−1) Σ_{i<T} (a[T, i] − a[i, i]): what later tasks added to earlier ones (Lopez-Paz & Ranzato 2017)."""
    return -forgetting(a, "diag")


def forward_transfer(a: ArrayLike, untrained: ArrayLike) -> float:
    """FWT = 1/(T−1) Σ_{i>1} (a[i−1, i] − b_i): what earlier tasks gave to one before it came (as above).

    untrained: b (T,), the accuracies of the encoder before its first step.
    """
    m, b = _matrix(a), np.asarray(untrained, dtype=np.float64)
    if b.shape != m.shape[:1]:
        raise UserError(f"there are {len(m)} tasks, but the untrained encoder's accuracies have shape {b.shape}.")
    return _mean(np.diagonal(m, offset=1) - b[1:])


def _matrix(a: ArrayLike) -> Floats:
    m = np.asarray(a, dtype=np.float64)
    if m.ndim != 2 or m.shape[0] != m.shape[1] or not m.size:
        raise UserError(f"an accuracy matrix has a row and a column for each task, but this one has shape {m.shape}.")
    return m


def _mean(values: Floats) -> float:
    """The mean of those that are numbers."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
