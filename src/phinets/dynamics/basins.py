"""Which sink a state ends in."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_continuous_lyapunov

from phinets.config.errors import UserError, require_finite
from phinets.dynamics.equilibria import AnySystem, Equilibrium, equilibria
from phinets.dynamics.rosenbrock import Care, Watch, follow
from phinets.dynamics.systems import Above, Below, Floats, PhiNetPhi, SimSiam, System

Labels = NDArray[np.int64]
Catch = Callable[[Floats], NDArray[np.bool_]]
"""Which of the states (k, m) surely end in a certain sink."""
UNDECIDED = -1
"""The label of a state that was not seen to end in a sink."""
STEPS = 20_000
"""After so many steps a state is undecided: it started on a saddle or on the border of two basins."""
BLOCK = 4_000
"""So many states are followed together: their arrays stay in the processor's cache."""
DIRECTIONS = 360
RADII = np.geomspace(1e-9, 1e4, 53)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighborhood:
    """An ellipsoid |L(x − center)| < radius around a sink; every state in it ends in the sink."""

    center: Floats
    L: Floats
    radius: float

    def holds(self, states: Floats) -> NDArray[np.bool_]:
        """Which of the states (k, m) are inside."""
        inside: NDArray[np.bool_] = np.square(self.L @ (states - self.center[:, None])).sum(axis=0) < self.radius**2
        return inside


def neighborhood(system: System, center: Floats, scale: Floats) -> Neighborhood:
    """The largest ellipsoid of its shape around a sink in which the flow contracts; scale: one of each variable.

    With JᵀP + PJ = −Q at the sink and LᵀL = P, any two states with PJ(x) + J(x)ᵀP < 0 between them come nearer to each
    other in |L·|, so none leaves an ellipsoid in which that holds. Q measures each variable by its scale. The radius is
    the largest up to which −PJ(x) − J(x)ᵀP stays above Q/10, looked at in hundreds of directions and at four radii a
    decade. That asks for all directions of motion at each x, however thin the ellipsoid is; along x it is a polynomial
    of degree 4 (and smooth where a variable is a logarithm), which so many places can't miss.
    """
    P = solve_continuous_lyapunov(system.jacobian(center).T, -np.diag(scale**-2.0))
    L = np.linalg.cholesky(P).T
    out = np.linalg.solve(L, _directions(len(P)))  # x − x* at radius 1: (k, directions)
    with np.errstate(over="ignore", invalid="ignore"):  # far out, where a logarithm's numbers are no numbers
        J = np.moveaxis(system.jacobian(center[:, None, None] + out[:, :, None] * RADII), (0, 1), (-2, -1))
        pulled = scale[:, None] * (P @ J) * scale
    numbers = np.isfinite(pulled).all(axis=(-2, -1))
    pulled = np.where(numbers[..., None, None], pulled, 0.0)  # a slope of 0 is not below −Q/10
    worst = np.linalg.eigvalsh(pulled + np.swapaxes(pulled, -2, -1))[..., -1].max(axis=0)
    good = np.append(worst >= -0.1, True).argmax()
    return Neighborhood(center=center, L=L, radius=float(RADII[good - 1]) if good else 0.0)


def sinks_of(system: AnySystem) -> tuple[Equilibrium, ...]:
    """The sinks, by ascending ψ."""
    return tuple(each for each in equilibria(system) if each.kind == "sink")


def destinations(system: AnySystem, starts: Floats, rtol: float = 1e-6) -> Labels:
    """The number of the sink that each state ends in, as `sinks_of` counts them, or UNDECIDED: (k, n) → (n,).

    A state is followed until it enters the neighborhood of a sink. On PhiNet's plane every state ends in an
    equilibrium: |ψ| falls where it is large, and Dulac's function 1/ψ² gives div (flow/ψ²) = −s(1+γ²), less sψ² where
    corrected, so that there is no cycle. SimSiam's line is cut exactly, at its equilibria.
    """
    if isinstance(system, SimSiam):
        return _on_the_line(system, starts[0])
    if isinstance(system, PhiNetPhi):
        return _around_the_parabola(system, starts, rtol)
    sinks = {number: np.array(sink.state) for number, sink in enumerate(sinks_of(system))}
    return _ends(system, starts, _neighborhoods(system, sinks), rtol)


