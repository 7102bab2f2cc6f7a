"""Equilibria by search: slow, without algebra, and knowing nothing but the flow."""

import numpy as np
from scipy.optimize import minimize_scalar

from phinets.dynamics.equilibria import AnySystem
from phinets.dynamics.systems import Floats, PhiNet, SimSiam, Version

VERSIONS: tuple[Version, ...] = ("published", "corrected")
BLUR = 1e-11
"""A turning point nearer to zero than this, beside ρ, could be two equilibria or none: the search does not know."""


def draws(seed: int, number: int) -> list[tuple[float, float]]:
    """Pairs (σ², ρ) over [0, 5] × (0, 0.5], ρ as often small as large."""
    random = np.random.default_rng(seed)
    return [(float(random.uniform(0, 5)), float(0.5 * 10 ** random.uniform(-5, 0))) for _ in range(number)]


def pace(system: AnySystem, psi: Floats) -> Floats:
    """ψ̇/ψ where γ rests: γ̇ is straight in γ, so two values tell where it is zero."""
    if isinstance(system, SimSiam):
        line: Floats = system.flow(psi[None])[0] / psi
        return line
    assert isinstance(system, PhiNet)
    at_0, at_1 = (system.flow(np.stack([psi, np.full_like(psi, gamma)]))[1] for gamma in (0.0, 1.0))
    plane: Floats = system.flow(np.stack([psi, at_0 / (at_0 - at_1)]))[0] / psi
    return plane


def searched(system: AnySystem, points: int = 20_000) -> int | None:
    """How many equilibria have ψ ≠ 0, or None where two that may be one are too near to tell.

    Sign changes of the pace on a fine grid, and two more where it turns between its points and crosses zero there.
    """
    number = 0
    for side in (-1, 1):
        grid = side * np.geomspace(1e-3 * system.rho, 3, points)
        values = pace(system, grid)
        number += int(np.sum(values[1:] * values[:-1] < 0))
        size = np.abs(values)
        dips = np.flatnonzero((size[1:-1] < size[:-2]) & (size[1:-1] < size[2:])) + 1
        for k in dips:
            sign = np.sign(values[k])
            if np.any(np.sign(values[k - 1 : k + 2]) != sign):
                continue
            ends = sorted((grid[k - 1], grid[k + 1]))
            turn = minimize_scalar(
                lambda psi, sign=sign: float(sign * pace(system, np.array([psi]))[0]),
                bounds=ends,
                method="bounded",
                options={"xatol": 1e-13 * abs(ends[1])},
            )
            if abs(turn.fun) < BLUR * system.rho:
                return None
            number += 2 * (turn.fun < 0)
    return number
