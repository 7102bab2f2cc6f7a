"""From the equations of an equilibrium to one polynomial in one unknown, exactly.

In the units u = sψ, v = sγψ, r = sρ, c = 1/s² an equilibrium with ψ ≠ 0 is a point of a plane curve. In both versions
ψ̇ = 0 says

    r = u(1 − u) + v(1 − v),

and γ̇ = 0 says rv = c(1 − v)u⁴ (corrected) or rv = c(1 − u)u⁴ (published). Without r that is the curve

    v³ − v² − u(1 − u)v + c(1 − w)u⁴ = 0,  w = v or u,

on which r is a function; weight decay picks the points where it has a given value, and a saddle-node is where r turns.
ψ = 0 leaves γ̇ = −ργ, so the origin is the one equilibrium there. With 1 + γ ≤ ((1 + √2)/2)(1 + γ²), ψ̇ = 0 bounds
|u| by (1 + √2)/2 < 2.

Where r is given, γ̇ = 0 is linear in v, and ψ̇ = 0 times a square becomes a polynomial in u of degree 10:
(r + cu⁴)²(u − u² − r) + cru⁴ (corrected), r²(u − u² − r) + rc(1 − u)u⁴ − c²(1 − u)²u⁸ (published).
"""

from dataclasses import dataclass
from fractions import Fraction

from phinets.dynamics.algebra import Polynomial, add, derivative, multiply, polynomial, real_roots, value
from phinets.dynamics.systems import Version

InV = list[Polynomial]
"""A polynomial in v whose coefficients are polynomials in u, lowest power first."""
BOUND = 2
ON_THE_CURVE = Fraction(1, 10**12)
"""How far from 0 the curve's polynomial may be at a point of it. A u whose v are two complex ones gives no point."""
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
        bent = multiply(sharp, polynomial(1, -1))
        terms = add(multiply(polynomial(r * r), simsiam), multiply(polynomial(r), bent))
        roots = real_roots(add(terms, multiply(MINUS, bent, bent)), BOUND)
        return [(u, self.c * (1 - u) * u**4 / r) for u in roots]

    def decay(self, u: Fraction, v: Fraction) -> Fraction:
        """r at a point of the curve."""
        return u * (1 - u) + v * (1 - v)

    def equation(self) -> InV:
        """The curve's polynomial; 1 is its coefficient of v³."""
        sharp = polynomial(0, 0, 0, 0, self.c)
        by_v = polynomial(0, -1, 1)
        if self.version == "corrected":
            return [sharp, add(by_v, multiply(MINUS, sharp)), MINUS, ONE]
        return [multiply(sharp, polynomial(1, -1)), by_v, MINUS, ONE]

    def turns(self) -> list[tuple[Fraction, Fraction]]:
        """The points where r turns along the curve: r_u F_v − r_v F_u = 0."""
        F = self.equation()
        F_u, F_v = [derivative(each) for each in F], [multiply(polynomial(k), each) for k, each in enumerate(F)][1:]
        return self.zeros(_plus(_times([TURN], F_v), _times([MINUS, polynomial(2)], F_u)))

    def wobbles(self, k: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The points where X-PhiNet of rate κ = k/s has two eigenvalues ±iω, ω > 0: a Hopf bifurcation.

        Let A be the Jacobian of (ψ, γ) at a fixed slow, and J PhiNet's own. X-PhiNet's eigenvalues are the roots of
        λ³ + (κ − tr A)λ² + (det A − κ tr J)λ + κ det J; two are ±iω where (κ − tr A)(det A − κ tr J) = κ det J and
        ω² = det A − κ tr J > 0. κ det J is 0 where PhiNet's is: the saddle-nodes are the same.
        """
        sharp = polynomial(0, 0, 0, 0, self.c)
        corrected = self.version == "corrected"
        r: InV = [polynomial(0, 1, -1), ONE, MINUS]
        top: InV = [polynomial(0, 1, -2), [], polynomial(-2)]  # sA₁₁ = u − 2(u² + v²)
        bottom = _times([MINUS], _plus(r, [sharp] if corrected else []))  # sA₂₂ = −r, less cu⁴ where γ̇ holds −sγψ⁴
        twist: InV = [sharp, multiply(polynomial(-2), sharp)]  # s²A₁₂A₂₃ = cu⁴(1 − 2v)
        gain: InV = [polynomial(2), polynomial(-4)] if corrected else [polynomial(2, -4)]  # A₂₁/A₂₃
        det_a = _plus(_times(top, bottom), _times([MINUS], _times(twist, gain)))
        det_j = _plus(det_a, _plus(_times([[], ONE], bottom), _times([MINUS], twist)))
        trace_a = _plus(top, bottom)
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