def _neighborhoods(system: System, sinks: Mapping[int, Floats]) -> dict[int, Catch]:
    """What is near enough to each sink, which is given by its state."""
    return {
        label: neighborhood(system, sink, _scales(system, max(abs(float(sink[0])), _finest(system)))).holds
        for label, sink in sinks.items()
    }


def _ends(system: System, starts: Floats, around: Mapping[int, Catch], rtol: float) -> Labels:
    """The label of what catches each start."""
    labels = np.full(starts.shape[1], UNDECIDED)
    care = Care(rtol=rtol, atol=rtol * _scales(system, _finest(system))[:, None], steps=STEPS)
    for first in range(0, starts.shape[1], BLOCK):
        block = labels[first : first + BLOCK]
        follow(system, starts[:, first : first + BLOCK], _catcher(block, around), care)
    return labels


def _catcher(labels: Labels, around: Mapping[int, Catch]) -> Watch:
    """A watcher that lets a state go once it is beside a sink, and writes down which."""

    def caught(states: Floats, points: NDArray[np.intp]) -> NDArray[np.bool_]:
        over = np.zeros(len(points), dtype=bool)
        for label, holds in around.items():
            inside = holds(states)
            labels[points[inside]] = label
            over |= inside
        return over

    return caught


def _around_the_parabola(system: PhiNetPhi, starts: Floats, rtol: float) -> Labels:
    """By way of the coordinates of `parabola`, for the starts above and on it, and on both sides below it."""
    phi, psi, gamma = starts
    off = psi**2 - phi
    omega: Floats = np.sqrt(np.abs(off))
    sinks = dict(enumerate(sinks_of(system)))
    origin = next(label for label, sink in sinks.items() if sink.collapsed)
    labels = np.full(len(phi), origin)  # what has no φ gets none
    above, on = Above(**asdict(system)), off <= 0
    caught = _neighborhoods(above, {k: np.array([sink.psi, 0.0, sink["gamma"]]) for k, sink in sinks.items()})
    labels[on] = _ends(above, np.stack([psi, omega, gamma])[:, on], caught, rtol)
    for side in (1, -1):
        below, under = Below(**asdict(system), side=side), (off > 0) & (side * psi > 0) & (phi > 0)
        there = {k: sink for k, sink in sinks.items() if side * sink.psi > 0}
        caught = {
            k: neighborhood(below, _below(sink), np.array([1.0, abs(sink.psi), 1.0])).holds for k, sink in there.items()
        }
        states = np.stack([np.log(phi[under]) / 2, omega[under], gamma[under]])
        labels[under] = _ends(below, states, {origin: below.collapses, **caught}, rtol)
    return labels


def _below(sink: Equilibrium) -> Floats:
    """A sink in the coordinates of `Below`."""
    return np.array([np.log(abs(sink.psi)), 0.0, sink["gamma"]])


def _finest(system: System) -> float:
    """The ψ of the finest structure: the saddle at ψ ≈ ρ beside the origin; where ρ is large there is none."""
    return min(system.rho, 1.0)


def _scales(system: System, psi: float) -> Floats:
    """What counts as one of each variable where ψ is of this size; γ stands beside 1, and y is a logarithm."""
    return np.array([1.0 if name in ("gamma", "y") else psi for name in system.variables])


def _on_the_line(system: SimSiam, psi: Floats) -> Labels:
    """The next equilibrium in the direction of the flow, which is the same between two of them."""
    found = equilibria(system)
    rest = np.array([each.psi for each in found])
    number = {each: k for k, each in enumerate(sinks_of(system))}
    label = np.array([UNDECIDED, *(number.get(each, UNDECIDED) for each in found), UNDECIDED])
    ends = np.concatenate([[rest[0] - 1], rest, [rest[-1] + 1]])
    rises = system.flow((ends[1:] + ends[:-1])[None] / 2)[0] > 0
    gap = np.searchsorted(rest, psi)
    on = rest[np.minimum(gap, len(rest) - 1)] == psi
    return np.where(on | rises[gap], label[gap + 1], label[gap])


