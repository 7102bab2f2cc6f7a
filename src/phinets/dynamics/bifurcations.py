"""Where, as weight decay falls, equilibria are born or change their kind, and how many sinks there are in between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.dynamics.equilibria import AnySystem, Curve, Equilibrium, Kind, equilibria, judged, state_at
from phinets.dynamics.polynomials import exact
from phinets.dynamics.systems import LEAST, Floats, SimSiam, XPhiNet

REGIMES: Mapping[tuple[int, int], str] = {(0, 0): "STRONG", (1, 0): "MEDIUM", (2, 0): "LIGHT", (2, 1): "WEAK"}
"""The paper's words for weight decay, by the number of sinks with ψ > 0 and with ψ < 0; others have no word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bifurcation:
    """A weight decay at which the equilibria change."""

    rho: float
    """ρ, to the last digit of a float."""
    kind: Literal["saddle-node", "hopf"]
    """saddle-node: two equilibria are born in one point. hopf: one changes between attracting and repelling spirals."""
    at: Equilibrium
    """Where."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"rho": self.rho, "psi": self.at.psi, "gamma": self.at.gamma, "kind": self.kind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bifurcations:
    """All bifurcations of a flow within a range of weight decays."""

    found: tuple[Bifurcation, ...]
    """By falling ρ."""
    rho_min: float
    rho_max: float
    sinks: tuple[int, ...]
    """How many sinks each interval between them has, by falling ρ: one number more than there are bifurcations."""
    regimes: tuple[str | None, ...]
    """The paper's word for each interval, or None where it has none."""

    @property
    def intervals(self) -> tuple[tuple[float, float], ...]:
        """The ends (high, low) of each interval, by falling ρ."""
        return tuple(pairwise((self.rho_max, *(each.rho for each in self.found), self.rho_min)))


def bifurcations(system: AnySystem, rho_min: float = 0.0, rho_max: float = 0.5) -> Bifurcations:
    """All bifurcations with rho_min < ρ < rho_max; the system's own ρ plays no part.

    A saddle-node is where ρ turns along the curve of equilibria: all roots of one polynomial (`Curve.turns`). SimSiam's
    curve ρ = ψ(τ − sψ) turns once, at τ²/(4s). Nothing else happens to PhiNet: at an equilibrium with ψ ≠ 0 the trace
    of the Jacobian is −s(1+γ²)ψ², less sψ⁴ where corrected. It is negative, so no pair of eigenvalues crosses the
    imaginary axis, and there is no source; and the origin's eigenvalues are −ρ. X-PhiNet has PhiNet's saddle-nodes, and
    may have Hopf bifurcations (`Curve.wobbles`).
    """
    if not 0 <= rho_min < rho_max < np.inf:
        raise UserError(f"the range of rho is {rho_min} to {rho_max}; give 0 ≤ rho-min < rho-max, e.g. 0 and 0.5.")
    if 0 < rho_min < LEAST or rho_max < 2 * LEAST:
        raise UserError(
            f"the range of rho is {rho_min} to {rho_max}, but below {LEAST:g} floats can't tell a sink from a saddle. "
            f"Give 0 or at least {LEAST:g} for rho-min, and more than twice that for rho-max."
        )
    found = sorted(
        (each for each in _everywhere(system) if rho_min < each.rho < rho_max), key=lambda each: each.rho, reverse=True
    )
    ends = (rho_max, *(each.rho for each in found), rho_min)
    inside = [equilibria(system.with_rho(between(high, low))) for high, low in pairwise(ends)]
    return Bifurcations(
        found=tuple(found),
        rho_min=rho_min,
        rho_max=rho_max,
        sinks=tuple(sum(each.kind == "sink" for each in those) for those in inside),
        regimes=tuple(regime(those) for those in inside),
    )


def regime(found: Sequence[Equilibrium]) -> str | None:
    """The paper's word for a weight decay with these equilibria, or None where it has none."""
    psis = [each.psi for each in found if each.kind == "sink"]
    return REGIMES.get((sum(psi > 0 for psi in psis), sum(psi < 0 for psi in psis)))


def sink_map(system: AnySystem, rhos: Sequence[float], sigma2s: Sequence[float]) -> NDArray[np.int64]:
    """How many sinks there are at each σ² (row) and ρ (column); the system's own ρ and σ² play no part.

    One search for bifurcations a row: between them the number does not change.
    """
    rows = []
    high = 2 * max(rhos)
    for sigma2 in sigma2s:
        row = bifurcations(system.with_sigma2(sigma2), 0.0, high)
        rows.append(np.array(row.sinks)[np.searchsorted([-each.rho for each in row.found], -np.asarray(rhos))])
    return np.stack(rows)


