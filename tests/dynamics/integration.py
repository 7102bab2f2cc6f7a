"""Integration for a time, by the solver that basins use."""

import numpy as np
from numpy.typing import NDArray

from phinets.dynamics.basins import Tolerance, integrate_until
from phinets.dynamics.systems import Floats, System


def integrate_for(system: System, starts: Floats, time: float, rtol: float = 1e-8, atol: float = 1e-12) -> Floats:
    """The states after a time: (k, n) → (k, n)."""
    ends = np.array(starts, dtype=np.float64)

    def record(states: Floats, points: NDArray[np.intp]) -> NDArray[np.bool_]:
        ends[:, points] = states
        return np.zeros(len(points), dtype=bool)

    integrate_until(system, starts, record, Tolerance(rtol=rtol, atol=atol, time=time))
    return ends
