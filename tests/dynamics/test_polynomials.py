"""Real roots: all of them, each once."""

from fractions import Fraction
from functools import reduce
from operator import mul

import numpy as np
import pytest

from phinets.dynamics.polynomials import Polynomial, exact, real_roots

RANDOM = np.random.default_rng(1)


def _with_roots(roots: list[Fraction]) -> Polynomial:
    return reduce(mul, (Polynomial(-root, 1) for root in roots), Polynomial(1))


def test_roots_that_were_put_in_come_out_however_often_and_however_near() -> None:
    near = Fraction(1, 3) + Fraction(1, 10**25)
    roots = [Fraction(-2), Fraction(-1, 7), Fraction(1, 3), near, Fraction(1, 10**12)]
    many = _with_roots(roots) * _with_roots(roots[1:3]) * _with_roots(roots[2:3]) * Polynomial(1, 0, 1)
    found = real_roots(many, 2)
    assert len(found) == len(roots)
    for root, put_in in zip(found, sorted(roots), strict=True):
        assert abs(root - put_in) <= abs(put_in) / 2**90


def test_roots_at_the_ends_count_and_0_and_what_lies_beyond_do_not() -> None:
    assert real_roots(_with_roots([Fraction(x) for x in (-3, -2, -1, 0, 0, 1, 2, 3)]), 2) == [-2, -1, 1, 2]


def test_a_polynomial_without_real_roots_has_none() -> None:
    assert real_roots(Polynomial(1, 0, 1) * Polynomial(2, 1, 1), 2) == []
    assert real_roots(Polynomial(7), 2) == []


def test_the_polynomial_0_is_refused() -> None:
    with pytest.raises(ValueError, match="every number"):
        real_roots(Polynomial(), 2)


def test_as_many_roots_as_numpy_finds_where_they_lie_apart() -> None:
    for _ in range(200):
        coefficients = RANDOM.normal(size=8)
        near = np.roots(coefficients[::-1])
        real = np.sort(near[np.abs(near.imag) < 1e-9].real)
        real = real[np.abs(real) < 2]
        found = [float(root) for root in real_roots(Polynomial(*map(exact, coefficients)), 2)]
        np.testing.assert_allclose(found, real, rtol=1e-8)


def test_a_float_means_the_decimal_it_is_written_as() -> None:
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-4) == Fraction(1, 10_000)


def test_a_product_has_the_product_of_the_values_and_its_slope() -> None:
    p, q, x = Polynomial(1, -2, 3), Polynomial(5, 0, 0, 7), Fraction(3, 5)
    assert (p * q)(x) == p(x) * q(x)
    assert (2 - p)(x) == 2 - p(x)
    slope = p.derivative()(x) * q(x) + p(x) * q.derivative()(x)
    assert (p * q).derivative()(x) == slope


def test_a_polynomial_in_two_variables_has_the_value_of_its_terms() -> None:
    u, v, inner = Fraction(2, 7), Fraction(-3, 5), Polynomial(0, 1)
    p, q = Polynomial(inner, 1), Polynomial(3, inner * inner - 1)  # u + v and 3 + (u² − 1)v
    assert (p * q - 4)(v, u) == (u + v) * (3 + (u * u - 1) * v) - 4
    assert not p - p
