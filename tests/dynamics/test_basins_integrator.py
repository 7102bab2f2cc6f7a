"""Following states through a flow: how exact, how stiff, and when it stops."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from phinets.dynamics import basins as integrate
from phinets.dynamics.basins import Tolerance, integrate_until, step
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.systems import (
    AboveParabola,
    BelowParabola,
    Floats,
    PhiNet,
    PhiNetPhi,
    SimSiam,
    System,
    Version,
    XPhiNet,
)
from tests.dynamics.integration import integrate_for

VERSIONS: tuple[Version, ...] = ("published", "corrected")
EVERY: list[System] = [SimSiam(), *(kind(version=v) for kind in (PhiNet, PhiNetPhi, XPhiNet) for v in VERSIONS)]


def _random() -> np.random.Generator:
    """The same numbers for each test, whatever tests came before it."""
    return np.random.default_rng(20)


def _precise(system: System, start: Floats, time: float) -> Floats:
    path = solve_ivp(lambda _, x: system.flow(x), (0, time), start, method="LSODA", rtol=1e-12, atol=1e-14)
    end: Floats = path.y[:, -1]
    return end


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_a_fixed_step_s_error_falls_with_its_third_power(system: System) -> None:
    starts = _random().uniform(-0.5, 0.5, size=(len(system.variables), 6))
    expected = np.stack([_precise(system, start, 4.0) for start in starts.T], axis=1)
    errors = []
    for steps in (100, 200, 400):
        state = starts
        for _ in range(steps):
            state, _ = step(system, state, np.full(6, 4.0 / steps))
        errors.append(np.sqrt(np.mean((state - expected) ** 2)))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[-1] == pytest.approx(3, abs=0.25), orders


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_states_end_where_a_precise_integrator_takes_them_each_at_its_own_pace(system: System) -> None:
    starts = _random().uniform(0, 3, size=(len(system.variables), 8)) * ([1, 1, 1, -1] * 2)
    starts[-1, 0] = 100.0  # far faster than the others at first
    if "phi" in system.variables:
        starts[0] = starts[1] ** 2 + 0.1  # it is a square
    expected = np.stack([_precise(system, start, 3.0) for start in starts.T], axis=1)
    np.testing.assert_allclose(integrate_for(system, starts, 3.0, 1e-7), expected, rtol=1e-4, atol=1e-7)


def test_a_tighter_tolerance_gives_a_smaller_error() -> None:
    system, start = PhiNet(), np.array([[0.5], [1.5]])
    expected = _precise(system, start[:, 0], 5.0)[:, None]
    errors = [
        np.max(np.abs(integrate_for(system, start, 5.0, rtol, rtol * 1e-3) - expected)) for rtol in (1e-3, 1e-5, 1e-7)
    ]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_a_step_that_was_far_too_long_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    system, start = PhiNet(), np.array([[0.5, -0.4], [1.5, -2.0]])
    expected = integrate_for(system, start, 50.0)
    monkeypatch.setattr(integrate, "_first_step", lambda system, state, care: np.full(2, 50.0))
    np.testing.assert_allclose(integrate_for(system, start, 50.0), expected, rtol=1e-5)


def test_a_fast_direction_that_has_decayed_limits_no_step() -> None:
    system = PhiNet(rho=1e-4)
    sink = equilibria(system)[-1]
    assert sink.eigenvalues[0].real < 20 * sink.eigenvalues[1].real
    state = np.array(sink.state)[:, None] + 1e-6
    for _ in range(3):
        state, _ = step(system, state, np.array([1e5 / -sink.eigenvalues[0].real]))
    np.testing.assert_allclose(state[:, 0], sink.state, atol=1e-12)


def test_the_distance_from_the_parabola_decays_as_e_to_the_minus_two_rho_t() -> None:
    system = PhiNetPhi(rho=0.05)
    starts = np.abs(_random().normal(size=(3, 8)))
    for time in (1.0, 10.0, 40.0):
        phi, psi, _ = integrate_for(system, starts, time, 1e-7)
        np.testing.assert_allclose(psi**2 - phi, (starts[1] ** 2 - starts[0]) * np.exp(-0.1 * time), rtol=1e-3)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_coordinates_around_the_parabola_are_phi_psi_and_gamma_in_other_words(version: Version) -> None:
    whole = PhiNetPhi(sigma2=0.7, rho=0.05, version=version)
    x, omega, gamma = _random().normal(size=(3, 30))
    above = AboveParabola(sigma2=0.7, rho=0.05, version=version)
    rate = above.flow(np.stack([x, omega, gamma]))
    expected = whole.flow(np.stack([x**2 + omega**2, x, gamma]))
    np.testing.assert_allclose(rate[[0, 2]], expected[1:], atol=1e-12)
    np.testing.assert_allclose(2 * x * rate[0] + 2 * omega * rate[1], expected[0], atol=1e-12)
    for side in (1, -1):
        below = BelowParabola(sigma2=0.7, rho=0.05, version=version, side=side)
        psi = side * np.hypot(x, omega)
        rate = below.flow(np.stack([np.log(np.abs(x)), omega, gamma]))
        expected = whole.flow(np.stack([x**2, psi, gamma]))
        np.testing.assert_allclose(2 * x**2 * rate[0], expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose((x**2 * rate[0] + omega * rate[1]) / psi, expected[1], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rate[2], expected[2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("side", [0, 1, -1])
def test_their_jacobians_are_their_flows_derivatives(version: Version, side: int) -> None:
    system = BelowParabola(version=version, side=side) if side else AboveParabola(version=version)
    # Extrapolated differences err by h⁴ times the fifth slope and by rounding over h. Both are least about h = 5e-4:
    # over 300 draws of states the worst error is 2.3e-9. At h = 1e-5 it is 2.2e-7, all of it rounding.
    state, h = _random().normal(size=(3, 20)), 5e-4
    for k in range(3):
        off = np.zeros_like(state)
        off[k] = h
        nearer, farther = ((system.flow(state + n * off) - system.flow(state - n * off)) / (2 * n * h) for n in (1, 2))
        by_differences = (4 * nearer - farther) / 3
        scale = np.max(np.abs(by_differences), axis=0)
        assert np.max(np.abs(system.jacobian(state)[:, k] - by_differences) / (1 + scale)) < 1e-8


def test_what_is_let_go_is_followed_no_further() -> None:
    seen: list[int] = []

    def watch(states: Floats, points: NDArray[np.intp]) -> NDArray[np.bool_]:
        seen.extend(points)
        let_go: NDArray[np.bool_] = points < 2
        return let_go

    integrate_until(PhiNet(), np.full((2, 5), 0.3), watch, Tolerance(rtol=1e-4, atol=1e-6, steps=10))
    assert seen.count(0) == seen.count(1) == 1
    assert seen.count(4) == 11


def test_what_rests_is_followed_no_further_and_warns_of_nothing() -> None:
    states: list[Floats] = []

    def watch(state: Floats, points: NDArray[np.intp]) -> NDArray[np.bool_]:
        states.append(state)
        return np.zeros(len(points), dtype=bool)

    with np.errstate(all="raise"):
        integrate_until(PhiNet(), np.zeros((2, 1)), watch, Tolerance(rtol=1e-4, atol=1e-6))
    assert len(states) < 100
    np.testing.assert_array_equal(states[-1], 0)
