"""Basins of attraction: which sink a state ends in, and maps of a box of starts.

The integrator is RODAS3 (Sandu et al. 1997, Atmos. Environ. 31, 3459): an L-stable Rosenbrock method of order 3 with an
embedded estimate of order 2, so a fast direction that has decayed does not limit the step. It integrates many initial
states at once, each with its own step size.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_continuous_lyapunov
from scipy.ndimage import maximum_filter, minimum_filter

from phinets.config.errors import UserError, require_finite
from phinets.dynamics.equilibria import AnySystem, Equilibrium, equilibria
from phinets.dynamics.systems import AboveParabola, BelowParabola, Floats, PhiNetPhi, SimSiam, System

Labels = NDArray[np.int64]
BasinTest = Callable[[Floats], NDArray[np.bool_]]
"""Which of the states (k, m) surely end in a certain sink."""
NO_SINK = -1
"""The label of a state for which no sink was reached."""
STEPS = 20_000
"""After this number of steps a state is undecided: it started on a saddle or on the border of two basins."""
BLOCK = 4_000
"""Number of states integrated together: their arrays fit the processor's cache."""
FARTHEST = 1e6
"""Largest coordinate of a start: the flow's γ²ψ³ must not overflow."""
LARGEST = 4001
"""Most points per side of a map, for memory."""
ROUGH, FINE = 1e-4, 1e-6
"""Relative tolerances inside a basin and beside its border."""
DIRECTIONS = 360
RADII = np.geomspace(1e-9, 1e4, 53)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrappingRegion:
    """An ellipsoid |L(x − center)| < radius around a sink; every state in it ends in the sink."""

    center: Floats
    L: Floats
    radius: float

    def holds(self, states: Floats) -> NDArray[np.bool_]:
        """Which of the states (k, m) are inside."""
        inside: NDArray[np.bool_] = np.square(self.L @ (states - self.center[:, None])).sum(axis=0) < self.radius**2
        return inside


def trapping_region(system: System, center: Floats, scale: Floats) -> TrappingRegion:
    """The largest ellipsoid of its shape around a sink in which the flow contracts; scale: unit of each variable.

    With JᵀP + PJ = −Q at the sink and LᵀL = P, the |L·| distance of two states shrinks where PJ(x) + J(x)ᵀP < 0
    between them, so no state leaves an ellipsoid in which that holds. Q measures each variable by its scale. The radius
    is the largest up to which −PJ(x) − J(x)ᵀP stays above Q/10, sampled in 360 directions at four radii per decade;
    along x it is a polynomial of degree 4 (smooth where a variable is a logarithm), which this sampling resolves.
    """
    P = solve_continuous_lyapunov(system.jacobian(center).T, -np.diag(scale**-2.0))
    L = np.linalg.cholesky(P).T
    out = np.linalg.solve(L, _directions(len(P)))  # x − x* at radius 1: (k, directions)
    with np.errstate(over="ignore", invalid="ignore"):  # far out an exponential overflows
        J = np.moveaxis(system.jacobian(center[:, None, None] + out[:, :, None] * RADII), (0, 1), (-2, -1))
        contraction = scale[:, None] * (P @ J) * scale
    finite = np.isfinite(contraction).all(axis=(-2, -1))
    contraction = np.where(finite[..., None, None], contraction, 0.0)  # a slope of 0 is not below −Q/10
    worst = np.linalg.eigvalsh(contraction + np.swapaxes(contraction, -2, -1))[..., -1].max(axis=0)
    first_bad = np.append(worst >= -0.1, True).argmax()
    return TrappingRegion(center=center, L=L, radius=float(RADII[first_bad - 1]) if first_bad else 0.0)


def sinks_of(system: AnySystem) -> tuple[Equilibrium, ...]:
    """The sinks, by ascending ψ."""
    return tuple(each for each in equilibria(system) if each.kind == "sink")


def destinations(system: AnySystem, starts: Floats, rtol: float = 1e-6) -> Labels:
    """The number of the sink that each state ends in, in the order of `sinks_of`, or NO_SINK: (k, n) → (n,).

    A state is integrated until it enters the trapping region of a sink. On PhiNet's plane every state ends in an
    equilibrium: |ψ| falls where it is large, and Dulac's function 1/ψ² gives div (flow/ψ²) = −s(1+γ²), less sψ² where
    corrected, so that there is no cycle. SimSiam's line is divided exactly, at its equilibria.
    """
    if isinstance(system, SimSiam):
        return _labels_on_line(system, starts[0])
    if isinstance(system, PhiNetPhi):
        return _labels_around_parabola(system, starts, rtol)
    sinks = {number: np.array(sink.state) for number, sink in enumerate(sinks_of(system))}
    return _labels(system, starts, _trapping_regions(system, sinks), rtol)


