"""Nullclines, trajectories and manifolds: each satisfies the equation that defines it."""

import numpy as np
import pytest

from phinets.config.errors import UserError
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.phase_plane import (
    Window,
    gamma_nullcline,
    psi_nullcline,
    sample_starts,
    stable_manifold,
    trajectory,
    window_around,
)
from phinets.dynamics.systems import PhiNet, SimSiam

SYSTEMS = [
    PhiNet(sigma2=sigma2, rho=rho, version=version)
    for version in ("published", "corrected")
    for sigma2, rho in ((1.5, 0.12), (1.5, 0.003), (1.5, 0.0001), (0.0, 0.2), (4.0, 0.01))
]


@pytest.mark.parametrize("system", SYSTEMS, ids=repr)
def test_psi_stands_still_on_its_nullcline(system: PhiNet) -> None:
    curve = psi_nullcline(system)
    curve = curve[:, np.isfinite(curve).all(axis=0)]
    psi, gamma = curve
    size = np.abs((1 + gamma) * psi**2) + system.s * (1 + gamma**2) * np.abs(psi) ** 3 + system.rho * np.abs(psi)
    assert len(psi) > 1900
    assert np.all(np.abs(system.flow(curve)[0]) <= 1e-12 * size)


@pytest.mark.parametrize("system", SYSTEMS, ids=repr)
def test_gamma_stands_still_on_its_nullcline(system: PhiNet) -> None:
    psi = np.linspace(-1, 1, 201)
    gamma = gamma_nullcline(system, psi)
    np.testing.assert_allclose(system.flow(np.stack([psi, gamma]))[1], 0, atol=1e-13)


@pytest.mark.parametrize("system", SYSTEMS, ids=repr)
def test_every_equilibrium_lies_where_the_nullclines_cross(system: PhiNet) -> None:
    psi, gamma = psi_nullcline(system)
    for point in equilibria(system):
        right = float(gamma_nullcline(system, np.array(point.psi)))
        assert point.gamma == pytest.approx(right, rel=1e-9, abs=1e-12)
        if not point.collapsed:
            away = (
                2 * system.s * np.hypot(psi - point.psi, psi * gamma - point.psi * right)
            )  # on the circle of the curve
            assert np.nanmin(away) < 2 * np.pi / 2000


def test_the_curve_of_psi_is_broken_at_its_pole_and_ends_at_half_the_variance_s_inverse() -> None:
    system = PhiNet(rho=0.03)
    psi = psi_nullcline(system)[0]
    assert np.nanmin(psi[1:] * psi[:-1]) > 0
    assert psi_nullcline(system.with_rho(0.2001)).shape == (2, 0)
    assert psi_nullcline(system.with_rho(0.1999)).shape[1] > 0


@pytest.mark.parametrize("system", [*SYSTEMS, SimSiam(rho=0.08), SimSiam(rho=0.2)], ids=repr)
def test_a_trajectory_leads_from_its_start_to_a_sink(system: PhiNet | SimSiam) -> None:
    for start in sample_starts(window_around([system])):
        first = start[: len(system.variables)]
        states, sink = trajectory(system, first)
        assert states[:, 0].tolist() == list(first)
        assert sink is not None
        assert sink.kind == "sink"
        np.testing.assert_allclose(states[:, -1], sink.state, atol=2e-6)


def test_a_trajectory_of_simsiam_keeps_to_its_side_of_the_source() -> None:
    system = SimSiam(rho=0.08)
    source = next(point.psi for point in equilibria(system) if point.kind == "source")
    for start, learns in ((source * 0.999, False), (source * 1.001, True)):
        _, sink = trajectory(system, [start])
        assert sink is not None
        assert sink.collapsed != learns


def test_what_rests_elsewhere_reaches_no_sink() -> None:
    states, sink = trajectory(SimSiam(rho=0.1), [0.2])
    assert sink is None
    assert states[0, -1] == pytest.approx(0.2)


@pytest.mark.parametrize("system", [s for s in SYSTEMS if s.rho < 0.1], ids=repr)
def test_the_manifold_of_a_saddle_parts_two_basins(system: PhiNet) -> None:
    window = window_around([system])
    for saddle in (point for point in equilibria(system) if point.kind == "saddle"):
        for arm in stable_manifold(system, saddle, window):
            np.testing.assert_allclose(arm[:, 0], saddle.state, atol=2e-5 * window.size.max())
            middle = arm.shape[1] // 2
            along = (arm[:, middle + 1] - arm[:, middle - 1]) / window.size
            aside = np.array([-along[1], along[0]]) / np.linalg.norm(along) * window.size
            ends = [trajectory(system, arm[:, middle] + side * 1e-4 * aside)[1] for side in (-1, 1)]
            assert ends[0] is not None
            assert ends[1] is not None
            assert ends[0].state != ends[1].state


@pytest.mark.parametrize("system", [s for s in SYSTEMS if s.rho < 0.1], ids=repr)
def test_the_arms_of_a_manifold_leave_the_saddle_on_both_sides_along_the_attracting_direction(system: PhiNet) -> None:
    for saddle in (point for point in equilibria(system) if point.kind == "saddle"):
        first, second = (arm[:, 0] - saddle.state for arm in stable_manifold(system, saddle, window_around([system])))
        np.testing.assert_allclose(second, -first, rtol=1e-6)
        pulled = system.jacobian(np.array(saddle.state)) @ first
        np.testing.assert_allclose(pulled, saddle.eigenvalues[0].real * first, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("system", SYSTEMS, ids=repr)
def test_the_window_shows_every_equilibrium_with_room_around_it(system: PhiNet) -> None:
    window = window_around([system, SimSiam(sigma2=system.sigma2, rho=system.rho)])
    for point in equilibria(system):
        share = (np.array(point.state) - window.corner) / window.size
        assert np.all((share > 0.05) & (share < 0.95))


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(UserError, match="the box is empty"):
        Window(psi_min=1, psi_max=1, gamma_min=0, gamma_max=1)
