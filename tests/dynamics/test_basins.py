"""Which sink a start ends in: beside scipy's integrators, beside each other, and where nobody can say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phinets.config.errors import UserError
from phinets.dynamics import basins as maps
from phinets.dynamics.basins import (
    NO_SINK,
    Basins,
    Box,
    Labels,
    basins,
    destinations,
    simsiam_basins,
    sinks_of,
    trapping_region,
)
from phinets.dynamics.equilibria import AnySystem, equilibria
from phinets.dynamics.systems import (
    MOST,
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
from tests.dynamics.dense_search import VERSIONS
from tests.dynamics.integration import integrate_for

NEAR = 1e-3
MANY: list[AnySystem] = [
    *(PhiNet(rho=rho, version=version) for rho in (0.03, 0.003, 0.0001) for version in VERSIONS),
    PhiNet(sigma2=0.0, rho=0.2),
    PhiNet(sigma2=4.0, rho=0.0005, version="published"),
    XPhiNet(rho=0.003, version="published"),
    XPhiNet(rho=0.01, kappa=0.02),
    XPhiNet(kappa=1e5),
]


def _end(system: AnySystem, start: Floats) -> int:
    """The number of the sink that scipy's integrator ends beside."""
    path = solve_ivp(
        lambda _, x: system.flow(x),
        (0, 60 / system.rho),
        start,
        method="LSODA",
        jac=lambda _, x: system.jacobian(x),
        rtol=1e-9,
        atol=1e-9 * system.rho,
    )
    away = [np.max(np.abs(path.y[:, -1] - np.array(sink.state))) for sink in sinks_of(system)]
    assert min(away) < 0.05 * system.rho
    return int(np.argmin(away))


def _around(system: AnySystem, starts: Floats) -> Labels:
    """Where eight neighbors of each start end, which lie NEAR it in ψ and γ: (k, n) → (n, 8)."""
    turns = np.linspace(0, 2 * np.pi, 9)[:-1]
    ring = np.repeat(starts[:, :, None], 8, axis=2)
    for name, off in (("psi", np.cos(turns)), ("gamma", np.sin(turns))):
        ring[system.variables.index(name)] += NEAR * off
    return destinations(system, ring.reshape(len(starts), -1)).reshape(-1, 8)


@pytest.mark.parametrize("system", MANY, ids=repr)
def test_starts_end_where_scipy_takes_them_unless_a_border_is_within_a_thousandth(system: AnySystem) -> None:
    random = np.random.default_rng(40)
    starts = random.uniform([[-0.6], [-4.0]], [[0.6], [4.0]], size=(2, 16))
    starts = starts if len(system.variables) == 2 else starts[[0, 1, 0]]
    labels = destinations(system, starts, rtol=1e-4)
    clear = np.all(_around(system, starts) == labels[:, None], axis=1)
    assert clear.sum() >= 12
    for k in np.flatnonzero(clear):
        assert labels[k] == _end(system, starts[:, k]), starts[:, k]


@pytest.mark.parametrize("system", [PhiNet(rho=0.003, version="published"), PhiNet(rho=0.0001)], ids=repr)
def test_a_map_s_borders_are_as_exact_as_its_finest_tolerance(system: AnySystem) -> None:
    found = basins(system, Box(), 41)
    starts = np.stack([each.ravel() for each in np.meshgrid(found.psi, found.gamma)])
    np.testing.assert_array_equal(found.labels.ravel(), destinations(system, starts, rtol=1e-6))


