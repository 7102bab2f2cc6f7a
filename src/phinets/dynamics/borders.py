"""Where the basins of PhiNet end: the stable manifold of a saddle, read as a border of starting values."""

from collections.abc import Sequence

import numpy as np

from phinets.dynamics.equilibria import Equilibrium
from phinets.dynamics.paths import FIRST, arms
from phinets.dynamics.systems import Floats, PhiNet

PIECES = 4000


def border(system: PhiNet, saddle: Equilibrium, gamma_max: float = 6.0) -> tuple[Floats, Floats]:
    """The arms (2, n) of all that ends in a saddle, followed back in time; one with γ below the saddle's, one above.

    Each ends where |γ| is gamma_max or |ψ| is 2/s. The plane is seen in units of 1/s and 1, and followed at unit speed.
    """

    def room(state: Floats) -> float:
        return float(min(gamma_max - abs(state[1]), 2 / system.s - abs(state[0])))

    lengths = np.linspace(0, 2 * gamma_max, PIECES + 1)
    return arms(system, saddle, np.array([1 / system.s, 1.0]), room, lengths)


def crossing(arm: Floats, variable: int, value: float) -> float:
    """The other variable where an arm first passes a value of this one; NaN where it never does.

    variable: 0 for ψ, 1 for γ. Between the arm's points, 3/1000 apart, the curve is taken for a cubic.
    """
    over = arm[variable] - value
    passed = np.flatnonzero(over[1:] * over[:-1] <= 0)
    if not len(passed) or arm.shape[1] < 4:
        return float("nan")
    k = int(np.clip(passed[0] - 1, 0, arm.shape[1] - 4))
    known, wanted = arm[variable, k : k + 4], arm[1 - variable, k : k + 4]
    weights = [np.prod([(value - b) / (a - b) for j, b in enumerate(known) if j != i]) for i, a in enumerate(known)]
    return float(np.dot(weights, wanted))


def escape_from(system: PhiNet, saddle: Equilibrium, gammas: Sequence[float]) -> list[float]:
    """The border's ψ for each γ(0): what starts above it escapes the collapse; NaN where the border is beyond 2/s."""
    lower, upper = border(system, saddle, gamma_max=max(6.0, 1.2 * max(map(abs, gammas))))
    middle = saddle["gamma"]
    return [
        saddle.psi if abs(gamma - middle) < 10 * FIRST else crossing(upper if gamma > middle else lower, 1, gamma)
        for gamma in gammas
    ]
