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
from phinets.dynamics.polynomials import Polynomial, add, derivative, exact, multiply, polynomial, real_roots, value
from phinets.dynamics.systems import LEAST, PhiNet, PhiNetPhi, SimSiam, Version, XPhiNet

InV = list[Polynomial]
"""A polynomial in v whose coefficients are polynomials in u, lowest power first."""
BOUND = 2
ON_THE_CURVE = Fraction(1, 10**12)
"""Largest value of the curve's polynomial at a point of it; a u with two complex v gives no point."""
ONE, U = polynomial(1), polynomial(0, 1)
MINUS = polynomial(-1)
TURN = polynomial(1, -2)
"""dr/du; dr/dv is the same in v."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """All equilibria with ψ ≠ 0 of PhiNet, over all weight decays."""

    c: Fraction
    """1/s², in (0, 1]."""
    version: Version

    def equilibria(self, r: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The points (u, v) where ρ = r/s."""
        sharp = polynomial(0, 0, 0, 0, self.c)  # cu⁴
        simsiam = polynomial(-r, 1, -1)
        if self.version == "corrected":
            whole = add(polynomial(r), sharp)
            roots = real_roots(add(multiply(whole, whole, simsiam), multiply(polynomial(r), sharp)), BOUND)
            return [(u, self.c * u**4 / (r + self.c * u**4)) for u in roots]
        quintic = multiply(sharp, polynomial(1, -1))
        terms = add(multiply(polynomial(r * r), simsiam), multiply(polynomial(r), quintic))
        roots = real_roots(add(terms, multiply(MINUS, quintic, quintic)), BOUND)
        return [(u, self.c * (1 - u) * u**4 / r) for u in roots]

    def scaled_decay(self, u: Fraction, v: Fraction) -> Fraction:
        """r at a point of the curve."""
        return u * (1 - u) + v * (1 - v)

    def equation(self) -> InV:
        """The curve's polynomial; 1 is its coefficient of v³."""
        sharp = polynomial(0, 0, 0, 0, self.c)
        by_v = polynomial(0, -1, 1)
        if self.version == "corrected":
            return [sharp, add(by_v, multiply(MINUS, sharp)), MINUS, ONE]
        return [multiply(sharp, polynomial(1, -1)), by_v, MINUS, ONE]

    def saddle_nodes(self) -> list[tuple[Fraction, Fraction]]:
        """The points where r has an extremum along the curve: r_u F_v − r_v F_u = 0."""
        F = self.equation()
        F_u, F_v = [derivative(each) for each in F], [multiply(polynomial(k), each) for k, each in enumerate(F)][1:]
        return self.zeros(_plus(_times([TURN], F_v), _times([MINUS, polynomial(2)], F_u)))

    def hopf_points(self, k: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The points where X-PhiNet of rate κ = k/s has two eigenvalues ±iω, ω > 0: a Hopf bifurcation.

        Let A be the Jacobian of (ψ, γ) at a fixed slow, and J PhiNet's own. X-PhiNet's eigenvalues are the roots of
        λ³ + (κ − tr A)λ² + (det A − κ tr J)λ + κ det J; two are ±iω where (κ − tr A)(det A − κ tr J) = κ det J and
        ω² = det A − κ tr J > 0. κ det J is 0 where PhiNet's is: the saddle-nodes are the same.
        """
        sharp = polynomial(0, 0, 0, 0, self.c)
        corrected = self.version == "corrected"
        r: InV = [polynomial(0, 1, -1), ONE, MINUS]
        a11: InV = [polynomial(0, 1, -2), [], polynomial(-2)]  # sA₁₁ = u − 2(u² + v²)
        a22 = _times([MINUS], _plus(r, [sharp] if corrected else []))  # sA₂₂ = −r, less cu⁴ where γ̇ holds −sγψ⁴
        twist: InV = [sharp, multiply(polynomial(-2), sharp)]  # s²A₁₂A₂₃ = cu⁴(1 − 2v)
        gain: InV = [polynomial(2), polynomial(-4)] if corrected else [polynomial(2, -4)]  # A₂₁/A₂₃
        det_a = _plus(_times(a11, a22), _times([MINUS], _times(twist, gain)))
        det_j = _plus(det_a, _plus(_times([[], ONE], a22), _times([MINUS], twist)))
        trace_a = _plus(a11, a22)
        squared = _plus(det_a, _times([polynomial(-k)], _plus(trace_a, [[], ONE])))
        balance = _plus(
            _times(_plus([polynomial(k)], _times([MINUS], trace_a)), squared), _times([polynomial(-k)], det_j)
        )
        return [(u, v) for u, v in self.zeros(balance) if _value(squared, u, v) > 0]

    def zeros(self, G: InV) -> list[tuple[Fraction, Fraction]]:
        """The points of the curve, u ≠ 0, where G vanishes too.

        Multiplying by G is linear on polynomials in v modulo the curve's: G·vⁱ = Σⱼ Mᵢⱼ(u) vʲ with i, j < 3. Where
        G = 0, M maps (1, v, v²) to 0. So u is a root of det M, and v is read off what M maps to 0.
        """
        M = self._multiplication(G)
        points = []
        for u in real_roots(_determinant(M), BOUND):
            rows = [[value(entry, u) for entry in row] for row in M]
            crosses = [_cross(rows[i], rows[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
            one, v, _ = max(crosses, key=lambda cross: abs(cross[0]))
            points.append((u, v / one))
        return [point for point in points if abs(_value(self.equation(), *point)) < ON_THE_CURVE]

    def _multiplication(self, G: InV) -> list[InV]:
        """The matrix of multiplication by G modulo the curve's polynomial."""
        lower = [multiply(MINUS, each) for each in self.equation()[:3]]  # v³ in terms of 1, v, v²
        row = list(G)
        while len(row) > 3:  # v^k = v^(k−3) · v³
            lead, shift = row.pop(), len(row) - 3
            for k, each in enumerate(lower):
                row[k + shift] = add(row[k + shift], multiply(lead, each))
        rows = [row + [[] for _ in range(3 - len(row))]]
        for _ in range(2):
            a, b, lead = rows[-1]
            rows.append([add(low, multiply(lead, each)) for low, each in zip(([], a, b), lower, strict=True)])
        return rows


def _determinant(M: list[InV]) -> Polynomial:
    """det of a 3 × 3 matrix of polynomials."""
    (a, b, c), second, third = M
    minors = [
        add(multiply(second[i], third[j]), multiply(MINUS, second[j], third[i])) for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return add(add(multiply(a, minors[0]), multiply(b, minors[1])), multiply(c, minors[2]))


def _cross(x: list[Fraction], y: list[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
    return x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]


def _plus(G: InV, H: InV) -> InV:
    short, long = sorted((G, H), key=len)
    return [add(p, q) for p, q in zip(short, long, strict=False)] + long[len(short) :]


def _times(G: InV, H: InV) -> InV:
    product: InV = [[] for _ in range(len(G) + len(H) - 1)]
    for i, p in enumerate(G):
        for j, q in enumerate(H):
            product[i + j] = add(product[i + j], multiply(p, q))
    return product


def _value(G: InV, u: Fraction, v: Fraction) -> Fraction:
    return value([value(each, u) for each in G], v)


AnySystem = SimSiam | PhiNet | PhiNetPhi | XPhiNet
Kind = Literal["sink", "source", "saddle", "degenerate"]
STILL = 1e-7
"""An eigenvalue whose real part is below this share of ρ (of κ, if smaller) counts as zero. At a saddle-node whose ρ is
rounded to a float the two equilibria are 1e-8 apart with eigenvalues of 1e-8 of ρ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """A state where the flow is zero."""

    variables: tuple[str, ...]
    """The names of the numbers of a state."""
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
        points = [(u, Fraction(0)) for u in real_roots(polynomial(-r, exact(system.tau), -1), _bound(system.tau))]
    else:
        points = Curve(c=1 / s**2, version=system.version).equilibria(r)
    origin = tuple(0.0 for _ in system.variables)
    states = [origin, *(state_at(system, u / s, v / u) for u, v in points)]
    return tuple(equilibrium_at(system, state) for state in sorted(states, key=lambda state: state[_psi_index(system)]))


def state_at(system: AnySystem, psi: Fraction, gamma: Fraction) -> tuple[float, ...]:
    """The full state of an equilibrium from its ψ and γ: φ = ψ², slow = ψ."""
    values = {"psi": float(psi), "gamma": float(gamma), "phi": float(psi**2), "slow": float(psi)}
    return tuple(values[name] for name in system.variables)


def equilibrium_at(system: AnySystem, state: Sequence[float]) -> Equilibrium:
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


def _psi_index(system: AnySystem) -> int:
    return system.variables.index("psi")


def _bound(tau: float) -> int:
    """Roots of τu − u² − r lie between 0 and τ."""
    return int(tau) + 1
