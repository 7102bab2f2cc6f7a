"""Curves in the (ψ, γ) plane: nullclines, trajectories, and the stable manifolds that separate the basins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from warnings import catch_warnings

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import BarycentricInterpolator

from phinets.config.errors import UserError
from phinets.dynamics.basins import FARTHEST, Box
from phinets.dynamics.equilibria import Equilibrium, equilibria
from phinets.dynamics.systems import Floats, PhiNet, SimSiam

FIRST = 1e-6
"""Distance of the first point of an arm from its saddle, in units of the plane's scales."""
NEAR = 1e-6
"""Distance at which a trajectory has reached its sink; at most a hundredth of the way to the next equilibrium."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Box):
    """The region of the plane that a figure shows."""

    @property
    def corner(self) -> Floats:
        """Its smallest ψ and γ."""
        return np.array([self.psi_min, self.gamma_min])

    @property
    def size(self) -> Floats:
        """Its width and height."""
        return np.array([self.psi_max - self.psi_min, self.gamma_max - self.gamma_min])


def window_around(systems: Sequence[SimSiam | PhiNet], starts: Sequence[Sequence[float]] = ()) -> Window:
    """The window around every equilibrium and start, with a margin, and at least around ψ = 0 and ψ = 1/s.

    A start is a ψ, or a ψ and a γ.
    """
    s = min(system.s for system in systems)
    points = [point for system in systems for point in equilibria(system)]
    psi = np.array([-0.25 / s, 1.3 / s, *(point.psi for point in points), *(start[0] for start in starts)])
    gammas = [value for start in starts for value in start[1:2]]
    gamma = np.array([-0.3, 1.1, *(point.gamma or 0.0 for point in points), *gammas])
    ends = ((v.min() - 0.08 * np.ptp(v), v.max() + 0.08 * np.ptp(v)) for v in (psi, gamma))
    (a, b), (c, d) = (np.clip(pair, -FARTHEST, FARTHEST) for pair in ends)
    return Window(psi_min=float(a), psi_max=float(b), gamma_min=float(c), gamma_max=float(d))


def sample_starts(window: Window) -> list[tuple[float, float]]:
    """Six starts, spread over the window."""
    shares = np.array([[0.06, 0.85], [0.36, 0.93], [0.94, 0.8], [0.94, 0.12], [0.42, 0.2], [0.06, 0.3]])
    return [(float(psi), float(gamma)) for psi, gamma in window.corner + shares * window.size]


def psi_nullcline(system: PhiNet, pieces: int = 2000) -> Floats:
    """Where ψ̇ = 0 away from ψ = 0, exactly: (2, n), a gap of NaN at its pole ψ = 0; empty for ρ > 1/2s.

    (1+γ)ψ − s(1+γ²)ψ² = ρ is the circle (2sψ−1)² + (2sψγ−1)² = 2 − 4sρ. With its radius r and an angle θ,
    2sψ = 1 + r cos θ and 2sψγ = 1 + r sin θ.
    """
    square = 2 - 4 * system.s * system.rho
    if square <= 0:
        return np.empty((2, 0))
    angle = np.linspace(0, 2 * np.pi, pieces + 1)
    across, up = 1 + np.sqrt(square) * np.cos(angle), 1 + np.sqrt(square) * np.sin(angle)
    across[np.flatnonzero(across[1:] * across[:-1] <= 0)] = np.nan
    return np.stack([across / (2 * system.s), up / across])


def gamma_nullcline(system: PhiNet, psi: Floats) -> Floats:
    """γ where γ̇ = 0, for each ψ: ψ³(1 − sψ)/ρ as published, ψ³/(ρ + sψ⁴) as corrected."""
    if system.version == "published":
        return psi**3 * (1 - system.s * psi) / system.rho
    return psi**3 / (system.rho + system.s * psi**4)


def trajectory(system: SimSiam | PhiNet, start: Sequence[float]) -> tuple[Floats, Equilibrium | None]:
    """The states (k, n) from a start to its sink, and the sink; None where no sink is reached.

    The time limit is 200/ρ: the slowest decay is of the order of ρ.
    """
    points = equilibria(system)
    places = np.array([point.state for point in points])
    apart = np.linalg.norm(places[:, None] - places, axis=-1) + np.diag(np.full(len(points), np.inf))
    radius = np.minimum(NEAR, apart.min(axis=1) / 100)
    sinks = np.array([point.kind == "sink" for point in points])

    def outside(time: float, state: Floats) -> float:
        return float((np.linalg.norm(state - places[sinks], axis=1) / radius[sinks]).min() - 1)

    outside.terminal = True  # type: ignore[attr-defined]
    with catch_warnings(action="ignore"):  # a failure raises below
        solution = solve_ivp(
            lambda time, state: system.flow(state), (0, 200 / system.rho), np.asarray(start, dtype=float),
            method="LSODA", rtol=1e-9, atol=1e-12, events=outside,
        )  # fmt: skip
    if not solution.success:
        raise UserError(f"the start {tuple(map(float, start))} is too far out to be integrated. Start nearer to 0.")
    distances = np.linalg.norm(solution.y[:, -1] - places, axis=1) / radius
    nearest = int(distances.argmin())
    return solution.y, points[nearest] if distances[nearest] <= 1.01 and sinks[nearest] else None


def stable_manifold(system: PhiNet, saddle: Equilibrium, window: Window) -> tuple[Floats, Floats]:
    """The two arms (2, n) of a saddle's stable manifold, integrated backward until they leave the window."""
    lengths = np.linspace(0, 8, 1601)
    return saddle_arms(
        system, saddle, window.size, lambda x: 0.75 - np.abs((x - window.corner) / window.size - 0.5).max(), lengths
    )