def _directions(variables: int) -> Floats:
    """Unit vectors all around, evenly: (k, n)."""
    if variables == 2:
        angle = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        return np.stack([np.cos(angle), np.sin(angle)])
    number = np.arange(DIRECTIONS) + 0.5  # a golden spiral on the sphere
    height, turn = 1 - 2 * number / DIRECTIONS, np.pi * (1 + 5**0.5) * number
    wide = np.sqrt(1 - height**2)
    sphere: Floats = np.stack([wide * np.cos(turn), wide * np.sin(turn), height])
    return sphere


FARTHEST = 1e6
"""Beyond this no start is followed: the flow's γ²ψ³ must stay a number."""
LARGEST = 4001
"""Points a side: more fill the memory."""
ROUGH, FINE = 1e-4, 1e-6
"""Relative tolerances inside a basin and beside its border."""


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
                raise UserError(f"the box is empty: its {name} goes from {low} to {high}. Give the smaller end first.")
            if max(abs(low), abs(high)) > FARTHEST:
                raise UserError(f"the box's {name} goes from {low} to {high}; stay within ±{FARTHEST:g}.")


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
    """(N, N), one row a γ: the number of the sink, or −1 where none was reached."""

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of starts that ends in each sink."""
        return tuple(float(np.mean(self.labels == number)) for number in range(len(self.sinks)))

    @property
    def kept(self) -> float:
        """The share of starts that ends in a sink that is not collapsed."""
        return float(sum(share for share, sink in zip(self.shares, self.sinks, strict=True) if not sink.collapsed))

    @property
    def undecided(self) -> int:
        """The number of starts that were not seen to end in a sink: on a border, on a saddle, or on a cycle."""
        return int(np.sum(self.labels == UNDECIDED))


def basins(system: AnySystem, box: Box, grid: int = 401, start: Mapping[str, float] | None = None) -> Basins:
    """Which sink each point of a grid × grid map ends in, its edges included.

    A further variable starts where the flow takes it anyway, φ at ψ² and slow at ψ, or at the number that `start` gives
    it. All points are followed at the tolerance ROUGH; then those that have a neighbor with another end, again and
    again until there is no new one, at FINE: what is wrong with a rough map is its borders.
    """
    if not 2 <= grid <= LARGEST:
        raise UserError(f"grid is {grid}, but a map has 2 to {LARGEST} points a side, e.g. 401.")
    psi, gamma = np.linspace(box.psi_min, box.psi_max, grid), np.linspace(box.gamma_min, box.gamma_max, grid)
    states = _starts(system, psi, gamma, start or {})
    labels = destinations(system, states, ROUGH)
    fine = np.full(labels.shape, isinstance(system, SimSiam))
    while len(again := np.flatnonzero(_border(labels.reshape(grid, grid)).ravel() & ~fine)):
        labels[again] = destinations(system, states[:, again], FINE)
        fine[again] = True
    return Basins(system=system, psi=psi, gamma=gamma, sinks=sinks_of(system), labels=labels.reshape(grid, grid))


def simsiam_beside(system: AnySystem, box: Box, grid: int = 401) -> Basins:
    """SimSiam on the same box, with the same σ² and ρ; its ends do not depend on γ."""
    return basins(SimSiam(sigma2=system.sigma2, rho=system.rho), box, grid)


def _starts(system: AnySystem, psi: Floats, gamma: Floats, start: Mapping[str, float]) -> Floats:
    """(k, N·N), row after row."""
    across, along = (each.ravel() for each in np.meshgrid(psi, gamma))
    values = {"psi": across, "gamma": along, "phi": across**2, "slow": across}
    for name, value in start.items():
        if name not in system.variables or name in ("psi", "gamma"):
            raise UserError(f"{name} {value} has no use: this flow moves {', '.join(system.variables)}. Leave it out.")
        if not abs(value) <= FARTHEST or (name == "phi" and value < 0):
            raise UserError(f"{name} starts at {value}; give a number up to {FARTHEST:g}, and for phi none below 0.")
        values[name] = np.full_like(across, value)
    return np.stack([values[name] for name in system.variables])


def _border(labels: Labels) -> NDArray[np.bool_]:
    """Which points have one of their eight neighbors in another basin, or are undecided."""
    padded = np.pad(labels, 1, mode="edge")
    rows, columns = labels.shape
    border: NDArray[np.bool_] = labels == UNDECIDED
    for i in range(3):
        for j in range(3):
            border |= padded[i : i + rows, j : j + columns] != labels
    return border
