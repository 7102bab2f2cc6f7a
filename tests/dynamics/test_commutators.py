"""The commutators' equations: the right ones are the exact derivative, the printed ones are sorted by their terms."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phinets.dynamics.commutators import (
    NAMES,
    PRINTED_EQUATIONS,
    RIGHT_EQUATIONS,
    SymmetricWeights,
    absent_terms,
    block_errors,
    classify_terms,
    exact_rates,
    plus,
    printed_blocks,
    right_blocks,
    smallest_eigenvalue,
    stack_columns,
    sum_terms,
    symmetric_weights,
)
from phinets.dynamics.matrix import MatrixFlow
from phinets.dynamics.matrix_trajectories import Start, commutator, integrate, random_start
from phinets.dynamics.systems import Floats, Version

VERSIONS: tuple[Version, ...] = ("published", "corrected")
SYMMETRIC = Start(dim=4, input_dim=6, symmetric=True)


def flow(version: Version) -> MatrixFlow:
    return MatrixFlow(sigma2=0.7, rho=0.05, version=version)


def somewhere(version: Version, seed: int) -> tuple[dict[str, Floats], SymmetricWeights]:
    weights = random_start(flow(version), SYMMETRIC, seed)
    return weights, symmetric_weights(flow(version), weights)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(4))
def test_the_right_equations_are_the_exact_derivative(version: Version, seed: int) -> None:
    weights, at = somewhere(version, seed)
    exact = exact_rates(flow(version), weights)
    for name, terms in RIGHT_EQUATIONS[version].items():
        np.testing.assert_allclose(sum_terms(terms, at), exact[name], rtol=0, atol=1e-10)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_exact_derivative_is_what_integration_shows(version: Version) -> None:
    weights, _ = somewhere(version, 0)
    step = 1e-5
    path = integrate(flow(version), weights, np.array([0, step, 2 * step]), rtol=1e-12)

    def c(k: int) -> dict[str, Floats]:
        w = path.at(k)
        gram = w["W_f"] @ w["W_f"].T
        return {
            "C1": commutator(gram, w["W_g"]),
            "C2": commutator(gram, w["W_h"]),
            "C3": commutator(w["W_g"], w["W_h"]),
        }

    middle = exact_rates(flow(version), path.at(1))
    for name in NAMES:
        np.testing.assert_allclose((c(2)[name] - c(0)[name]) / (2 * step), middle[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_printed_first_equation_is_right_for_the_printed_flow_alone_and_the_others_for_none(seed: int) -> None:
    for version in VERSIONS:
        weights, at = somewhere(version, seed)
        exact = exact_rates(flow(version), weights)
        off = {name: np.abs(sum_terms(terms, at) - exact[name]).max() for name, terms in PRINTED_EQUATIONS.items()}
        assert (off["C1"] < 1e-10) == (version == "published")
        assert min(off["C2"], off["C3"]) > 1e-2


def test_a_printed_equation_becomes_right_when_what_is_wrong_in_it_is_exchanged() -> None:
    weights, at = somewhere("published", 1)
    exact = exact_rates(flow("published"), weights)
    for name in NAMES:
        printed, right = PRINTED_EQUATIONS[name], RIGHT_EQUATIONS["published"][name]
        right_words = [term for term, word in classify_terms(printed, right, at).items() if word == "right"]
        corrections = absent_terms(printed, right, at)
        assert len(right_words) + len(corrections) == len(right)
        np.testing.assert_allclose(sum_terms([*right_words, *corrections], at), exact[name], rtol=0, atol=1e-10)


def test_a_formula_is_the_product_and_the_operator_it_is_written_as() -> None:
    _, at = somewhere("corrected", 2)
    C = np.random.default_rng(0).normal(size=at.Phi.shape)
    expected = -at.s * (at.H @ (at.unit + at.G @ at.G) @ C - 3 * at.rho * C @ at.Phi) @ at.H
    value = at.term("−s(H(I+G²)C₂ − 3ρC₂Φ)H", C)
    np.testing.assert_allclose(value, expected, atol=1e-12)
    stacked = at.operator("−s(H(I+G²)C₂ − 3ρC₂Φ)H") @ C.ravel(order="F")
    np.testing.assert_allclose(stacked, expected.ravel(order="F"), atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_blocks_stack_the_right_equations(version: Version) -> None:
    weights, at = somewhere(version, 3)
    blocks, columns = right_blocks(version, at), stack_columns(at)
    exact = exact_rates(flow(version), weights)
    for i, name in enumerate(NAMES, 1):
        rate = -3 * at.rho * columns[i - 1] - sum(blocks[f"K{i}{j}"] @ columns[j - 1] for j in (1, 2, 3))
        np.testing.assert_allclose(rate, exact[name].ravel(order="F"), rtol=0, atol=1e-10)


def test_printed_blocks_that_follow_from_right_terms_are_recognized() -> None:
    _, at = somewhere("published", 0)
    errors = block_errors("published", at)
    assert set(errors) == set(printed_blocks(at))
    assert errors["K32"] < 1e-10  # −(I − sH)C₂H is right in the text and stacked right
    assert errors["K12"] > 1e-2  # its text is right, but ⊗ stands where ⊕ was meant


def test_the_paper_s_sum_sign_is_the_stacked_anticommutator() -> None:
    random = np.random.default_rng(0)
    a, c = random.normal(size=(2, 3, 3))
    a = a + a.T
    np.testing.assert_allclose(plus(a, np.eye(3)) @ c.ravel(order="F"), (a @ c + c @ a).ravel(order="F"), atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_solutions_shrink_at_least_at_the_smallest_eigenvalue_that_occurs_on_the_way(version: Version) -> None:
    """Tian et al. 2021, Lemma 2: ẇ = −H(t)w, λ_min(H(t)) ≥ λ₀ give ‖w(t)‖ ≤ exp(−λ₀t)‖w(0)‖; here H = 3ρI + K(t)."""
    rho, start = 1.0, Start(dim=2, scale=0.7, symmetric=True)
    one, other = (symmetric_weights(flow(version), random_start(flow(version), start, seed)) for seed in (0, 1))

    def at(t: float) -> SymmetricWeights:
        share = (1 + np.sin(2 * t)) / 2
        between = {n: share * getattr(one, n) + (1 - share) * getattr(other, n) for n in ("Phi", "G", "H")}
        return SymmetricWeights(**between, sigma2=0.7, rho=rho)

    def matrix(t: float) -> Floats:
        blocks = right_blocks(version, at(t))
        return np.block([[blocks[f"K{i}{j}"] for j in (1, 2, 3)] for i in (1, 2, 3)]) + 3 * rho * np.eye(12)

    slowest = min(np.linspace(0, np.pi, 200), key=lambda t: smallest_eigenvalue(version, at(t)))
    lowest, times = smallest_eigenvalue(version, at(slowest)), np.linspace(0, 2, 21)
    assert lowest > 0
    directions = np.linalg.eigh(matrix(slowest) + matrix(slowest).T)[1]
    assert directions[:, 0] @ matrix(slowest) @ directions[:, 0] == pytest.approx(lowest), "no larger bound is true"
    starts = np.hstack([directions, np.random.default_rng(5).normal(size=(12, 4))])

    def rate(t: float, columns: Floats) -> Floats:
        return -(matrix(slowest + t) @ columns.reshape(starts.shape)).ravel()

    path = solve_ivp(rate, (0, 2), starts.ravel(), "DOP853", times, rtol=1e-9, atol=1e-12)
    sizes = np.linalg.norm(path.y.reshape(*starts.shape, -1), axis=0)
    assert (sizes <= np.exp(-lowest * times) * sizes[:, :1] * (1 + 1e-6)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_more_weight_decay_lifts_the_smallest_eigenvalue_by_at_least_twice_as_much(version: Version) -> None:
    _, at = somewhere(version, 1)
    more = SymmetricWeights(Phi=at.Phi, G=at.G, H=at.H, sigma2=at.sigma2, rho=at.rho + 0.1)
    gain = smallest_eigenvalue(version, more) - smallest_eigenvalue(version, at)
    assert 0.2 - 1e-12 <= gain <= 0.3 + 1e-12


@pytest.mark.parametrize("version", VERSIONS)
def test_where_the_weights_commute_nothing_moves_apart(version: Version) -> None:
    weights = {"W_f": np.diag([0.5, 0.3, 0.1]), "W_g": np.diag([0.2, 0.9, -0.4]), "W_h": np.diag([0.7, -0.3, 0.2])}
    for rate in (
        *(sum_terms(terms, symmetric_weights(flow(version), weights)) for terms in RIGHT_EQUATIONS[version].values()),
        *exact_rates(flow(version), weights).values(),
    ):
        assert not rate.any()