def saddle_arms(
    system: PhiNet, saddle: Equilibrium, scales: Floats, margin: Callable[[Floats], float], lengths: Floats
) -> tuple[Floats, Floats]:
    """Both arms (2, n) of a saddle's stable manifold at `lengths`: backward, at unit speed in units of `scales`.

    They start along the eigenvector of the negative eigenvalue, the first with γ below the saddle's, and end where
    `margin` reaches 0.
    """
    point = np.array(saddle.state)
    along = _stable_direction(system, saddle)
    along /= np.linalg.norm(along / scales)

    def backward(_: float, state: Floats) -> Floats:
        rate = -system.flow(state)
        return rate / (np.linalg.norm(rate / scales) + 1e-300)

    def inside(_: float, state: Floats) -> float:
        return float(margin(state))

    inside.terminal = True  # type: ignore[attr-defined]
    lower, upper = (
        solve_ivp(
            backward, (0, lengths[-1]), point + side * FIRST * along, "RK45", lengths, events=inside,
            rtol=1e-9, atol=1e-12, max_step=0.05,
        ).y
        for side in (-1, 1)
    )  # fmt: skip
    return lower, upper


def _stable_direction(system: PhiNet, saddle: Equilibrium) -> Floats:
    """The eigenvector of a saddle's negative eigenvalue, with γ upward."""
    values, vectors = np.linalg.eig(system.jacobian(np.array(saddle.state)))
    along = vectors[:, values.real.argmin()].real
    upward: Floats = along * np.sign(along[1])
    return upward


def stable_border(system: PhiNet, saddle: Equilibrium, gamma_max: float = 6.0) -> tuple[Floats, Floats]:
    """Both arms (2, n) of a saddle's stable manifold as a border of basins; the first with γ below the saddle's.

    Each ends where |γ| is gamma_max or |ψ| is 2/s. The units of ψ and γ are 1/s and 1.
    """
    ends, lengths = np.array([2 / system.s, gamma_max]), np.linspace(0, 2 * gamma_max, 4001)
    return saddle_arms(system, saddle, np.array([1 / system.s, 1.0]), lambda x: (ends - np.abs(x)).min(), lengths)


