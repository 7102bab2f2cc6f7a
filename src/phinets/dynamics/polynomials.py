"""Polynomials with rational coefficients, and all their distinct real roots by exact arithmetic (Sturm's theorem)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise, zip_longest
from math import gcd, lcm
from typing import Union

Coefficient = Union[int, Fraction, "Polynomial"]
BITS = 96
"""Relative precision of a root, 2^−96: far below that of a float."""


def exact(number: float) -> Fraction:
    """The decimal that a float prints as: 0.1 is exactly 1/10, so 0.1 = 1/(4 · 2.5) holds."""
    return Fraction(repr(float(number)))


class Polynomial:
    """Coefficients from the lowest power on, without zeros at the end.

    They are rational numbers, or polynomials in another variable: Polynomial(U, 1) is u + v for U = Polynomial(0, 1).
    """

    def __init__(self, *coefficients: Coefficient) -> None:
        size = next((k for k in range(len(coefficients), 0, -1) if coefficients[k - 1]), 0)
        self.coefficients = coefficients[:size]

    def __bool__(self) -> bool:
        return bool(self.coefficients)

    def __add__(self, other: Coefficient) -> "Polynomial":
        pairs = zip_longest(self.coefficients, as_polynomial(other).coefficients, fillvalue=0)
        return Polynomial(*(a + b for a, b in pairs))

    def __mul__(self, other: Coefficient) -> "Polynomial":
        factors = as_polynomial(other).coefficients
        product: list[Coefficient] = [0] * (len(self.coefficients) + len(factors))
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(factors):
                product[i + j] += a * b
        return Polynomial(*product)

    def __neg__(self) -> "Polynomial":
        return self * -1

    def __sub__(self, other: Coefficient) -> "Polynomial":
        return self + -other

    def __rsub__(self, other: Coefficient) -> "Polynomial":
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def derivative(self) -> "Polynomial":
        """By the polynomial's own variable."""
        return Polynomial(*(k * a for k, a in enumerate(self.coefficients) if k))

    def __call__(self, x: Fraction, *inner: Fraction) -> Fraction:
        """The value at x; `inner`: the value of the coefficients' variable."""
        total = Fraction(0)
        for a in reversed(self.coefficients):
            total = total * x + (a(*inner) if isinstance(a, Polynomial) else a)
        return total


def as_polynomial(value: Coefficient) -> Polynomial:
    """A number as a constant polynomial."""
    return value if isinstance(value, Polynomial) else Polynomial(value)


def real_roots(p: Polynomial, bound: int) -> list[Fraction]:
    """All distinct real roots in [−bound, bound] except 0, ascending.

    Sturm's theorem isolates each root in an interval of its own; bisection then narrows the interval.
    """
    if not p:
        raise ValueError("the zero polynomial: every number is a root")
    chain = _sturm(_integers(p.coefficients))
    at = {x: _variations(chain, x) for x in (Fraction(-bound), Fraction(0), Fraction(bound))}
    edge = [Fraction(-bound)] if _sign(chain[0], -bound, 1) == 0 else []
    intervals = [(Fraction(0), Fraction(bound)), (Fraction(-bound), Fraction(0))]
    roots: list[Fraction] = []
    while intervals:
        low, high = intervals.pop()
        inside = at[low] - at[high]
        if inside == 1:
            roots.append(_bisect(chain[0], low, high))
        elif inside > 1:
            middle = (low + high) / 2
            at[middle] = _variations(chain, middle)
            intervals += [(middle, high), (low, middle)]
    return edge + [x for x in roots if x]


def _bisect(p: list[int], low: Fraction, high: Fraction) -> Fraction:
    """The only root in (low, high], where p changes its sign, by bisection."""
    under = max(low.denominator, high.denominator)  # powers of two, as every end is
    a, b = int(low * under), int(high * under)
    right = _sign(p, b, under)
    if right == 0:
        return high
    while (b - a) << BITS > max(abs(a), abs(b)):
        a, b, under = 2 * a, 2 * b, 2 * under
        middle = (a + b) // 2
        sign = _sign(p, middle, under)
        if sign == 0:
            return Fraction(middle, under)
        a, b = (a, middle) if sign == right else (middle, b)
    return Fraction(a + b, 2 * under)


def _sturm(p: list[int]) -> list[list[int]]:
    """Sturm's chain of the square-free part of p: p, p′, then the negated remainder of the previous two."""
    chain = [p, _primitive([k * a for k, a in enumerate(p)][1:])]
    while chain[-1]:
        chain.append(_primitive([-a for a in _divide(chain[-2], chain[-1])[1]]))
    common = chain[-2]
    return chain[:-1] if len(common) == 1 else _sturm(_primitive(_divide(p, common)[0]))


def _variations(chain: Sequence[list[int]], x: Fraction) -> int:
    """Number of sign changes in the chain's values at x."""
    signs = [sign for p in chain if (sign := _sign(p, x.numerator, x.denominator))]
    return sum(a != b for a, b in pairwise(signs))


def _sign(p: list[int], over: int, under: int) -> int:
    """The sign of p(over / under), in integers."""
    total, power = 0, 1
    for a in reversed(p):
        total = total * over + a * power
        power *= under
    return (total > 0) - (total < 0)


def _divide(p: list[int], q: list[int]) -> tuple[list[int], list[int]]:
    """Quotient and remainder of a positive multiple of p by q."""
    quotient: list[int] = []
    size, sign = abs(q[-1]), 1 if q[-1] > 0 else -1
    while len(p) >= len(q):
        lead, shift = sign * p[-1], len(p) - len(q)
        quotient = [lead, *(size * a for a in quotient)]
        p = [size * a - (lead * q[k - shift] if k >= shift else 0) for k, a in enumerate(p[:-1])]
    while p and p[-1] == 0:
        p = p[:-1]
    return quotient, p


def _integers(coefficients: Iterable[Coefficient]) -> list[int]:
    """A positive multiple of a polynomial with integer coefficients."""
    p = [Fraction(a) for a in coefficients if not isinstance(a, Polynomial)]
    under = lcm(*(a.denominator for a in p))
    return _primitive([int(a * under) for a in p])


def _primitive(p: list[int]) -> list[int]:
    common = gcd(*p) if p else 1
    return [a // common for a in p]
