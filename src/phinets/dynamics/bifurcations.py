"""Where, as weight decay falls, equilibria are born or change their kind, and how many sinks there are in between."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.dynamics.algebra import exact
from phinets.dynamics.elimination import Curve
from phinets.dynamics.equilibria import AnySystem, Equilibrium, equilibria, judged, state_at
from phinets.dynamics.systems import LEAST, SimSiam, XPhiNet

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