def border_crossing(arm: Floats, variable: int, value: float) -> float:
    """The other variable where an arm first crosses a value of this one; NaN where it never does.

    variable: 0 for ψ, 1 for γ. Cubic interpolation between the arm's points, 3/1000 apart.
    """
    offset = arm[variable] - value
    crossings = np.flatnonzero(offset[1:] * offset[:-1] <= 0)
    if not len(crossings) or arm.shape[1] < 4:
        return float("nan")
    first = int(np.clip(crossings[0] - 1, 0, arm.shape[1] - 4))
    near = arm[:, first : first + 4]
    return float(BarycentricInterpolator(near[variable], near[1 - variable])(value))


def smallest_escaping_psi(system: PhiNet, saddle: Equilibrium, gammas: Sequence[float]) -> list[float]:
    """The border's ψ for each γ(0), above which a start escapes the collapse; NaN where the border is beyond 2/s."""
    lower, upper = stable_border(system, saddle, gamma_max=max(6.0, 1.2 * max(map(abs, gammas))))
    over = [gamma - saddle["gamma"] for gamma in gammas]
    return [
        border_crossing(upper if off > 0 else lower, 1, gamma) if abs(off) >= 10 * FIRST else saddle.psi
        for gamma, off in zip(gammas, over, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class EscapeWindows:
    """The γ(0) that escape the collapse, and the ψ(0) for which there are any."""

    smallest_psi: float
    """Below it no γ(0) escapes; 0: from every ψ(0) > 0 some γ(0) does, as far as γ = FARTHEST shows."""
    windows: tuple[tuple[float, float | None] | None, ...]
    """For each ψ(0) the ends of the γ(0) that escape; no upper end up to FARTHEST: None; no γ(0) at all: None."""


def escape_windows(system: PhiNet, saddle: Equilibrium, psis: Sequence[float]) -> EscapeWindows:
    """From which γ(0) each ψ(0) > 0 escapes; `saddle` is the one nearest to the collapse with ψ > 0.

    Its stable manifold is the border of the collapse. Both arms are followed backward, in ln ψ and γ; a root search on
    them finds where ψ is ψ(0), and where ψ is least (ψ̇ = 0). For large γ, u = γψ obeys u̇ = (1 − su)u² − 2ρu. So for
    ρ < 1/8s the border falls as 1/γ for ever, and for ρ > 1/8s it turns upward: too large a γ(0) collapses.
    """
    along, largest = _stable_direction(system, saddle), max(2 / system.s, 2 * max(psis))

    def backward(_: float, state: Floats) -> Floats:
        psi, gamma = np.exp(state[0]), state[1]
        rate = system.flow(np.array([psi, gamma]))
        return -rate / (system.rho * np.array([psi, 1.0]))

    def margin(_: float, state: Floats) -> float:
        return float(min(np.log(largest) - state[0], FARTHEST - abs(state[1])))

    def slope(time: float, state: Floats) -> float:
        return float(backward(time, state)[0])

    margin.terminal = True  # type: ignore[attr-defined]
    passes = [lambda _, state, psi=psi: state[0] - np.log(psi) for psi in psis]
    arms = []
    for side in (-1, 1):
        psi, gamma = np.array(saddle.state) + side * FIRST * along
        arms.append(
            solve_ivp(
                backward, (0, 1e3), [np.log(psi), gamma], "DOP853", rtol=1e-10, atol=1e-12, max_step=0.5,
                events=[margin, slope, *passes],
            ).y_events
        )  # fmt: skip
    turns = arms[1][1]
    crossings = [[state[1] for arm in arms for state in arm[2 + k]] for k in range(len(psis))]
    return EscapeWindows(
        smallest_psi=float(np.exp(turns[0][0])) if len(turns) else 0.0,
        windows=tuple(_ends(sorted(map(float, gammas))) for gammas in crossings),
    )


def _ends(gammas: list[float]) -> tuple[float, float | None] | None:
    return (gammas[0], gammas[-1] if len(gammas) > 1 else None) if gammas else None