def _trapping_regions(system: System, sinks: Mapping[int, Floats]) -> dict[int, BasinTest]:
    """The trapping region of each sink, given by its state."""
    return {
        label: trapping_region(system, sink, _scales(system, abs(float(sink[0])))).holds
        for label, sink in sinks.items()
    }


def _labels(system: System, starts: Floats, regions: Mapping[int, BasinTest], rtol: float) -> Labels:
    """The label of the region that each start enters first."""
    labels = np.full(starts.shape[1], NO_SINK)
    tolerance = Tolerance(rtol=rtol, atol=rtol * _scales(system)[:, None], steps=STEPS)

    def stop(states: Floats, points: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Label the states that have entered a region, and stop them."""
        finished = np.zeros(len(points), dtype=bool)
        for label, holds in regions.items():
            inside = holds(states)
            block[points[inside]] = label
            finished |= inside
        return finished

    for first in range(0, starts.shape[1], BLOCK):
        block = labels[first : first + BLOCK]
        integrate_until(system, starts[:, first : first + BLOCK], stop, tolerance)
    return labels


def _labels_around_parabola(system: PhiNetPhi, starts: Floats, rtol: float) -> Labels:
    """In the coordinates of `AboveParabola` for starts above and on it, of `BelowParabola` on each side below it."""
    phi, psi, gamma = starts
    off = psi**2 - phi
    omega: Floats = np.sqrt(np.abs(off))
    sinks = dict(enumerate(sinks_of(system)))
    origin = next(label for label, sink in sinks.items() if sink.collapsed)
    labels = np.full(len(phi), origin)  # without φ the state collapses
    above, on = AboveParabola(**asdict(system)), off <= 0
    regions = _trapping_regions(above, {k: np.array([sink.psi, 0.0, sink["gamma"]]) for k, sink in sinks.items()})
    labels[on] = _labels(above, np.stack([psi, omega, gamma])[:, on], regions, rtol)
    for side in (1, -1):
        below, under = BelowParabola(**asdict(system), side=side), (off > 0) & (side * psi > 0) & (phi > 0)
        regions = {origin: below.collapses}
        for k, sink in sinks.items():
            if side * sink.psi > 0:
                center = np.array([np.log(abs(sink.psi)), 0.0, sink["gamma"]])
                regions[k] = trapping_region(below, center, np.array([1.0, abs(sink.psi), 1.0])).holds
        states = np.stack([np.log(phi[under]) / 2, omega[under], gamma[under]])
        labels[under] = _labels(below, states, regions, rtol)
    return labels


def _scales(system: System, psi: float = 0.0) -> Floats:
    """The unit of each variable where ψ has this size, or ρ, as at the saddle beside the origin; 1 for γ and log φ."""
    unit = max(psi, min(system.rho, 1.0))
    return np.array([1.0 if name in ("gamma", "y") else unit for name in system.variables])


def _labels_on_line(system: SimSiam, psi: Floats) -> Labels:
    """The next equilibrium in the direction of the flow, which is constant between two equilibria."""
    points = equilibria(system)
    psis = np.array([each.psi for each in points])
    number = {each: k for k, each in enumerate(sinks_of(system))}
    label = np.array([NO_SINK, *(number.get(each, NO_SINK) for each in points), NO_SINK])
    ends = np.concatenate([[psis[0] - 1], psis, [psis[-1] + 1]])
    rises = system.flow((ends[1:] + ends[:-1])[None] / 2)[0] > 0
    gap = np.searchsorted(psis, psi)
    on = psis[np.minimum(gap, len(psis) - 1)] == psi
    return np.where(on | rises[gap], label[gap + 1], label[gap])


def _directions(variables: int) -> Floats:
    """Evenly spread unit vectors: (k, n)."""
    if variables == 2:
        angle = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        return np.stack([np.cos(angle), np.sin(angle)])
    number = np.arange(DIRECTIONS) + 0.5  # a golden spiral on the sphere
    height, turn = 1 - 2 * number / DIRECTIONS, np.pi * (1 + 5**0.5) * number
    wide = np.sqrt(1 - height**2)
    sphere: Floats = np.stack([wide * np.cos(turn), wide * np.sin(turn), height])
    return sphere


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle of starting points."""

    psi_min: float = -0.5
    psi_max: float = 0.5
    gamma_min: float = -3.0
    gamma_max: float = 3.0

    def __post_init__(self) -> None:
        require_finite(self)
        for name, low, high in (("psi", self.psi_min, self.psi_max), ("gamma", self.gamma_min, self.gamma_max)):
            if low >= high:
                raise UserError(f"the box is empty: its {name} is from {low} to {high}. Give the smaller end first.")
            if max(abs(low), abs(high)) > FARTHEST:
                raise UserError(f"the box's {name} is from {low} to {high}, but must be within ±{FARTHEST:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Basins:
    """Where each start of a grid ends."""

    system: AnySystem
    psi: Floats
    """(N,): the columns' ψ."""
    gamma: Floats
    """(N,): the rows' γ."""
    sinks: tuple[Equilibrium, ...]
    labels: Labels
    """(N, N), one row per γ: the number of the sink, or −1 where none was reached."""

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of starts that ends in each sink."""
        return tuple(float(np.mean(self.labels == number)) for number in range(len(self.sinks)))

    @property
    def non_collapsed(self) -> float:
        """The share of starts that ends in a sink that is not collapsed."""
        return float(sum(share for share, sink in zip(self.shares, self.sinks, strict=True) if not sink.collapsed))

    @property
    def undecided(self) -> int:
        """The number of starts for which no sink was reached: on a border, on a saddle, or on a cycle."""
        return int(np.sum(self.labels == NO_SINK))


def basins(system: AnySystem, box: Box, grid: int = 401, start: Mapping[str, float] | None = None) -> Basins:
    """Which sink each point of a grid × grid map ends in, its edges included.

    A further variable starts on its slow manifold, φ at ψ² and slow at ψ, or at its value in `start`. All points are
    integrated at the tolerance ROUGH; then border points are repeated at FINE until no new border point appears.
    """
    if not 2 <= grid <= LARGEST:
        raise UserError(f"grid is {grid}, but a map has 2 to {LARGEST} points per side, e.g. 401.")
    psi, gamma = np.linspace(box.psi_min, box.psi_max, grid), np.linspace(box.gamma_min, box.gamma_max, grid)
    states = _initial_states(system, psi, gamma, start or {})
    labels = destinations(system, states, ROUGH)
    fine = np.full(labels.shape, isinstance(system, SimSiam))
    while len(border := np.flatnonzero(_border_points(labels.reshape(grid, grid)).ravel() & ~fine)):
        labels[border] = destinations(system, states[:, border], FINE)
        fine[border] = True
    return Basins(system=system, psi=psi, gamma=gamma, sinks=sinks_of(system), labels=labels.reshape(grid, grid))


def simsiam_basins(system: AnySystem, box: Box, grid: int = 401) -> Basins:
    """SimSiam on the same box, with the same σ² and ρ; its ends do not depend on γ."""
    return basins(SimSiam(sigma2=system.sigma2, rho=system.rho), box, grid)


def _initial_states(system: AnySystem, psi: Floats, gamma: Floats, start: Mapping[str, float]) -> Floats:
    """(k, N·N), row after row."""
    psi_grid, gamma_grid = (each.ravel() for each in np.meshgrid(psi, gamma))
    values = {"psi": psi_grid, "gamma": gamma_grid, "phi": psi_grid**2, "slow": psi_grid}
    for name, value in start.items():
        if name not in system.variables or name in ("psi", "gamma"):
            raise UserError(
                f"{name} {value} does not apply: the flow's variables are {', '.join(system.variables)}. Leave it out."
            )
        if not abs(value) <= FARTHEST or (name == "phi" and value < 0):
            raise UserError(f"{name} starts at {value}; give a number up to {FARTHEST:g}, and for phi none below 0.")
        values[name] = np.full_like(psi_grid, value)
    return np.stack([values[name] for name in system.variables])


def _border_points(labels: Labels) -> NDArray[np.bool_]:
    """Which points have one of their eight neighbors in another basin, or are undecided."""
    several = maximum_filter(labels, 3, mode="nearest") != minimum_filter(labels, 3, mode="nearest")
    border: NDArray[np.bool_] = several | (labels == NO_SINK)
    return border