def between(high: float, low: float) -> float:
    """A weight decay inside an interval."""
    return (high * low) ** 0.5 if low > 0 else high / 2


def _everywhere(system: AnySystem) -> list[Bifurcation]:
    """All bifurcations with ρ > 0."""
    s = 1 + exact(system.sigma2)
    if isinstance(system, SimSiam):
        tau = exact(system.tau)
        return [_bifurcation(system, "saddle-node", tau**2 / (4 * s), (tau / (2 * s), Fraction(0)))]
    curve = Curve(c=1 / s**2, version=system.version)
    points: list[tuple[Literal["saddle-node", "hopf"], Fraction, Fraction]]
    points = [("saddle-node", u, v) for u, v in curve.turns()]
    if isinstance(system, XPhiNet):
        points += [("hopf", u, v) for u, v in curve.wobbles(s * exact(system.kappa))]
    positive = [(kind, u, v, rho) for kind, u, v in points if (rho := curve.decay(u, v) / s) > 0]
    return [_bifurcation(system, kind, rho, (u / s, v / u)) for kind, u, v, rho in positive]


def _bifurcation(
    system: AnySystem, kind: Literal["saddle-node", "hopf"], rho: Fraction, where: tuple[Fraction, Fraction]
) -> Bifurcation:
    there = system.with_rho(float(rho))
    return Bifurcation(rho=float(rho), kind=kind, at=judged(there, state_at(there, *where)))


INSIDE = 1e-9
"""How far inside an interval, in its logarithm, its first and last weight decay are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One equilibrium over an interval of weight decays in which its kind does not change."""

    variables: tuple[str, ...]
    rho: Floats
    """(n,), falling; the ends of the interval are its first and its last."""
    states: Floats
    """(k, n): where the equilibrium is."""
    kind: Kind

    def __getitem__(self, variable: str) -> Floats:
        values: Floats = self.states[self.variables.index(variable)]
        return values

    @property
    def stable(self) -> bool:
        """Whether it is a sink: drawn solid, else dashed."""
        return self.kind == "sink"


def branches(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5, points: int = 100) -> tuple[Branch, ...]:
    """All branches with rho_min ≤ ρ ≤ rho_max, cut wherever there is a bifurcation; the system's own ρ plays no part.

    Within an interval the equilibria keep their order by ψ: γ is a function of ψ and ρ, so no two can share a ψ, and
    none is born. Branches that meet in a saddle-node both end in that very point; one that passes by goes on where it
    stopped. The points lie densest at the ends, where a branch is as steep as a square root.
    """
    if rho_min <= 0:
        raise UserError(f"rho-min is {rho_min}, but branches are told on a logarithmic scale: give e.g. 1e-5.")
    if points < 2:
        raise UserError(f"points is {points}, but a branch has two ends: give 2 or more.")
    whole = bifurcations(system, rho_min, rho_max)
    ends: list[Bifurcation | None] = [None, *whole.found, None]
    drawn: list[Branch] = []
    for (high, low), above, below in zip(whole.intervals, ends, ends[1:], strict=False):
        share = (1 - np.cos(np.linspace(0, np.pi, points))) / 2
        rhos = high * (low / high) ** np.clip(share, INSIDE, 1 - INSIDE)
        columns = [equilibria(system.with_rho(rho)) for rho in rhos.tolist()]
        states = np.array([[each.state for each in column] for column in columns]).transpose(1, 2, 0)
        rhos[[0, -1]] = high, low
        _close(states, 0, above, system.variables)
        _close(states, -1, below, system.variables)
        kinds = [each.kind for each in columns[points // 2]]
        drawn += [
            Branch(variables=system.variables, rho=rhos, states=each, kind=kind)
            for each, kind in zip(states, kinds, strict=True)
        ]
    return tuple(drawn)


def _close(states: Floats, end: int, there: Bifurcation | None, variables: tuple[str, ...]) -> None:
    """Let the two branches that meet in a saddle-node end in it, if they are on this side of it.

    states: (branches, k, n). The two are neighbors by ψ, one on each side of it.
    """
    if there is None or there.kind != "saddle-node":
        return
    psis = states[:, variables.index("psi"), end]
    after = int(np.searchsorted(psis, there.at.psi))
    if 0 < after < len(psis) and _meet(psis[after - 1 : after + 1], there.at):
        states[after - 1 : after + 1, :, end] = there.at.state


def _meet(pair: Floats, there: Equilibrium) -> bool:
    """Whether two ψ are so near a saddle-node as its two branches are, at √INSIDE of its size, and no others."""
    return bool(np.all(np.abs(pair - there.psi) < 100 * INSIDE**0.5 * abs(there.psi)))
