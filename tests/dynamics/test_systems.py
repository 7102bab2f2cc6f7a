"""The eigenvalue dynamics: their derivatives, and what becomes of one in the limits of another."""

from typing import Any

import numpy as np
import pytest

from phinets.config.errors import UserError
from phinets.dynamics.systems import SYSTEMS, PhiNet, PhiNetPhi, SimSiam, System, Version, XPhiNet

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
    reduced = PhiNet(sigma2=1.5, rho=0.03, version=version).flow(np.stack([psi, gamma]))
    whole = PhiNetPhi(sigma2=1.5, rho=0.03, version=version).flow(np.stack([psi**2, psi, gamma]))
    np.testing.assert_allclose(whole[1:], reduced, rtol=1e-12, atol=1e-12)
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
