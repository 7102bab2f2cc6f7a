"""The eigenvalue dynamics: their derivatives, and what becomes of one in the limits of another."""

from typing import Any

import numpy as np
import pytest

from phinets.config.errors import UserError
from phinets.dynamics.systems import SYSTEMS, Floats, PhiNet, PhiNetPhi, SimSiam, System, Version, XPhiNet
from tests.dynamics.integration import integrate_for

RANDOM = np.random.default_rng(0)
VERSIONS: tuple[Version, ...] = ("published", "corrected")
EVERY: list[System] = [
    SimSiam(sigma2=0.7, rho=0.05, tau=0.9),
    *(PhiNet(sigma2=0.7, rho=0.05, version=v) for v in VERSIONS),
    *(PhiNetPhi(sigma2=0.7, rho=0.05, version=v) for v in VERSIONS),
    *(XPhiNet(sigma2=0.7, rho=0.05, version=v, kappa=0.4) for v in VERSIONS),
]


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_the_jacobian_is_the_flow_s_derivative(system: System) -> None:
    state, h = RANDOM.normal(size=(len(system.variables), 20)), 1e-6
    for k in range(len(state)):
        step = np.zeros_like(state)
        step[k] = h
        by_differences = (system.flow(state + step) - system.flow(state - step)) / (2 * h)
        np.testing.assert_allclose(system.jacobian(state)[:, k], by_differences, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_on_the_parabola_phinet_moves_as_with_phi_and_stays_there(version: Version) -> None:
    psi, gamma = RANDOM.normal(size=(2, 50))
    reduced_eigenvalues = PhiNet(sigma2=1.5, rho=0.03, version=version).flow(np.stack([psi, gamma]))
    whole = PhiNetPhi(sigma2=1.5, rho=0.03, version=version).flow(np.stack([psi**2, psi, gamma]))
    np.testing.assert_allclose(whole[1:], reduced_eigenvalues, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whole[0], 2 * psi * whole[1], rtol=1e-12, atol=1e-12)


def test_phinet_without_g_moves_its_psi_as_simsiam() -> None:
    psi = RANDOM.normal(size=50)
    phinet = PhiNet(sigma2=1.5, rho=0.03).flow(np.stack([psi, np.zeros(50)]))
    np.testing.assert_allclose(phinet[:1], SimSiam(sigma2=1.5, rho=0.03).flow(psi[None]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(("bad", "says"), [({"rho": 0.0}, "rho is 0.0"), ({"sigma2": -1.0}, "sigma2 is -1.0")])
def test_settings_that_make_no_sense_are_refused(name: str, bad: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        SYSTEMS[name](**bad)


def _pull_of_the_loss(weights: Floats, slow: float, s: float) -> Floats:
    """Minus the gradient of X-PhiNet's expected loss for one-dimensional weights (f, h, g), by complex steps.

    ½E(hf·x₁ − t·x₂)² + ½E(ghf·x₁ − b·x)² with E x₁² = E x₂² = s and E x₁x₂ = E x₁x = E x² = 1; t = f is not
    differentiated.
    """
    target = float(weights[0])

    def loss(f: complex, h: complex, g: complex) -> complex:
        first = s * (h * f) ** 2 - 2 * h * f * target + s * target**2
        second = s * (g * h * f) ** 2 - 2 * g * h * f * slow + slow**2
        return (first + second) / 2

    steps = 1e-30j * np.eye(3)
    return np.array([-loss(*(weights + step)).imag / 1e-30 for step in steps])


def test_x_phinet_as_corrected_is_the_gradient_flow_of_its_loss_and_keeps_the_encoder_at_psi() -> None:
    system = XPhiNet(sigma2=0.7, rho=0.05, kappa=0.4)
    for psi, gamma, slow in RANDOM.normal(size=(20, 3)):
        for side in (1, -1):  # the encoders' common sign changes nothing
            f, h, g = _pull_of_the_loss(np.array([side * psi, psi, gamma]), side * slow, system.s)
            rate = system.flow(np.array([psi, gamma, slow]))
            assert side * f == pytest.approx(h)
            assert rate == pytest.approx([h - 0.05 * psi, g - 0.05 * gamma, 0.4 * (psi - slow)])


@pytest.mark.parametrize("version", VERSIONS)
def test_x_phinet_whose_slow_encoder_has_caught_up_moves_as_phinet(version: Version) -> None:
    psi, gamma = RANDOM.normal(size=(2, 50))
    whole = XPhiNet(sigma2=1.5, rho=0.03, version=version).flow(np.stack([psi, gamma, psi]))
    reduced_eigenvalues = PhiNet(sigma2=1.5, rho=0.03, version=version).flow(np.stack([psi, gamma]))
    np.testing.assert_allclose(whole[:2], reduced_eigenvalues, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(whole[2], 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_x_phinet_follows_phinet_s_path_the_better_the_faster_its_slow_encoder(version: Version) -> None:
    start = np.array([[0.3, 0.2, -0.4], [0.5, 2.0, -1.0]])
    reduced_eigenvalues = integrate_for(PhiNet(sigma2=1.5, rho=0.03, version=version), start, 10.0)
    apart = []
    for kappa in (1e2, 1e3, 1e4):
        system = XPhiNet(sigma2=1.5, rho=0.03, version=version, kappa=kappa)
        apart.append(np.max(np.abs(integrate_for(system, start[[0, 1, 0]], 10.0)[:2] - reduced_eigenvalues)))
    np.testing.assert_allclose(np.array(apart[1:]) / apart[:-1], 0.1, rtol=0.1)  # as 1/κ


@pytest.mark.parametrize("version", VERSIONS)
def test_the_slow_encoder_scales_the_determinant_by_its_rate_so_saddle_nodes_stay(version: Version) -> None:
    for psi, gamma in RANDOM.normal(size=(20, 2)):
        whole = XPhiNet(sigma2=0.7, rho=0.05, version=version, kappa=0.4).jacobian(np.array([psi, gamma, psi]))
        reduced_eigenvalues = PhiNet(sigma2=0.7, rho=0.05, version=version).jacobian(np.array([psi, gamma]))
        assert np.linalg.det(whole) == pytest.approx(-0.4 * np.linalg.det(reduced_eigenvalues))


def test_rates_and_targets_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UserError, match="kappa is 0"):
        XPhiNet(kappa=0.0)
    with pytest.raises(UserError, match="tau is -1"):
        SimSiam(tau=-1.0)


def test_another_weight_decay_leaves_all_else() -> None:
    system = XPhiNet(sigma2=0.7, rho=0.05, version="published", kappa=0.4)
    assert system.with_rho(0.1) == XPhiNet(sigma2=0.7, rho=0.1, version="published", kappa=0.4)
