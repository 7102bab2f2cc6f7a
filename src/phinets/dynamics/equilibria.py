"""All equilibria of the eigenvalue dynamics and their kinds, from one polynomial in one unknown, solved exactly.

In the units u = sψ, v = sγψ, r = sρ, c = 1/s² an equilibrium with ψ ≠ 0 is a point of a plane curve. In both versions
ψ̇ = 0 says

    r = u(1 − u) + v(1 − v),

and γ̇ = 0 says rv = c(1 − v)u⁴ (corrected) or rv = c(1 − u)u⁴ (published). Without r that is the curve

    v³ − v² − u(1 − u)v + c(1 − w)u⁴ = 0,  w = v or u,

on which r is a function. Weight decay selects the points with its value of r; a saddle-node is an extremum of r.
ψ = 0 leaves γ̇ = −ργ, so the origin is the one equilibrium there. With 1 + γ ≤ ((1 + √2)/2)(1 + γ²), ψ̇ = 0 bounds
|u| by (1 + √2)/2 < 2.

For a given r, γ̇ = 0 is linear in v, and ψ̇ = 0 times a square becomes a polynomial in u of degree 10:
(r + cu⁴)²(u − u² − r) + cru⁴ (corrected), r²(u − u² − r) + rc(1 − u)u⁴ − c²(1 − u)²u⁸ (published).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from phinets.config.errors import UserError
from phinets.dynamics.polynomials import Coefficient, Polynomial, as_polynomial, exact, real_roots
from phinets.dynamics.systems import LEAST, PhiNet, PhiNetPhi, SimSiam, Version, XPhiNet

BOUND = 2
ON_THE_CURVE = Fraction(1, 10**12)
"""Largest value of the curve's polynomial at a point of it; a u with two complex v gives no point."""
U = Polynomial(0, 1)
V = Polynomial(0, 1)
"""The same in v. A polynomial in u and v is one in v whose coefficients are numbers or polynomials in u."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All equilibria with ψ ≠ 0 of PhiNet, over all weight decays."""

    c: Fraction
    """1/s², in (0, 1]."""
    version: Version

    @property
    def quartic(self) -> Polynomial:
        """cu⁴."""
        return Polynomial(0, 0, 0, 0, self.c)

    def equilibria(self, r: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The points (u, v) where ρ = r/s."""
        simsiam = U - U * U - r
        if self.version == "corrected":
            whole = self.quartic + r
            roots = real_roots(whole * whole * simsiam + r * self.quartic, BOUND)
            return [(u, self.c * u**4 / (r + self.c * u**4)) for u in roots]
        quintic = self.quartic * (1 - U)
        roots = real_roots(r * r * simsiam + r * quintic - quintic * quintic, BOUND)
        return [(u, self.c * (1 - u) * u**4 / r) for u in roots]

    def equation(self) -> Polynomial:
        """The curve's polynomial; 1 is its coefficient of v³."""
        if self.version == "corrected":
            return Polynomial(self.quartic, U * U - U - self.quartic, -1, 1)
        return Polynomial(self.quartic * (1 - U), U * U - U, -1, 1)

    def saddle_nodes(self) -> list[tuple[Fraction, Fraction]]:
        """The points where r has an extremum along the curve: r_u F_v − r_v F_u = 0."""
        F = self.equation()
        F_u, F_v = Polynomial(*(as_polynomial(each).derivative() for each in F.coefficients)), F.derivative()
        return self.zeros(Polynomial(1 - 2 * U) * F_v - (1 - 2 * V) * F_u)

    def hopf_points(self, k: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The points where X-PhiNet of rate κ = k/s has two eigenvalues ±iω, ω > 0: a Hopf bifurcation.

        Let A be the Jacobian of (ψ, γ) at a fixed slow, and J PhiNet's own. X-PhiNet's eigenvalues are the roots of
        λ³ + (κ − tr A)λ² + (det A − κ tr J)λ + κ det J; two are ±iω where (κ − tr A)(det A − κ tr J) = κ det J and
        ω² = det A − κ tr J > 0. κ det J is 0 where PhiNet's is: the saddle-nodes are the same.
        """
        corrected = self.version == "corrected"
        r = Polynomial(U - U * U, 1, -1)
        a11 = Polynomial(U - 2 * U * U, 0, -2)  # sA₁₁ = u − 2(u² + v²)
        a22 = -r - (Polynomial(self.quartic) if corrected else 0)  # sA₂₂ = −r, less cu⁴ where γ̇ holds −sγψ⁴
        twist = Polynomial(self.quartic, -2 * self.quartic)  # s²A₁₂A₂₃ = cu⁴(1 − 2v)
        gain = Polynomial(2, -4) if corrected else Polynomial(2 - 4 * U)  # A₂₁/A₂₃
        trace_a, det_a = a11 + a22, a11 * a22 - twist * gain
        det_j = det_a + V * a22 - twist
        squared = det_a - k * (trace_a + V)
        points = self.zeros((k - trace_a) * squared - k * det_j)
        return [(u, v) for u, v in points if squared(v, u) > 0]

    def zeros(self, G: Polynomial) -> list[tuple[Fraction, Fraction]]:
        """The points of the curve, u ≠ 0, where G vanishes too.

        Multiplying by G is linear on polynomials in v modulo the curve's: G·vⁱ = Σⱼ Mᵢⱼ(u) vʲ with i, j < 3. Where
        G = 0, M maps (1, v, v²) to 0. So u is a root of det M, and v is read off what M maps to 0.
        """
        M, curve = self._multiplication(G), self.equation()
        determinant = sum(entry * minor for entry, minor in zip(M[0], _cross(M[1], M[2]), strict=True))
        points = []
        for u in real_roots(as_polynomial(determinant), BOUND):
            rows = [[as_polynomial(entry)(u) for entry in row] for row in M]
            crosses = [_cross(rows[i], rows[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
            one, v, _ = max(crosses, key=lambda cross: abs(cross[0]))
            points.append((u, v / one))
        return [(u, v) for u, v in points if abs(curve(v, u)) < ON_THE_CURVE]

    def _multiplication(self, G: Polynomial) -> list[list[Coefficient]]:
        """The matrix of multiplication by G modulo the curve's polynomial."""
        lower = [-each for each in self.equation().coefficients[:3]]  # v³ in terms of 1, v, v²
        row = list(G.coefficients)
        while len(row) > 3:  # v^k = v^(k−3) · v³
            lead, shift = row.pop(), len(row) - 3
            for k, each in enumerate(lower):
                row[k + shift] += lead * each
        rows = [row + [0] * (3 - len(row))]
        for _ in range(2):
            a, b, lead = rows[-1]
            rows.append([low + lead * each for low, each in zip((0, a, b), lower, strict=True)])
        return rows


def _cross(x: Sequence[Any], y: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The cross product of two vectors."""
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


AnySystem = SimSiam | PhiNet | PhiNetPhi | XPhiNet
Kind = Literal["sink", "source", "saddle", "degenerate"]
STILL = 1e-7
"""An eigenvalue whose real part is below this share of ρ (of κ, if smaller) counts as zero. At a saddle-node whose ρ is
rounded to a float the two equilibria are 1e-8 apart with eigenvalues of 1e-8 of ρ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """A state where the flow is zero."""

    variables: tuple[str, ...]
    state: tuple[float, ...]
    """The value of each variable."""
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
        """Whether the representation has collapsed: ψ = 0, and with it every variable."""
        return self.psi == 0

    def plain(self) -> dict[str, Any]:
        """For JSON; an eigenvalue is a number where it is real, {re, im} where not."""
        values = {"psi": self.psi, "gamma": self.gamma} | dict(zip(self.variables, self.state, strict=True))
        eigenvalues = [each.real if each.imag == 0 else {"re": each.real, "im": each.imag} for each in self.eigenvalues]
        return values | {"kind": self.kind, "collapsed": self.collapsed, "eigenvalues": eigenvalues}


def equilibria(system: AnySystem) -> tuple[Equilibrium, ...]:
    """All real equilibria, by ascending ψ, each to the last digit of a float.

    They are the origin and the real roots of one polynomial (`Curve.equilibria`; SimSiam's is τu − u² − r), isolated in
    integer arithmetic. σ², ρ and τ mean the decimals that they print as. An equilibrium of `phinet-phi` lies on the
    parabola, since d/dt (ψ² − φ) = −2ρ(ψ² − φ); one of `x-phinet` has slow = ψ, since d/dt slow = κ(ψ − slow). The
    other equations are PhiNet's. Kinds come from eigenvalues in floats, which separate the slowest rate, ρ, from zero
    beside the fastest, of size 1/s, down to sρ = 1e-12.

    Raises:
        UserError: sρ is below 1e-12.
    """
    if system.s * system.rho < LEAST:
        raise UserError(
            f"at rho {system.rho:.3g} and sigma2 {system.sigma2:g} floats can't tell a sink from a saddle: give a rho, "
            f"or a rho-min of a range, of at least {LEAST / system.s:.3g}."
        )
    s = 1 + exact(system.sigma2)
    r = s * exact(system.rho)
    if isinstance(system, SimSiam):
        tau = exact(system.tau)
        points = [(u, Fraction(0)) for u in real_roots(tau * U - U * U - r, int(tau) + 1)]  # 0 < u < τ
    else:
        points = Curve(c=1 / s**2, version=system.version).equilibria(r)
    states = [state_at(system, Fraction(0), Fraction(0)), *(state_at(system, u / s, v / u) for u, v in points)]
    return tuple(sorted((equilibrium_at(system, state) for state in states), key=lambda each: each.psi))


def state_at(system: AnySystem, psi: Fraction, gamma: Fraction) -> tuple[float, ...]:
    """The full state of an equilibrium from its ψ and γ: φ = ψ², slow = ψ."""
    values = {"psi": float(psi), "gamma": float(gamma), "phi": float(psi**2), "slow": float(psi)}
    return tuple(values[name] for name in system.variables)


def equilibrium_at(system: AnySystem, state: Sequence[float]) -> Equilibrium:
    """The equilibrium at this state, with its eigenvalues and kind."""
    eigenvalues = np.linalg.eigvals(system.jacobian(np.array(state)))
    ordered = sorted((complex(each) for each in eigenvalues), key=lambda each: (each.real, each.imag))
    slowest = min(system.rho, system.kappa) if isinstance(system, XPhiNet) else system.rho
    rates = [each.real for each in ordered]
    kind: Kind = "saddle"
    if min(map(abs, rates)) <= STILL * slowest:
        kind = "degenerate"
    elif max(rates) < 0:
        kind = "sink"
    elif min(rates) > 0:
        kind = "source"
    return Equilibrium(variables=system.variables, state=tuple(state), eigenvalues=tuple(ordered), kind=kind)
