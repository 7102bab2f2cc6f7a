"""Metrics of an accuracy matrix: average accuracy, forgetting, backward and forward transfer.

a[t, i] is the accuracy on task i after task t, both counted from 0 here and from 1 in the equations, T tasks in all. It
is NaN where it was not measured: in the rows above a task that was appended later, in the column of a task without
labels. Means leave such entries out; a mean over nothing is NaN, so forgetting and transfer of one task are NaN.
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
    """A_t = 1/t Σ_{i≤t} a[t, i] after every task: the mean over the tasks so far. (T, T) → (T,), A_T last."""
    return np.array([_mean(row[: t + 1]) for t, row in enumerate(_matrix(a))])


def forgetting(a: ArrayLike, rule: Literal["max", "diag"] = "max") -> float:
    """The accuracy lost on the tasks before the last; negative where they are now better than ever.

    `max`, the paper's formula: F = 1/(T−1) Σ_{i<T} max_{t<T} (a[t, i] − a[T, i]), whose maximum includes
    accuracies on a task before it was trained. `diag`, UCL's code: 1/(T−1) Σ_{i<T} (a[i, i] − a[T, i]) ≤ `max`.
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
    """FWT = 1/(T−1) Σ_{i>1} (a[i−1, i] − b_i): the gain on a task before it is trained (as above).

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
    """The mean of the values that are not NaN."""
    valid = values[~np.isnan(values)]
    return float(valid.mean()) if valid.size else float("nan")
