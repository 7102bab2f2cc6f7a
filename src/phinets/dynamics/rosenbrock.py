"""RODAS3 for many initial states at once, each with its own step size; the flow may be stiff.

RODAS3 (Sandu et al. 1997, Atmos. Environ. 31, 3459) is an L-stable Rosenbrock method of order 3 with an embedded
estimate of order 2, so a fast direction that has decayed does not limit the step.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phinets.dynamics.systems import Floats, System

GROWTH = (0.2, 6.0)
"""Smallest and largest factor between two step sizes."""
SAFETY = 0.9
LONGEST = 1e9
"""A state whose step size reaches this many times 1/ρ is at rest."""

StopCondition = Callable[[Floats, NDArray[np.intp]], NDArray[np.bool_]]
"""From states (k, m) and their indices to a mask of those whose integration ends."""


def step(system: System, state: Floats, h: Floats) -> tuple[Floats, Floats]:
    """The states one step later and an estimate of their error: both (k, m); h: (m,).

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
class Tolerance:
    """Tolerances and limits of an integration."""

    rtol: float
    atol: float | Floats
    """A step's error is compared with atol + rtol·|x|; a column (k, 1) has one atol per variable."""
    time: float = np.inf
    steps: int = 100_000


def integrate_until(system: System, starts: Floats, stop: StopCondition, tolerance: Tolerance) -> None:
    """Integrate each state until `stop` selects it, its time is over, it is at rest, or the steps are used up.

    `stop` sees the initial states, and the states after each accepted step.
    """
    points = np.arange(starts.shape[1])
    state = np.array(starts, dtype=np.float64)
    finished = stop(state, points)
    points, state = points[~finished], state[:, ~finished]
    remaining = np.full(len(points), tolerance.time)
    h = np.minimum(_first_step(system, state, tolerance), remaining)
    for _ in range(tolerance.steps):
        if not len(points):
            break
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is far too long may overflow
            proposal, error = step(system, state, h)
            size = np.max(
                np.abs(error) / (tolerance.atol + tolerance.rtol * np.maximum(np.abs(state), np.abs(proposal))), axis=0
            )
        accepted = size <= 1  # False for NaN
        state = np.where(accepted, proposal, state)
        remaining = np.where(accepted, remaining - h, remaining)
        with np.errstate(divide="ignore"):
            factor = np.clip(SAFETY * size ** (-1 / 3), *GROWTH)
        h = np.minimum(h * np.where(np.isfinite(size), factor, GROWTH[0]), np.minimum(remaining, LONGEST / system.rho))
        at_rest = h >= LONGEST / system.rho
        finished = accepted & (stop(state, points) | (remaining <= 0) | at_rest)
        if finished.any():
            stay = ~finished
            points, state, remaining, h = points[stay], state[:, stay], remaining[stay], h[stay]


def _first_step(system: System, state: Floats, tolerance: Tolerance) -> Floats:
    """A step in which no variable changes by more than a hundredth of its size."""
    with np.errstate(divide="ignore"):
        speed = np.max(np.abs(system.flow(state)) / (tolerance.atol / tolerance.rtol + np.abs(state)), axis=0)
        first: Floats = np.minimum(0.01 / speed, 1 / system.rho)
        return first


def _solver(jacobian: Floats, shift: Floats) -> Callable[[Floats], Floats]:
    """Solves (shift·I − J) x = b for k ≤ 3 variables and any number of points, by Cramer's rule."""
    m = -jacobian
    for i in range(len(m)):
        m[i, i] += shift
    if len(m) == 1:
        return lambda b: b / m[0]
    if len(m) == 2:
        (p, q), (r, s) = m
        under = 1 / (p * s - q * r)
        return lambda b: np.stack([(s * b[0] - q * b[1]) * under, (p * b[1] - r * b[0]) * under])
    columns = [_cross(m[i - 2], m[i - 1]) for i in range(3)]  # of the inverse, times the determinant
    under = 1 / (m[0] * columns[0]).sum(axis=0)
    return lambda b: (columns[0] * b[0] + columns[1] * b[1] + columns[2] * b[2]) * under


def _cross(a: Floats, b: Floats) -> Floats:
    """a × b for many vectors (3, m); faster than numpy.cross."""
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