def test_what_a_rough_first_look_gets_wrong_beside_a_border_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    system = PhiNet(rho=0.003, version="published")
    expected = basins(system, Box(), 31).labels
    monkeypatch.setattr(maps, "ROUGH", 0.3)
    np.testing.assert_array_equal(basins(system, Box(), 31).labels, expected)
    monkeypatch.setattr(maps, "FINE", 0.3)
    assert np.any(basins(system, Box(), 31).labels != expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_from_the_parabola_phinet_with_phi_ends_where_phinet_does_however_stiff(version: Version) -> None:
    for rho in (0.03, 0.0001):
        plain = basins(PhiNet(rho=rho, version=version), Box(), 21)
        whole = basins(PhiNetPhi(rho=rho, version=version), Box(), 21)
        np.testing.assert_array_equal(whole.labels, plain.labels)


def _end_by_logarithm(system: PhiNetPhi, start: Floats) -> int:
    """The number of the sink that scipy's integrator ends beside, which follows ln φ, ψ and γ."""

    def rate(_: float, state: Floats) -> list[float]:
        log_phi, psi, gamma = state.tolist()
        phi = math.exp(log_phi)
        push = 1 + gamma - system.s * (1 + gamma**2) * psi
        pull = 1 - system.s * psi * (gamma if system.version == "corrected" else 1)
        return [
            2 * psi * push - 2 * system.rho,
            phi * push - system.rho * psi,
            psi * phi * pull - system.rho * gamma,
        ]

    start = np.array([math.log(start[0]), *start[1:]])
    path = solve_ivp(
        rate, (0, 60 / system.rho), start, method="LSODA", rtol=1e-10, atol=[1e-8, 1e-11 * system.rho, 1e-12]
    )
    away = [np.max(np.abs(path.y[1:, -1] - (sink.psi, sink["gamma"]))) for sink in sinks_of(system)]
    assert min(away) < 0.05 * system.rho
    return int(np.argmin(away))


@pytest.mark.parametrize("rho", [0.03, 0.003, 0.0001])
@pytest.mark.parametrize("version", VERSIONS)
def test_off_the_parabola_starts_end_where_scipy_takes_them(version: Version, rho: float) -> None:
    system = PhiNetPhi(rho=rho, version=version)
    random = np.random.default_rng(41)
    psi, gamma = random.uniform([[-0.6], [-4.0]], [[0.6], [4.0]], size=(2, 16))
    below = np.arange(16) % 2 == 0
    phi = np.where(below, psi**2 * 10 ** random.uniform(-3, 0, 16), psi**2 + 10 ** random.uniform(-4, 0, 16))
    starts = np.stack([phi, psi, gamma])
    labels = destinations(system, starts, rtol=1e-4)
    clear = np.all(_around(system, starts) == labels[:, None], axis=1)
    assert clear.sum() >= 14
    assert NO_SINK not in labels[clear]
    assert {bool(each) for each in below[clear]} == {True, False}
    for k in np.flatnonzero(clear):
        assert labels[k] == _end_by_logarithm(system, starts[:, k]), starts[:, k]


@pytest.mark.parametrize(
    ("version", "start"), [("corrected", (0.04, 0.25, -2.55)), ("published", (0.0385, 0.320, -1.649))]
)
def test_phi_that_falls_by_hundreds_of_powers_of_ten_is_not_lost(version: Version, start: tuple[float, ...]) -> None:
    system = PhiNetPhi(rho=0.0001, version=version)
    expected = _end_by_logarithm(system, np.array(start))
    for rtol in (1e-4, 1e-6, 1e-8):
        assert destinations(system, np.array(start)[:, None], rtol).tolist() == [expected]


@pytest.mark.parametrize("rho", [0.03, 0.0001])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_map_off_the_parabola_leaves_nothing_undecided(version: Version, rho: float) -> None:
    assert basins(PhiNetPhi(rho=rho, version=version), Box(), 21, {"phi": 0.04}).undecided == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("side", [1, -1])
def test_what_surely_collapses_below_the_parabola_does(version: Version, side: int) -> None:
    random = np.random.default_rng(43)
    for rho in (2.0, 0.03, 0.0001):
        system = BelowParabola(rho=rho, version=version, side=side)
        y = np.log(rho) + random.uniform(-4, 1, size=4000)
        states = np.stack([y, rho * 10 ** random.uniform(-3, 1, 4000), random.uniform(-5, 5, 4000)])
        sure = system.collapses(states)
        assert 100 < sure.sum() < 3900
        state = states[:, sure]
        for _ in range(6):
            later = integrate_for(system, state, 2 / rho, rtol=1e-6)
            assert np.all(np.abs(system.psi(later)) < np.abs(system.psi(state)))
            assert system.collapses(later).all()
            state = later
        assert np.all(np.abs(system.psi(state)) < 1e-3 * rho)


@pytest.mark.parametrize("kind", [PhiNet, PhiNetPhi, XPhiNet])
def test_under_a_large_weight_decay_everything_is_seen_to_collapse(kind: type[PhiNet | PhiNetPhi | XPhiNet]) -> None:
    for rho in (1.0, 100.0, MOST):
        found = basins(kind(rho=rho), Box(psi_min=-5, psi_max=5, gamma_min=-20, gamma_max=20), 7)
        assert (found.undecided, found.non_collapsed) == (0, 0)


def test_a_quick_slow_encoder_leaves_phinet_s_map_and_a_late_one_does_not() -> None:
    plain = basins(PhiNet(), Box(), 25)
    np.testing.assert_array_equal(basins(XPhiNet(kappa=1e5), Box(), 25).labels, plain.labels)
    box = Box(psi_min=0.01, psi_max=0.1, gamma_min=0, gamma_max=2)  # γψ·slow pushes ψ up
    ahead, behind = (basins(XPhiNet(kappa=0.01), box, 15, {"slow": slow}) for slow in (0.5, 0.0))
    assert ahead.non_collapsed > behind.non_collapsed


def test_simsiam_keeps_what_starts_above_its_source_and_nothing_else() -> None:
    system = SimSiam(rho=0.03)
    origin, source, sink = (each.psi for each in equilibria(system))
    psi = np.array([-5.0, -1e-9, origin, np.nextafter(source, 0), source, np.nextafter(source, 1), sink, 5.0])
    assert destinations(system, psi[None]).tolist() == [0, 0, 0, 0, NO_SINK, 1, 1, 1]
    found = simsiam_basins(PhiNet(rho=0.03), Box(), 101)
    assert found.non_collapsed == np.mean(found.psi > source)
    assert np.ptp(found.labels, axis=0).max() == 0


def test_simsiam_where_its_two_meet_has_one_sided_ends_that_nobody_calls_a_sink() -> None:
    assert destinations(SimSiam(rho=0.1), np.array([[0.1, 0.3]])).tolist() == [0, NO_SINK]


def test_on_the_axis_psi_0_everything_collapses() -> None:
    for system in (PhiNet(rho=0.0001), PhiNetPhi(rho=0.0001)):
        starts = np.zeros((len(system.variables), 7))
        starts[-1] = np.linspace(-50, 50, 7)
        labels = destinations(system, starts)
        assert {sinks_of(system)[label].psi for label in labels} == {0.0}


def test_a_start_without_an_encoder_collapses_whatever_its_predictors() -> None:
    system = PhiNetPhi(rho=0.0001)
    starts = np.array([[0.0, 0.0], [0.4, -0.4], [1.0, -3.0]])
    assert {sinks_of(system)[label].psi for label in destinations(system, starts)} == {0.0}


def test_a_start_on_a_saddle_is_undecided() -> None:
    system = PhiNet(version="published", rho=0.003)
    flow = {each.kind: each for each in equilibria(system)}

    class Still(PhiNet):  # rounding pushes a state off a saddle; here it does not
        def flow(self, state: Floats) -> Floats:
            there = np.array(flow["saddle"].state).reshape(2, *[1] * (state.ndim - 1))
            return np.where(np.all(state == there, axis=0), 0.0, PhiNet.flow(self, state))

    starts = np.array([flow["saddle"].state, flow["sink"].state]).T
    assert destinations(Still(version="published", rho=0.003), starts).tolist() == [NO_SINK, 2]


@pytest.mark.parametrize("system", MANY, ids=repr)
def test_no_state_leaves_a_sink_s_neighborhood(system: AnySystem) -> None:
    for sink in sinks_of(system):
        scale = [1.0 if name == "gamma" else max(abs(sink.psi), system.rho) for name in system.variables]
        _nothing_leaves(system, np.array(sink.state), np.array(scale))


@pytest.mark.parametrize("rho", [0.03, 0.003, 0.0001])
@pytest.mark.parametrize("version", VERSIONS)
def test_no_state_leaves_a_sink_s_neighborhood_around_the_parabola(version: Version, rho: float) -> None:
    for sink in sinks_of(PhiNetPhi(rho=rho, version=version)):
        size = max(abs(sink.psi), rho)
        above, center = AboveParabola(rho=rho, version=version), np.array([sink.psi, 0.0, sink["gamma"]])
        _nothing_leaves(above, center, np.array([size, size, 1.0]))
        if not sink.collapsed:
            below = BelowParabola(rho=rho, version=version, side=int(np.sign(sink.psi)))
            center = np.array([np.log(abs(sink.psi)), 0.0, sink["gamma"]])
            _nothing_leaves(below, center, np.array([1.0, size, 1.0]))


def _nothing_leaves(system: System, center: Floats, scale: Floats) -> None:
    random = np.random.default_rng(42)
    around = trapping_region(system, center, scale)
    assert around.radius > 0
    slowest_first = np.linalg.eig(system.jacobian(center))[1].real
    for shape in (np.linalg.inv(around.L), np.eye(len(center)), np.diag(scale), slowest_first):
        out = around.L @ shape @ random.normal(size=(len(center), 500))
        shell = np.linalg.solve(around.L, out / np.linalg.norm(out, axis=0)) * around.radius
        assert not around.holds(center[:, None] + 1.001 * shell).any()
        for share in (0.999, 0.5, 0.01):
            inside = center[:, None] + share * shell
            assert around.holds(inside).all()
            assert np.all(np.einsum("kn,kn->n", around.L @ system.flow(inside), around.L @ shell) < 0)


def test_starts_from_far_away_are_followed_too() -> None:
    system = PhiNet()
    starts = np.array([[1e6, -1e6, 1e6, 3.0], [1e6, 1e6, -1e6, 1e6]])
    assert NO_SINK not in destinations(system, starts)


def test_shares_add_up_and_count_what_the_map_shows() -> None:
    found = basins(PhiNet(version="published", rho=0.0001), Box(), 21)
    assert sum(found.shares) + found.undecided / 441 == pytest.approx(1)
    collapsed = [number for number, sink in enumerate(found.sinks) if sink.collapsed]
    assert found.non_collapsed == pytest.approx(np.mean(~np.isin(found.labels, collapsed)))
    doubtful = replace(found, labels=np.full_like(found.labels, NO_SINK))
    assert (doubtful.non_collapsed, doubtful.undecided) == (0, 441)
    assert isinstance(doubtful, Basins)


def test_rows_are_gamma_and_columns_psi() -> None:
    box = Box(psi_min=0.2, psi_max=0.4, gamma_min=-0.5, gamma_max=0.5)
    found = basins(PhiNet(), box, 5)
    assert (found.psi[[0, -1]].tolist(), found.gamma[[0, -1]].tolist()) == ([0.2, 0.4], [-0.5, 0.5])
    one = destinations(PhiNet(), np.array([[found.psi[3]], [found.gamma[1]]]))
    assert found.labels[1, 3] == one[0]
    high = basins(PhiNet(), Box(psi_min=0.01, psi_max=0.5, gamma_min=0, gamma_max=2), 9)
    assert len(set(high.labels[0])) == 2  # small ψ collapses, large ψ does not
    assert high.labels[-1, 4] == 1


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"psi_min": 1.0}, "psi is from 1.0 to 0.5"),
        ({"gamma_min": 3.0}, "gamma is from 3.0 to 3.0"),
        ({"psi_max": float("nan")}, "psi_max is nan"),
        ({"gamma_max": 1e9}, "must be within"),
    ],
)
def test_boxes_that_make_no_sense_are_refused(bad: dict[str, float], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Box(**bad)


@pytest.mark.parametrize(
    ("system", "grid", "start", "says"),
    [
        (PhiNet(), 1, {}, "grid is 1"),
        (PhiNet(), 10**6, {}, "grid is 1000000"),
        (PhiNet(), 5, {"phi": 1.0}, "phi 1.0 does not apply"),
        (XPhiNet(), 5, {"psi": 1.0}, "psi 1.0 does not apply"),
        (PhiNetPhi(), 5, {"phi": -1.0}, "phi starts at -1.0"),
        (XPhiNet(), 5, {"slow": float("nan")}, "slow starts at nan"),
    ],
)
def test_maps_that_make_no_sense_are_refused(system: AnySystem, grid: int, start: dict[str, float], says: str) -> None:
    with pytest.raises(UserError, match=says):
        basins(system, Box(), grid, start)
