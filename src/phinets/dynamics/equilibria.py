"""All equilibria of the eigenvalue dynamics, and what kind each is."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from phinets.config.errors import UserError
from phinets.dynamics.algebra import exact, polynomial, real_roots
from phinets.dynamics.elimination import Curve
from phinets.dynamics.systems import LEAST, PhiNet, PhiNetPhi, SimSiam, XPhiNet

AnySystem = SimSiam | PhiNet | PhiNetPhi | XPhiNet
Kind = Literal["sink", "source", "saddle", "degenerate"]
STILL = 1e-7
"""An eigenvalue whose real part is below this share of ρ (of κ, where that is smaller) counts as zero. At a saddle-node
whose ρ is rounded to a float the two that meet are 1e-8 apart and move at 1e-8 of ρ; no float tells them apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """A state that the flow leaves where it is."""

    variables: tuple[str, ...]
    """The names of the numbers of a state."""
    state: tuple[float, ...]
    """One number a variable."""
    eigenvalues: tuple[complex, ...]
    """Of the Jacobian, fastest decay first."""
    kind: Kind
    """sink: all real parts are negative; source: all positive; saddle: both; degenerate: one is zero."""

    def __getitem__(self, variable: str) -> float:
        return self.state[self.variables.index(variable)]

    @property
    def psi(self) -> float:
        """ψ, which every system has."""
        return self["psi"]

    @property
    def gamma(self) -> float | None:
        """γ; SimSiam has none."""
        return self["gamma"] if "gamma" in self.variables else None

    @property
    def collapsed(self) -> bool:
        """Whether the encoder has forgotten everything: ψ = 0, and with it all else."""
        return self.psi == 0

    def plain(self) -> dict[str, Any]:
        """For JSON; an eigenvalue is a number where it is real, {re, im} where not."""
        values = {"psi": self.psi, "gamma": self.gamma} | dict(zip(self.variables, self.state, strict=True))
        eigenvalues = [each.real if each.imag == 0 else {"re": each.real, "im": each.imag} for each in self.eigenvalues]
        return values | {"kind": self.kind, "collapsed": self.collapsed, "eigenvalues": eigenvalues}


def equilibria(system: AnySystem) -> tuple[Equilibrium, ...]:
    """All real equilibria, by ascending ψ, each to the last digit of a float.

    They are the origin and the real roots of one polynomial (`elimination`; SimSiam's is τu − u² − r), counted and
    narrowed down in whole numbers. σ², ρ and τ mean the decimals that they are written as. A state of `phinet-phi`
    rests only on the parabola, since d/dt (ψ² − φ) = −2ρ(ψ² − φ); one of `x-phinet` only with slow = ψ, since
    d/dt slow = κ(ψ − slow). On both the equations left are PhiNet's. Kinds come from eigenvalues in floats, which tell
    the slowest rate, ρ, from zero beside the fastest, of size 1/s, down to sρ = 1e-12: below it nothing is told.
    """
    if system.s * system.rho < LEAST:
        raise UserError(
            f"at rho {system.rho:.3g} and sigma2 {system.sigma2:g} floats can't tell a sink from a saddle: give a rho, "
            f"or a rho-min of a range, of at least {LEAST / system.s:.3g}."
        )
    s = 1 + exact(system.sigma2)
    r = s * exact(system.rho)
    if isinstance(system, SimSiam):
        points = [(u, Fraction(0)) for u in real_roots(polynomial(-r, exact(system.tau), -1), _bound(system.tau))]
    else:
        points = Curve(c=1 / s**2, version=system.version).equilibria(r)
    origin = tuple(0.0 for _ in system.variables)
    states = [origin, *(state_at(system, u / s, v / u) for u, v in points)]
    return tuple(judged(system, state) for state in sorted(states, key=lambda state: state[_place(system)]))


def state_at(system: AnySystem, psi: Fraction, gamma: Fraction) -> tuple[float, ...]:
    """A state that rests, from its ψ and γ: φ = ψ², slow = ψ."""
    values = {"psi": float(psi), "gamma": float(gamma), "phi": float(psi**2), "slow": float(psi)}
    return tuple(values[name] for name in system.variables)


def judged(system: AnySystem, state: Sequence[float]) -> Equilibrium:
    """The equilibrium at this state, with its eigenvalues and kind."""
    eigenvalues = np.linalg.eigvals(system.jacobian(np.array(state)))
    ordered = sorted((complex(each) for each in eigenvalues), key=lambda each: (each.real, each.imag))
    slowest = min(system.rho, system.kappa) if isinstance(system, XPhiNet) else system.rho
    kind = _kind(ordered, STILL * slowest)
    return Equilibrium(variables=system.variables, state=tuple(state), eigenvalues=tuple(ordered), kind=kind)


def _kind(eigenvalues: Sequence[complex], still: float) -> Kind:
    rates = [each.real for each in eigenvalues]
    if min(map(abs, rates)) <= still:
        return "degenerate"
    if max(rates) < 0:
        return "sink"
    return "source" if min(rates) > 0 else "saddle"


def _place(system: AnySystem) -> int:
    return system.variables.index("psi")


def _bound(tau: float) -> int:
    """Roots of τu − u² − r lie between 0 and τ."""
    return int(tau) + 1
