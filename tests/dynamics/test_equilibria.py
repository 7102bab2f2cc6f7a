"""All equilibria: none lost, none twice, each where the flow rests, and of the kind it says."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phinets.config.errors import UserError
from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.equilibria import AnySystem, equilibria
from phinets.dynamics.systems import PhiNet, PhiNetPhi, SimSiam, Version, XPhiNet
from tests.dynamics.dense_search import VERSIONS, draws, searched


def _every(sigma2: float, rho: float) -> list[AnySystem]:
    setting: dict[str, Any] = {"sigma2": sigma2, "rho": rho}
    return [
        SimSiam(**setting, tau=0.8),
        *(kind(**setting, version=version) for kind in (PhiNet, PhiNetPhi, XPhiNet) for version in VERSIONS),
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_there_are_as_many_as_a_dense_search_finds(version: Version) -> None:
    told = 0
    for sigma2, rho in draws(seed=2, number=150):
        system = PhiNet(sigma2=sigma2, rho=rho, version=version)
        number = searched(system)
        if number is not None:
            assert len(equilibria(system)) == number + 1, system
            told += 1
    assert told >= 145


def test_simsiam_has_as_many_as_a_dense_search_finds() -> None:
    for sigma2, rho in draws(seed=3, number=60):
        system = SimSiam(sigma2=sigma2, rho=rho)
        assert len(equilibria(system)) == searched(system, 2_000) + 1  # type: ignore[operator]


def test_the_flow_rests_at_every_one() -> None:
    for sigma2, rho in [*draws(seed=4, number=30), (1.5, 1e-7), (5.0, 1e-9), (0.0, 0.5)]:
        for system in _every(sigma2, rho):
            for each in equilibria(system):
                assert np.max(np.abs(system.flow(np.array(each.state)))) < 1e-12, (system, each)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_saddle_node_gives_two_at_once_however_near_it_is(version: Version) -> None:
    system = PhiNet(sigma2=1.5, version=version)
    for each in bifurcations(system).points:
        above, below = (len(equilibria(system.with_rho(each.rho * (1 + off)))) for off in (1e-13, -1e-13))
        assert below == above + 2


def test_simsiam_s_are_the_roots_of_its_quadratic() -> None:
    for sigma2, rho in draws(seed=5, number=50):
        s, inside = 1 + sigma2, 1 - 4 * (1 + sigma2) * rho
        expected = [0.0] if inside < 0 else [0.0, *((1 + side * inside**0.5) / (2 * s) for side in (-1, 1))]
        np.testing.assert_allclose([each.psi for each in equilibria(SimSiam(sigma2=sigma2, rho=rho))], expected, 1e-9)


def test_where_simsiam_s_two_meet_there_is_one_and_it_is_degenerate() -> None:
    kinds = [each.kind for each in equilibria(SimSiam(sigma2=1.5, rho=0.1))]  # 0.1 = 1 / (4 · 2.5)
    assert kinds == ["sink", "degenerate"]


@pytest.mark.parametrize("version", VERSIONS)
def test_on_phinet_s_plane_sinks_outnumber_saddles_by_one_and_nothing_else_is_there(version: Version) -> None:
    for sigma2, rho in draws(seed=6, number=100):
        kinds = [each.kind for each in equilibria(PhiNet(sigma2=sigma2, rho=rho, version=version))]
        assert set(kinds) <= {"sink", "saddle"}
        assert kinds.count("sink") == kinds.count("saddle") + 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("rho", "sinks"), [(0.12, 1), (0.03, 2), (0.003, 3), (0.0001, 4)])
def test_the_published_flow_has_the_sinks_of_the_paper_s_figure_and_the_corrected_one_never_four(
    rho: float, sinks: int, version: Version
) -> None:
    number = sum(each.kind == "sink" for each in equilibria(PhiNet(sigma2=1.5, rho=rho, version=version)))
    assert number == sinks if version == "published" else number < 4


@pytest.mark.parametrize("system", _every(1.5, 0.003) + _every(0.4, 0.0002), ids=repr)
def test_what_starts_beside_a_sink_comes_back_and_beside_anything_else_leaves(system: AnySystem) -> None:
    random = np.random.default_rng(7)
    for each in equilibria(system):
        state = np.array(each.state)
        slowest = min(abs(value.real) for value in each.eigenvalues)
        size = 1e-7 * max(abs(each.psi), system.rho)
        away = []
        for _ in range(3):
            off = random.normal(size=len(state))
            path = solve_ivp(
                lambda _, x: system.flow(x),
                (0, 20 / slowest),
                state + size * off / np.linalg.norm(off),
                method="LSODA",
                jac=lambda _, x: system.jacobian(x),
                rtol=1e-9,
                atol=1e-6 * size,
            )
            away.append(np.linalg.norm(path.y[:, -1] - state) / size)
        assert (max(away) < 1) == (each.kind == "sink"), (each, away)


@pytest.mark.parametrize("version", VERSIONS)
def test_with_phi_they_are_phinet_s_on_the_parabola_with_one_more_eigenvalue(version: Version) -> None:
    for sigma2, rho in draws(seed=8, number=20):
        plain = equilibria(PhiNet(sigma2=sigma2, rho=rho, version=version))
        whole = equilibria(PhiNetPhi(sigma2=sigma2, rho=rho, version=version))
        for one, other in zip(plain, whole, strict=True):
            assert (one.psi, one.gamma, one.kind) == (other.psi, other.gamma, other.kind)
            assert other["phi"] == pytest.approx(one.psi**2, rel=1e-15)
            expected = sorted([*(each.real for each in one.eigenvalues), -2 * rho])
            got = [each.real for each in other.eigenvalues]
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9 * abs(expected[0]))


@pytest.mark.parametrize("version", VERSIONS)
def test_with_a_slow_encoder_they_are_phinet_s_and_slow_has_caught_up(version: Version) -> None:
    for sigma2, rho in draws(seed=9, number=20):
        plain = equilibria(PhiNet(sigma2=sigma2, rho=rho, version=version))
        whole = equilibria(XPhiNet(sigma2=sigma2, rho=rho, version=version, kappa=0.01))
        for one, other in zip(plain, whole, strict=True):
            assert (one.psi, one.gamma, one.psi) == (other.psi, other.gamma, other["slow"])


def test_as_corrected_the_slow_encoder_changes_no_kind_at_any_rate() -> None:
    random = np.random.default_rng(10)
    for sigma2, rho in draws(seed=11, number=100):
        kappa = float(10 ** random.uniform(-9, 2))
        plain = equilibria(PhiNet(sigma2=sigma2, rho=rho))
        whole = equilibria(XPhiNet(sigma2=sigma2, rho=rho, kappa=kappa))
        assert [each.kind for each in plain] == [each.kind for each in whole], (sigma2, rho, kappa)


def test_only_the_origin_is_collapsed_and_it_is_always_there() -> None:
    for sigma2, rho in draws(seed=12, number=10):
        for system in _every(sigma2, rho):
            collapsed = [each for each in equilibria(system) if each.collapsed]
            assert [set(each.state) for each in collapsed] == [{0.0}]
            assert collapsed[0].kind == "sink"


def test_for_json_a_real_eigenvalue_is_a_number_and_a_complex_one_has_two_parts() -> None:
    spiral = equilibria(XPhiNet(sigma2=1.5, rho=0.03))[-1]
    one, two, three = spiral.plain()["eigenvalues"]
    assert isinstance(one, float)
    assert two == {"re": three["re"], "im": -three["im"]}
    assert asdict(spiral)["eigenvalues"][1] == complex(two["re"], two["im"])
    assert spiral.plain().keys() == {"psi", "gamma", "slow", "kind", "collapsed", "eigenvalues"}
    assert equilibria(SimSiam())[0].plain()["gamma"] is None


def test_where_floats_can_t_tell_the_kinds_none_is_told() -> None:
    for system in (PhiNet(rho=1e-13), PhiNetPhi(rho=1e-13, version="published"), PhiNet(sigma2=1e6, rho=1e-19)):
        with pytest.raises(UserError, match="at least"):
            equilibria(system)
    assert len(equilibria(PhiNetPhi(rho=1e-12))) == len(equilibria(PhiNet(rho=1e-6)))
