"""The map of basins: which sink each starting point of a box ends in."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError, require_finite
from phinets.dynamics.attraction import UNDECIDED, Labels, destinations, sinks_of
from phinets.dynamics.equilibria import AnySystem, Equilibrium
from phinets.dynamics.systems import Floats, SimSiam

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
