"""Following many states at once through a flow that may be stiff, each at its own pace.

The method is RODAS3 (Sandu et al. 1997, Atmos. Environ. 31, 3459): a Rosenbrock method of order 3 with an estimate of
order 2 beside it, L-stable, so a fast direction that has decayed limits no step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phinets.dynamics.systems import Floats, System

GROWTH = (0.2, 6.0)
"""A step's size changes by a factor between these."""
SAFETY = 0.9
LONGEST = 1e9
"""A state that could take a step of so many times 1/ρ rests."""

Watch = Callable[[Floats, NDArray[np.intp]], NDArray[np.bool_]]
"""From states (k, m) and the numbers of their points to which of them need not be followed further."""


def step(system: System, state: Floats, h: Floats) -> tuple[Floats, Floats]:
    """The states one step later, and an estimate of what is wrong with them: both (k, m); h: (m,).

    (I/(hg) − J) Kᵢ = f(x + Σⱼ aᵢⱼKⱼ) + Σⱼ cᵢⱼKⱼ/h, with g = 1/2; the next state is x + 2K₁ + K₃ + K₄, the estimate K₄.
    """
    solve = _solver(system.jacobian(state), 2 / h)
    rate = system.flow(state)
    k1 = solve(rate)
    k2 = solve(rate + (4 / h) * k1)
    base = state + 2 * k1
    difference = (k1 - k2) / h
    k3 = solve(system.flow(base) + difference)
    k4 = solve(system.flow(base + k3) + difference - (8 / 3) / h * k3)
    return base + k3 + k4, k4


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """How exactly, and how long, states are followed."""

    rtol: float
    atol: float | Floats
    """A step's error counts beside atol + rtol·|x|; a column (k, 1) has one atol for each variable."""
    time: float = np.inf
    steps: int = 100_000


def flowed(system: System, starts: Floats, time: float, rtol: float = 1e-8, atol: float = 1e-12) -> Floats:
    """Where each state is after a time: (k, n) → (k, n)."""
    ends = np.array(starts, dtype=np.float64)

    def keep(states: Floats, points: NDArray[np.intp]) -> NDArray[np.bool_]:
        ends[:, points] = states
        return np.zeros(len(points), dtype=bool)

    follow(system, starts, keep, Care(rtol=rtol, atol=atol, time=time))
    return ends


def follow(system: System, starts: Floats, watch: Watch, care: Care) -> None:
    """Follow each state until the watcher lets it go, its time is over, it rests, or it has made so many steps.

    The watcher sees the states at their start, and after each step that was good enough.
    """
    points = np.arange(starts.shape[1])
    state = np.array(starts, dtype=np.float64)
    over = watch(state, points)
    points, state = points[~over], state[:, ~over]
    left = np.full(len(points), care.time)
    h = np.minimum(_first_step(system, state, care), left)
    for _ in range(care.steps):
        if not len(points):
            break
        with np.errstate(over="ignore", invalid="ignore"):  # a step that was far too long may end in no number
            after, wrong = step(system, state, h)
            size = np.max(np.abs(wrong) / (care.atol + care.rtol * np.maximum(np.abs(state), np.abs(after))), axis=0)
        good = size <= 1  # a NaN is not
        state = np.where(good, after, state)
        left = np.where(good, left - h, left)
        with np.errstate(divide="ignore"):
            factor = np.clip(SAFETY * size ** (-1 / 3), *GROWTH)
        h = np.minimum(h * np.where(np.isfinite(size), factor, GROWTH[0]), np.minimum(left, LONGEST / system.rho))
        rests = h >= LONGEST / system.rho
        over = good & (watch(state, points) | (left <= 0) | rests)
        if over.any():
            stay = ~over
            points, state, left, h = points[stay], state[:, stay], left[stay], h[stay]


def _first_step(system: System, state: Floats, care: Care) -> Floats:
    """A step that changes no variable by much of its size."""
    with np.errstate(divide="ignore"):
        pace = np.max(np.abs(system.flow(state)) / (care.atol / care.rtol + np.abs(state)), axis=0)
        first: Floats = np.minimum(0.01 / pace, 1 / system.rho)
        return first


def _solver(jacobian: Floats, shift: Floats) -> Callable[[Floats], Floats]:
    """Solves (shift·I − J) x = b for k ≤ 3 variables and any number of points, by cofactors."""
    m = -jacobian
    size = len(m)
    for i in range(size):
        m[i, i] += shift
    if size == 1:
        return lambda b: b / m[0]
    if size == 2:
        (p, q), (r, s) = m
        under = 1 / (p * s - q * r)
        return lambda b: np.stack([(s * b[0] - q * b[1]) * under, (p * b[1] - r * b[0]) * under])
    cofactors: list[list[Any]] = [
        [
            m[(i + 1) % 3, (j + 1) % 3] * m[(i + 2) % 3, (j + 2) % 3]
            - m[(i + 1) % 3, (j + 2) % 3] * m[(i + 2) % 3, (j + 1) % 3]
            for j in range(3)
        ]
        for i in range(3)
    ]
    under = 1 / sum(m[0, j] * cofactors[0][j] for j in range(3))
    return lambda b: np.stack([sum(cofactors[i][j] * b[i] for i in range(3)) * under for j in range(3)])
