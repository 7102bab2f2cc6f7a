"""Paths of matrices: integration, starts, rates, and what is refused."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phinets.config.errors import UserError
from phinets.dynamics.matrix import (
    MATRIX_FLOWS,
    MatrixFlow,
    MatrixSimSiam,
    MatrixXPhiNet,
    pack,
    unpack,
)
from phinets.dynamics.matrix_trajectories import (
    Start,
    compare_with_reduced,
    decay_rate,
    direction_rates,
    integrate,
    random_start,
    require_weights,
    symmetric_part,
)
from phinets.dynamics.systems import PhiNetPhi, SimSiam, Version, XPhiNet


def test_integration_agrees_with_another_method() -> None:
    system = MatrixFlow(sigma2=1.5, rho=0.03)
    start, times = random_start(system, Start(dim=3, input_dim=5), 0), np.array([0.0, 5.0, 50.0])
    other = solve_ivp(
        lambda _, y: pack(system, system.flow(unpack(system, y, start))), (0, 50), pack(system, start), "DOP853",
        times, rtol=1e-12, atol=1e-14,
    )  # fmt: skip
    path = integrate(system, start, times)
    for k in range(3):
        np.testing.assert_allclose(pack(system, path.at(k)), other.y[:, k], rtol=0, atol=1e-7)


@pytest.mark.parametrize("version", ["published", "corrected"])
def test_a_direction_moves_by_the_reduced_systems(version: Version) -> None:
    a, psi, gamma, slow = np.random.default_rng(0).normal(size=(4, 20))
    found = direction_rates(MatrixFlow(version=version, rho=0.05), np.stack([a, psi, gamma, slow]))
    expected = PhiNetPhi(version=version, rho=0.05).flow(np.stack([a**2, psi, gamma]))
    np.testing.assert_allclose([2 * a * found[0], found[1], found[2]], expected, atol=1e-12)
    found = direction_rates(MatrixXPhiNet(version=version, kappa=0.2), np.stack([psi, psi, gamma, slow]))
    expected = XPhiNet(version=version, kappa=0.2).flow(np.stack([psi, gamma, slow]))
    np.testing.assert_allclose(found[1:], expected, atol=1e-12)
    found = direction_rates(MatrixSimSiam(tau=0.9), np.stack([psi, psi, 0 * psi, 0 * psi]))
    np.testing.assert_allclose(found[1:2], SimSiam(tau=0.9).flow(psi[None]), atol=1e-12)


@pytest.mark.parametrize("name", MATRIX_FLOWS)
def test_aligned_weights_go_as_predicted_and_a_slip_in_the_matrix_flow_shows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = MATRIX_FLOWS[name]()
    weights = {key: np.diag([0.5, 0.3]) for key in system.names}
    times = np.linspace(0, 30, 4)
    assert compare_with_reduced(system, weights, times).differences.max() < 1e-7
    right = type(system).flow
    monkeypatch.setattr(type(system), "flow", lambda self, w: {key: 1.1 * rate for key, rate in right(self, w).items()})
    assert compare_with_reduced(system, weights, times).differences.max() > 1e-3


def test_a_decay_rate_is_read_off_an_exponential_and_left_out_where_nothing_is_left() -> None:
    times = np.linspace(0, 10, 50)
    assert decay_rate(times, 3 * np.exp(-0.4 * times)) == pytest.approx(0.4)
    assert decay_rate(times, 1e-12 * np.exp(-0.4 * times)) is None


def test_a_symmetric_start_is_symmetric_and_the_same_seed_gives_the_same_start() -> None:
    system = MatrixFlow()
    one, two = (random_start(system, Start(symmetric=symmetric), 7) for symmetric in (True, False))
    for name in ("W_g", "W_h"):
        np.testing.assert_array_equal(one[name], symmetric_part(two[name]))
    np.testing.assert_array_equal(one["W_f"], two["W_f"])


GOOD: dict[str, Any] = {"W_f": np.ones((3, 5)), "W_g": np.eye(3), "W_h": np.eye(3)}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"W_g": np.eye(4)}, r"W_g is \(4, 4\), but beside W_f of \(3, 5\) it must be \(3, 3\)"),
        ({"W_h": np.ones(3)}, "W_h is float64 of shape"),
        ({"W_h": np.full((3, 3), np.nan)}, "W_h holds NaN"),
        ({"W_f": np.array([["a"]])}, "W_f is"),
        ({"W_f": np.ones((0, 5))}, "W_f is"),
    ],
)
def test_weights_that_don_t_fit_are_refused(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        require_weights(MatrixFlow(), GOOD | bad)


def test_a_missing_matrix_is_named() -> None:
    with pytest.raises(UserError, match="no W_s"):
        require_weights(MatrixXPhiNet(), GOOD)


def test_weights_that_run_away_are_told() -> None:
    system = MatrixFlow()
    with pytest.raises(UserError, match="could not be integrated"):
        integrate(system, {name: 1e200 * matrix for name, matrix in GOOD.items()}, np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("name", "bad", "says"),
    [
        *((name, {"rho": 0.0}, "rho is 0.0") for name in MATRIX_FLOWS),
        *((name, {"sigma2": -1.0}, "sigma2 is -1.0") for name in MATRIX_FLOWS),
        ("simsiam", {"tau": 0.0}, "tau is 0.0"),
        ("byol", {"kappa": 0.0}, "kappa is 0.0"),
        ("x-phinet", {"kappa": -1.0}, "kappa is -1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(name: str, bad: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        MATRIX_FLOWS[name](**bad)


@pytest.mark.parametrize(("bad", "says"), [({"dim": 0}, "dim is 0"), ({"scale": float("nan")}, "scale is nan")])
def test_starts_that_make_no_sense_are_refused(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Start(**bad)
