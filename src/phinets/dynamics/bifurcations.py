"""Bifurcations: the weight decays at which equilibria appear or change their kind, and the branches between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.dynamics.equilibria import AnySystem, Curve, Equilibrium, Kind, equilibria, equilibrium_at, state_at
from phinets.dynamics.polynomials import exact
from phinets.dynamics.systems import LEAST, Floats, SimSiam, XPhiNet

REGIMES: Mapping[tuple[int, int], str] = {(0, 0): "STRONG", (1, 0): "MEDIUM", (2, 0): "LIGHT", (2, 1): "WEAK"}
"""The paper's names for weight decay, by the number of sinks with ψ > 0 and with ψ < 0; others have no name."""
MARGIN = 1e-9
"""Distance of a branch's first and last computed ρ from the ends of its interval, as a share of the log interval."""
BifurcationKind = Literal["saddle-node", "hopf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bifurcation:
    """A weight decay at which the equilibria change."""

    rho: float
    """ρ, to the last digit of a float."""
    kind: BifurcationKind
    """saddle-node: two equilibria appear in one point. hopf: a spiral changes between attracting and repelling."""
    at: Equilibrium
    """The equilibrium there."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"rho": self.rho, "psi": self.at.psi, "gamma": self.at.gamma, "kind": self.kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bifurcations:
    """All bifurcations of a flow within a range of weight decays."""

    points: tuple[Bifurcation, ...]
    """By falling ρ."""
    rho_min: float
    rho_max: float
    sinks: tuple[int, ...]
    """Number of sinks in each interval between bifurcations, by falling ρ: one more entry than `points`."""
    regimes: tuple[str | None, ...]
    """The paper's name of each interval, or None."""

    @property
    def intervals(self) -> tuple[tuple[float, float], ...]:
        """The ends (high, low) of each interval, by falling ρ."""
        return tuple(pairwise((self.rho_max, *(point.rho for point in self.points), self.rho_min)))


def bifurcations(system: AnySystem, rho_min: float = 0.0, rho_max: float = 0.5) -> Bifurcations:
    """All bifurcations with rho_min < ρ < rho_max; the system's own ρ is ignored.

    A saddle-node is an extremum of ρ along the curve of equilibria: the roots of one polynomial (`Curve.saddle_nodes`).
    SimSiam's curve ρ = ψ(τ − sψ) has one extremum, at τ²/(4s). PhiNet has no other bifurcation: at an equilibrium with
    ψ ≠ 0 the trace of the Jacobian is −s(1+γ²)ψ² (corrected: less sψ⁴), which is negative, so no pair of eigenvalues
    crosses the imaginary axis and there is no source; the origin's eigenvalues are −ρ. X-PhiNet has PhiNet's
    saddle-nodes and may have Hopf bifurcations (`Curve.hopf_points`).
    """
    if not 0 <= rho_min < rho_max < np.inf:
        raise UserError(f"the range of rho is {rho_min} to {rho_max}; give 0 ≤ rho-min < rho-max, e.g. 0 and 0.5.")
    if 0 < rho_min < LEAST or rho_max < 2 * LEAST:
        raise UserError(
            f"the range of rho is {rho_min} to {rho_max}, but below {LEAST:g} floats can't tell a sink from a saddle. "
            f"Give 0 or at least {LEAST:g} for rho-min, and more than twice that for rho-max."
        )
    inner = (point for point in _all_bifurcations(system) if rho_min < point.rho < rho_max)
    points = sorted(inner, key=lambda point: point.rho, reverse=True)
    ends = (rho_max, *(point.rho for point in points), rho_min)
    inside = [equilibria(system.with_rho(interval_center(high, low))) for high, low in pairwise(ends)]
    return Bifurcations(
        points=tuple(points),
        rho_min=rho_min,
        rho_max=rho_max,
        sinks=tuple(sum(each.kind == "sink" for each in column) for column in inside),
        regimes=tuple(regime(column) for column in inside),
    )


def regime(points: Sequence[Equilibrium]) -> str | None:
    """The paper's name for a weight decay with these equilibria, or None."""
    psis = [point.psi for point in points if point.kind == "sink"]
    return REGIMES.get((sum(psi > 0 for psi in psis), sum(psi < 0 for psi in psis)))


def sink_map(system: AnySystem, rhos: Sequence[float], sigma2s: Sequence[float]) -> NDArray[np.int64]:
    """Number of sinks at each σ² (row) and ρ (column); the system's own ρ and σ² are ignored.

    The number is constant between bifurcations, so each row needs one search for them.
    """
    rows = [bifurcations(replace(system, sigma2=sigma2), 0.0, 2 * max(rhos)) for sigma2 in sigma2s]
    intervals = [np.searchsorted([-point.rho for point in row.points], -np.asarray(rhos)) for row in rows]
    return np.stack([np.array(row.sinks)[interval] for row, interval in zip(rows, intervals, strict=True)])


def interval_center(high: float, low: float) -> float:
    """A weight decay inside an interval."""
    return (high * low) ** 0.5 if low > 0 else high / 2


def _all_bifurcations(system: AnySystem) -> list[Bifurcation]:
    """All bifurcations with ρ > 0."""
    s = 1 + exact(system.sigma2)
    if isinstance(system, SimSiam):
        tau = exact(system.tau)
        return [_bifurcation(system, "saddle-node", tau**2 / (4 * s), (tau / (2 * s), Fraction(0)))]
    curve = Curve(c=1 / s**2, version=system.version)
    points: list[tuple[BifurcationKind, Fraction, Fraction]] = [("saddle-node", u, v) for u, v in curve.saddle_nodes()]
    if isinstance(system, XPhiNet):
        points += [("hopf", u, v) for u, v in curve.hopf_points(s * exact(system.kappa))]
    positive = [(kind, u, v, rho) for kind, u, v in points if (rho := (u * (1 - u) + v * (1 - v)) / s) > 0]
    return [_bifurcation(system, kind, rho, (u / s, v / u)) for kind, u, v, rho in positive]


def _bifurcation(
    system: AnySystem, kind: BifurcationKind, rho: Fraction, state: tuple[Fraction, Fraction]
) -> Bifurcation:
    critical = system.with_rho(float(rho))
    return Bifurcation(rho=float(rho), kind=kind, at=equilibrium_at(critical, state_at(critical, *state)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One equilibrium over an interval of weight decays in which its kind is constant."""

    variables: tuple[str, ...]
    rho: Floats
    """(n,), falling, from one end of the interval to the other."""
    states: Floats
    """(k, n): the equilibrium at each ρ."""
    kind: Kind

    def __getitem__(self, variable: str) -> Floats:
        values: Floats = self.states[self.variables.index(variable)]
        return values

    @property
    def stable(self) -> bool:
        """Whether it is a sink."""
        return self.kind == "sink"


def branches(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5, points: int = 100) -> tuple[Branch, ...]:
    """All branches with rho_min ≤ ρ ≤ rho_max, split at every bifurcation; the system's own ρ is ignored.

    Within an interval the equilibria keep their order by ψ: γ is a function of ψ and ρ, so no two share a ψ. The two
    branches of a saddle-node both end in its point. The values of ρ are densest at the ends of an interval, where a
    branch is as steep as a square root.
    """
    if rho_min <= 0:
        raise UserError(f"rho-min is {rho_min}, but branches have a logarithmic scale: give more than 0, e.g. 1e-5.")
    if points < 2:
        raise UserError(f"points is {points}, but a branch has two ends: give 2 or more.")
    diagram = bifurcations(system, rho_min, rho_max)
    ends: list[Bifurcation | None] = [None, *diagram.points, None]
    share = np.clip((1 - np.cos(np.linspace(0, np.pi, points))) / 2, MARGIN, 1 - MARGIN)
    lines: list[Branch] = []
    for (high, low), above, below in zip(diagram.intervals, ends, ends[1:], strict=False):
        rhos = high * (low / high) ** share
        columns = [equilibria(system.with_rho(rho)) for rho in rhos.tolist()]
        states = np.array([[each.state for each in column] for column in columns]).transpose(1, 2, 0)
        rhos[[0, -1]] = high, low
        _join(states, 0, above, system.variables)
        _join(states, -1, below, system.variables)
        lines += [
            Branch(variables=system.variables, rho=rhos, states=each, kind=point.kind)
            for each, point in zip(states, columns[points // 2], strict=True)
        ]
    return tuple(lines)


def _join(states: Floats, end: int, point: Bifurcation | None, variables: tuple[str, ...]) -> None:
    """Let the two branches of a saddle-node end in it, where they are on this side of it.

    states: (branches, k, n). The two are neighbors by ψ, one on each side, within √MARGIN of the saddle-node's size.
    """
    if point is None or point.kind != "saddle-node":
        return
    psi = point.at.psi
    psis = states[:, variables.index("psi"), end]
    after = int(np.searchsorted(psis, psi))
    pair = slice(after - 1, after + 1)
    if 0 < after < len(psis) and np.all(np.abs(psis[pair] - psi) < 100 * MARGIN**0.5 * abs(psi)):
        states[pair, :, end] = point.at.state
