"""Every bifurcation, the sinks between them, and the lines of the diagram."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import fsolve

from phinets.config.errors import UserError
from phinets.dynamics.bifurcations import bifurcations, branches, regime, sink_map
from phinets.dynamics.equilibria import AnySystem, equilibria
from phinets.dynamics.systems import LEAST, Floats, PhiNet, PhiNetPhi, SimSiam, Version, XPhiNet
from tests.dynamics.dense_search import VERSIONS

WOBBLY = XPhiNet(version="published", kappa=0.01)
EVERY: list[AnySystem] = [
    SimSiam(tau=0.8),
    *(kind(version=version) for kind in (PhiNet, PhiNetPhi) for version in VERSIONS),
    XPhiNet(),
    WOBBLY,
]


def test_simsiam_s_is_a_quarter_of_one_over_the_variance_of_a_view() -> None:
    for sigma2 in (0.0, 0.3, 1.5, 5.0):
        (only,) = bifurcations(SimSiam(sigma2=sigma2)).points
        assert only.rho == pytest.approx(1 / (4 * (1 + sigma2)), rel=1e-15)
        assert only.at.psi == pytest.approx(1 / (2 * (1 + sigma2)), rel=1e-15)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sigma2", [0.0, 0.37, 1.5, 5.0])
def test_a_search_from_many_starts_finds_the_same_saddle_nodes_to_eight_digits(version: Version, sigma2: float) -> None:
    """The search: ψ̇ = γ̇ = det J = 0 in (ψ, γ, log ρ), by Newton steps from 300 random places."""
    random = np.random.default_rng(30)

    def equations(x: Floats) -> list[float]:
        system = PhiNet(sigma2=sigma2, rho=float(np.exp(np.clip(x[2], -40, 2))), version=version)
        rate, slope = system.flow(x[:2]), system.jacobian(x[:2])
        return [rate[0] / (x[0] * system.rho), rate[1] / system.rho, np.linalg.det(slope) / system.rho**2]

    found = set()
    with np.errstate(all="ignore"):
        for _ in range(300):
            start = [random.uniform(-0.5, 1) / (1 + sigma2), random.uniform(-3, 3), np.log(10) * random.uniform(-6, 0)]
            end, _, good, _ = fsolve(equations, start, full_output=True, xtol=1e-13)
            if good == 1 and np.max(np.abs(equations(end))) < 1e-7 and abs(end[0]) > 1e-6:
                found.add(float(f"{np.exp(end[2]):.8e}"))
    told = [each.rho for each in bifurcations(PhiNet(sigma2=sigma2, version=version)).points]
    searched = sorted((rho for rho in found if rho < 0.5), reverse=True)
    distinct = [rho for k, rho in enumerate(searched) if k == 0 or rho < searched[k - 1] * (1 - 1e-6)]
    np.testing.assert_allclose(told, distinct, rtol=2e-8)


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_each_rests_there_is_degenerate_and_lies_between_two_numbers_of_equilibria(system: AnySystem) -> None:
    for each in bifurcations(system).points:
        there = system.with_rho(each.rho)
        assert np.max(np.abs(there.flow(np.array(each.at.state)))) < 1e-15
        assert each.at.kind == "degenerate"
        near = 1e-9 if each.kind == "saddle-node" else 1e-5  # beside a Hopf bifurcation the rates grow but in step
        above, below = (equilibria(system.with_rho(each.rho * (1 + off))) for off in (near, -near))
        if each.kind == "saddle-node":
            assert len(below) == len(above) + 2
        else:
            assert len(below) == len(above)
            assert [one.kind for one in below] != [one.kind for one in above]


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_each_interval_has_its_number_of_sinks_everywhere(system: AnySystem) -> None:
    random = np.random.default_rng(31)
    whole = bifurcations(system, 1e-6, 0.5)
    for (high, low), sinks, word in zip(whole.intervals, whole.sinks, whole.regimes, strict=True):
        for share in random.uniform(size=6):
            found = equilibria(system.with_rho(float(high * (low / high) ** share)))
            assert sum(each.kind == "sink" for each in found) == sinks
            assert regime(found) == word


def test_a_slow_encoder_that_lags_has_hopf_bifurcations_in_the_published_flow_alone() -> None:
    (hopf,) = [each for each in bifurcations(WOBBLY).points if each.kind == "hopf"]
    _, one, other = hopf.at.eigenvalues
    assert abs(one.real) < 1e-12
    assert one == other.conjugate()
    assert abs(one.imag) > 1e-3
    for kappa in (1e-9, 1e-5, 1e-2, 10.0):
        for sigma2 in (0.0, 1.5, 5.0):
            corrected = XPhiNet(sigma2=sigma2, kappa=kappa)
            whole = bifurcations(corrected)
            assert {each.kind for each in whole.points} == {"saddle-node"}
            assert whole.sinks == (1, 2, 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_slow_encoder_of_any_rate_leaves_the_saddle_nodes(version: Version) -> None:
    plain = [each.rho for each in bifurcations(PhiNet(version=version)).points]
    for kappa in (1e-3, 1.0):
        whole = bifurcations(XPhiNet(version=version, kappa=kappa)).points
        assert [each.rho for each in whole if each.kind == "saddle-node"] == plain


@pytest.mark.parametrize("version", VERSIONS)
def test_at_every_equilibrium_the_trace_is_negative_so_no_cycle_is_born(version: Version) -> None:
    for sigma2, rho in ((0.0, 0.2), (1.5, 0.0001), (1.5, 0.03), (5.0, 1e-5)):
        system = PhiNet(sigma2=sigma2, rho=rho, version=version)
        for each in equilibria(system):
            if each.collapsed:
                continue
            psi, gamma = each.state
            expected = -system.s * (1 + gamma**2) * psi**2 - (system.s * psi**4 if version == "corrected" else 0)
            assert np.trace(system.jacobian(np.array(each.state))) == pytest.approx(expected, rel=1e-6, abs=1e-14)


def test_the_paper_s_words_follow_each_other_in_the_published_flow_and_break_off_in_the_corrected_one() -> None:
    assert bifurcations(PhiNet(version="published")).regimes == ("STRONG", "MEDIUM", "LIGHT", "WEAK")
    assert bifurcations(PhiNet(version="published")).sinks == (1, 2, 3, 4)
    assert bifurcations(PhiNet()).regimes == ("STRONG", "MEDIUM", None)
    assert bifurcations(SimSiam()).regimes == ("STRONG", "MEDIUM")


def test_a_range_shows_what_lies_in_it() -> None:
    whole = bifurcations(PhiNet(version="published"))
    middle = whole.points[1].rho
    part = bifurcations(PhiNet(version="published"), middle * 0.9, middle * 1.1)
    assert (part.points, part.sinks) == (whole.points[1:2], whole.sinks[1:3])
    assert part.intervals == ((middle * 1.1, middle), (middle, middle * 0.9))


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.1), (0.1, 0.1), (-0.1, 0.5), (0.0, np.inf), (np.nan, 0.5)])
def test_a_range_that_makes_no_sense_is_refused(low: float, high: float) -> None:
    with pytest.raises(UserError, match="range of rho"):
        bifurcations(PhiNet(), low, high)


@pytest.mark.parametrize("ends", [(1e-300, 0.5), (9e-13, 0.5), (1e-40, 1e-20), (0.0, 1e-20)])
def test_ranges_in_which_floats_can_t_tell_a_sink_are_refused(ends: tuple[float, float]) -> None:
    for system in (PhiNet(), PhiNetPhi(), SimSiam()):
        with pytest.raises(UserError, match="below 1e-12 floats can't tell a sink"):
            bifurcations(system, *ends)


@pytest.mark.parametrize("kind", [PhiNet, PhiNetPhi, XPhiNet])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_range_from_the_least_weight_decay_has_as_many_sinks_as_one_from_0(
    kind: type[PhiNet | PhiNetPhi | XPhiNet], version: Version
) -> None:
    system = kind(version=version)
    assert bifurcations(system, LEAST).sinks == bifurcations(system).sinks
    assert bifurcations(system, LEAST, 2 * LEAST).sinks == bifurcations(system).sinks[-1:]


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_branches_rest_everywhere_and_leave_no_gap(system: AnySystem) -> None:
    drawn = branches(system, 1e-4, 0.5, points=24)
    whole = bifurcations(system, 1e-4, 0.5)
    assert {(each.rho[0], each.rho[-1]) for each in drawn} == set(whole.intervals)
    for each in drawn:
        for k in (0, 7, 23):
            rate = system.with_rho(float(each.rho[k])).flow(each.states[:, k])
            assert np.max(np.abs(rate)) < 1e-9
        middle = equilibria(system.with_rho(float(each.rho[12])))
        (same,) = [one for one in middle if one.state == tuple(each.states[:, 12])]
        assert each.stable == (same.kind == "sink")
        assert np.max(np.abs(np.diff(each["psi"]))) < 0.15
    for event, ((high, _), (_, low)) in zip(whole.points, pairwise(whole.intervals), strict=True):
        before = [each.states[:, -1] for each in drawn if each.rho[0] == high]
        after = [each.states[:, 0] for each in drawn if each.rho[-1] == low]
        born = [state for state in after if np.array_equal(state, event.at.state)]
        assert len(born) == (2 if event.kind == "saddle-node" else 0)
        rest = [state for state in after if not np.array_equal(state, event.at.state)]
        np.testing.assert_allclose(np.array(rest), np.array(before), rtol=1e-6, atol=1e-9)


def test_branches_ask_for_a_positive_range_and_two_points() -> None:
    with pytest.raises(UserError, match="rho-min is 0"):
        branches(PhiNet(), 0.0)
    with pytest.raises(UserError, match="points is 1"):
        branches(PhiNet(), points=1)


@pytest.mark.parametrize("system", [PhiNet(version="published"), PhiNet(), SimSiam(), WOBBLY], ids=repr)
def test_the_map_of_sinks_counts_them(system: AnySystem) -> None:
    random = np.random.default_rng(32)
    rhos, sigma2s = (0.5 * 10 ** random.uniform(-5, 0, size=6)).tolist(), random.uniform(0, 5, size=3).tolist()
    counted = [
        [sum(each.kind == "sink" for each in equilibria(replace(system, sigma2=sigma2, rho=rho))) for rho in rhos]
        for sigma2 in sigma2s
    ]
    np.testing.assert_array_equal(sink_map(system, rhos, sigma2s), counted)
