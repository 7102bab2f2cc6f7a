"""The paper's statements: the laws that the verdicts rest on, and that each verdict follows its numbers."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from phinets.config.errors import UserError
from phinets.dynamics.basins import destinations, sinks_of
from phinets.dynamics.claims import CLAIMS, ClaimCheck, check_paper
from phinets.dynamics.claims import matrix_flow as matrices
from phinets.dynamics.claims.eigenvalue_flow import (
    REGIMES,
    _ends_on_side,
    _simsiam_escapes,
    dulac,
    escaping_phi,
    lowest_saddle,
)
from phinets.dynamics.claims.matrix_flow import asymmetry_growth, pair_growth
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.matrix import MatrixFlow, MatrixSimSiam, MatrixSystem
from phinets.dynamics.matrix_trajectories import integrate, norms
from phinets.dynamics.phase_plane import (
    EscapeWindows,
    border_crossing,
    escape_windows,
    smallest_escaping_psi,
    stable_border,
)
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, SimSiam, Version

VERSIONS: tuple[Version, ...] = ("published", "corrected")
GAMMAS = (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 5.0)
LONG = ("alignment", "symmetry", "c2-off-parabola")
QUICK = [name for name in CLAIMS if name not in LONG]


@pytest.fixture(scope="module")
def findings() -> dict[str, ClaimCheck]:
    return check_paper(1.5, QUICK)


def test_every_check_has_words_numbers_and_two_verdicts(findings: dict[str, ClaimCheck]) -> None:
    for name, check in findings.items():
        plain = check.plain()
        assert json.loads(json.dumps(plain, allow_nan=False)) is not None, name
        for field in ("statement", "where", "numbers"):
            assert plain[field], (name, field)
        assert not plain["statement"].endswith("."), name
        for side in VERSIONS:
            assert isinstance(plain[side]["holds"], bool), name
            assert plain[side]["why"], name


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_every_long_finding_has_them_too(name: str) -> None:
    (finding,) = check_paper(1.5, [name]).values()
    json.dumps(finding.plain(), allow_nan=False)
    assert finding.numbers


@pytest.mark.parametrize("sigma2", [0.0, 0.4, 3.0])
def test_regimes_are_judged_by_the_sinks_there_are(sigma2: float) -> None:
    for told in REGIMES:
        finding = CLAIMS[told.name.lower()](sigma2)
        for version in VERSIONS:
            found = [
                each for each in equilibria(PhiNet(version=version, sigma2=sigma2, rho=told.rho)) if each.kind == "sink"
            ]
            assert [row["psi"] for row in finding.numbers[version]["sinks"]] == [each.psi for each in found]
            if len(found) != told.sinks:
                assert not finding.verdicts[version].holds


def test_only_the_corrected_flow_is_the_gradient(findings: dict[str, ClaimCheck]) -> None:
    found = findings["gradient"]
    assert found.corrected.holds
    assert not found.published.holds
    off = found.numbers["published"]
    assert max(off["W_f"], off["W_h"]) < 1e-12 < off["W_g"]


@pytest.mark.parametrize("version", VERSIONS)
def test_dulac_s_divergence_is_negative_everywhere_whatever_the_setting(version: Version) -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        sigma2, rho = random.uniform(0, 5), random.uniform(1e-4, 0.5)
        psi, gamma = random.normal(size=(2, 100)) * 2
        s = 1 + sigma2
        expected = -s * (1 + gamma**2 + (psi**2 if version == "corrected" else 0))
        found = dulac(PhiNet(version=version, sigma2=sigma2, rho=rho), np.stack([psi, gamma]))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5 / np.abs(psi).min())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rho", [0.08, 0.03, 0.003])
def test_starts_on_one_side_of_the_border_escape_and_on_the_other_collapse(version: Version, rho: float) -> None:
    system = PhiNet(version=version, sigma2=1.5, rho=rho)
    saddle = lowest_saddle(system, 1)
    assert saddle is not None
    psi = np.array(smallest_escaping_psi(system, saddle, GAMMAS))
    assert np.isfinite(psi).all()
    positive = [k for k, sink in enumerate(sinks_of(system)) if sink.psi > 0]
    for share, escapes in ((0.9995, False), (1.0005, True)):
        ends = destinations(system, np.stack([share * psi, np.array(GAMMAS)]))
        assert (np.isin(ends, positive) == escapes).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_for_small_weight_decay_the_border_is_rho_over_one_plus_half_of_gamma(version: Version) -> None:
    errors = []
    for rho in (1e-3, 1e-4):
        system = PhiNet(version=version, sigma2=1.5, rho=rho)
        saddle = lowest_saddle(system, 1)
        assert saddle is not None
        found = np.array(smallest_escaping_psi(system, saddle, GAMMAS))
        errors.append(np.abs(found * (1 + np.array(GAMMAS) / 2) / rho - 1).max())
    assert errors[1] < 1e-3
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("gamma", [-2.0, -2.5, -4.0])
def test_from_gamma_of_minus_two_or_less_nothing_of_the_order_of_rho_escapes(version: Version, gamma: float) -> None:
    system = PhiNet(version=version, sigma2=1.5, rho=1e-4)
    psi = np.geomspace(1e-5, 1e-2, 40)
    assert [sinks_of(system)[k].psi for k in destinations(system, np.stack([psi, np.full_like(psi, gamma)]))] == [
        0
    ] * 40


def test_the_star_is_told_from_phinet_s_border_also_where_simsiam_has_no_source() -> None:
    found = CLAIMS["c1-star"](2.2)
    assert len(equilibria(SimSiam(sigma2=2.2, rho=0.08))) == 1
    for version in VERSIONS:
        system = PhiNet(version=version, sigma2=2.2, rho=0.08)
        psi = found.numbers[version]["smallest_psi"] * np.array([0.999, 1.001])
        assert destinations(system, np.stack([psi, [0.5, 0.5]])).tolist() == [0, 1]
        assert found.numbers[version]["simsiam_source"] is None
    assert CLAIMS["c1-star"](3.0).numbers["corrected"]["smallest_psi"] is None


def escape_by_scipy(version: Version, rho: float, psi: Floats, gamma: Floats, sigma2: float = 1.5) -> list[bool]:
    """Which starts end above half of the lowest ψ that a sink with ψ > 0 has; the equations are written out again."""
    s, n = 1 + sigma2, len(psi)

    def rate(time: float, state: Floats) -> Floats:
        p, g = state[:n], state[n:]
        factor = 1 - s * p * (g if version == "corrected" else 1)
        return np.concatenate([((1 + g) - s * (1 + g**2) * p) * p**2 - rho * p, factor * p**3 - rho * g])

    end = solve_ivp(rate, (0, 40 / rho), np.concatenate([psi, gamma]), "DOP853", rtol=1e-9, atol=1e-12).y[:n, -1]
    lowest = min(sink.psi for sink in sinks_of(PhiNet(version=version, sigma2=sigma2, rho=rho)) if sink.psi > 0)
    return [bool(each > lowest / 2) for each in end]


def windows(version: Version, rho: float, psis: list[float], sigma2: float = 1.5) -> EscapeWindows:
    system = PhiNet(version=version, sigma2=sigma2, rho=rho)
    saddle = lowest_saddle(system, 1)
    assert saddle is not None
    return escape_windows(system, saddle, psis)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("rho", "bounded"), [(0.107, True), (0.08, True), (0.03, False)])
def test_on_both_sides_of_each_end_of_a_window_scipy_agrees(version: Version, rho: float, bounded: bool) -> None:
    psis = [0.2, rho, rho / 2]
    for psi, window in zip(psis, windows(version, rho, psis).windows, strict=True):
        assert window is not None
        low, high = window
        assert (high is not None) == bounded
        step = 2e-3 * max(abs(low), 0.1)
        assert escape_by_scipy(version, rho, np.full(2, psi), np.array([low - step, low + step])) == [False, True]
        if high is not None:
            gamma = high * np.array([0.998, 1.002])
            assert escape_by_scipy(version, rho, np.full(2, psi), gamma) == [True, False]


@pytest.mark.parametrize("version", VERSIONS)
def test_below_the_smallest_psi_no_gamma_escapes_and_above_it_some_does(version: Version) -> None:
    rho, gamma = 0.08, np.geomspace(0.1, 100, 150)
    smallest = windows(version, rho, [rho]).smallest_psi
    assert not any(escape_by_scipy(version, rho, np.full_like(gamma, 0.998 * smallest), gamma))
    assert any(escape_by_scipy(version, rho, np.full_like(gamma, 1.002 * smallest), gamma))
    below, above = windows(version, rho, [0.998 * smallest, 1.002 * smallest]).windows
    assert below is None
    assert above is not None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sigma2", [0.0, 1.5, 4.0])
def test_large_gammas_escape_for_weight_decays_below_an_eighth_of_one_over_s_only(
    version: Version, sigma2: float
) -> None:
    limit = 1 / (8 * (1 + sigma2))
    for share, unbounded in ((0.98, True), (1.1, False)):
        found = windows(version, share * limit, [limit], sigma2)
        assert (found.smallest_psi == 0) == unbounded
        assert found.windows[0] is not None
        assert (found.windows[0][1] is None) == unbounded
        ends = destinations(PhiNet(version=version, sigma2=sigma2, rho=share * limit), np.array([[limit], [1e5]]))
        assert (ends[0] > 0) == unbounded


def test_c1_holds_only_where_no_weight_decay_has_a_window(findings: dict[str, ClaimCheck]) -> None:
    """At σ² = 0 every weight decay that is tried is below 1/8s."""
    for sigma2, found in ((0.0, CLAIMS["c1"](0.0)), (1.5, findings["c1"])):
        for version in VERSIONS:
            rows = found.numbers[version]
            assert [row["smallest_psi"] > 0 for row in rows] == [row["rho"] > 1 / (8 + 8 * sigma2) for row in rows]
            assert found.verdicts[version].holds == (sigma2 == 0)
    assert not CLAIMS["c1"](3.0).corrected.holds  # PhiNet always collapses at one of them


def test_the_share_of_starts_that_learn_is_that_of_a_grid_followed_by_scipy(findings: dict[str, ClaimCheck]) -> None:
    grid = (np.arange(40) + 0.5) / 40
    psi, gamma = (each.ravel() for each in np.meshgrid(0.8 * grid - 0.2, 3 * grid - 1.5))
    simsiam = (0.6 - (1 - np.sqrt(1 - 4 * 2.5 * 0.08)) / 5) / 0.8
    for version in VERSIONS:
        numbers = findings["c1-basin"].numbers[version]
        phinet = np.array(escape_by_scipy(version, 0.08, psi, gamma))
        assert phinet.mean() == pytest.approx(numbers["phinet"], abs=0.01)
        assert phinet[gamma > 0].mean() == pytest.approx(numbers["phinet_gamma_above_0"], abs=0.01)
        assert simsiam == pytest.approx(numbers["simsiam"], abs=0.005)
        assert findings["c1-basin"].verdicts[version].holds == (phinet.mean() > simsiam)


def test_simsiam_s_markers_are_phinet_s(findings: dict[str, ClaimCheck]) -> None:
    """SimSiam's are the roots of sψ² − ψ + ρ; PhiNet's as published those of ψ̇ along γ = ψ³(1 − sψ)/ρ."""
    s, rho = 2.5, 0.08

    def slope(psi: float) -> float:
        gamma = psi**3 * (1 - s * psi) / rho
        return ((1 + gamma) - s * (1 + gamma**2) * psi) * psi - rho

    simsiam = dict(zip("▲●", sorted(np.roots([s, -1, rho])), strict=True))
    phinet = {"▲": brentq(slope, 0.05, 0.2), "●": brentq(slope, 0.2, 0.39)}
    rows = findings["markers"].numbers["published"]
    for mark in "▲●":
        drawn, place = (rows[f"Fig. comparison, SimSiam {mark}"][name][0] for name in ("drawn", "is"))
        assert place == pytest.approx(simsiam[mark], abs=1e-12)
        assert rows[f"Fig. comparison, PhiNet {mark}"]["is"][0] == pytest.approx(phinet[mark], abs=1e-9)
        assert abs(drawn - phinet[mark]) < 0.005 < abs(drawn - place)
    border, alone = (rows[f"Fig. simsiam{name}"]["is"][0] for name in (", border of the basin", " ●"))
    assert [border, alone] == pytest.approx(sorted(np.roots([1.5, -1, 0.8 / 6])))


def test_in_simsiam_s_flow_of_psi_negative_starts_collapse_as_scipy_says(findings: dict[str, ClaimCheck]) -> None:
    rho, psi = 0.03, np.array([-3.0, -0.4, -0.01])
    end = solve_ivp(lambda _, x: (1 - 2.5 * x) * x**2 - rho * x, (0, 20 / rho), psi, rtol=1e-9, atol=1e-15).y[:, -1]
    assert (np.abs(end) < 1e-6).all()
    numbers = findings["c2-simsiam"].numbers["published"]
    assert findings["c2-simsiam"].published.holds
    assert numbers["collapsed"] == numbers["starts"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_negative_border_parts_collapse_from_the_negative_sink(version: Version) -> None:
    system = PhiNet(version=version, sigma2=1.5, rho=0.0001)
    saddle = lowest_saddle(system, -1)
    assert saddle is not None
    lower, upper = stable_border(system, saddle, gamma_max=12.0)
    psi = np.array([-0.4, -0.1, -0.02])
    gamma = np.array([border_crossing(upper if each < saddle.psi else lower, 0, each) for each in psi])
    found = [sinks_of(system)[k].psi for k in destinations(system, np.stack([psi, gamma - 0.01]))]
    assert max(found) < 0
    assert [sinks_of(system)[k].psi for k in destinations(system, np.stack([psi, gamma + 0.01]))] == [0, 0, 0]


def test_a_crossing_is_exact_on_a_cubic_and_nan_where_there_is_none() -> None:
    x = np.linspace(-1, 1, 50)
    arm: Floats = np.stack([x**3 - x + 2, x])
    assert border_crossing(arm, 1, 0.3141) == pytest.approx(0.3141**3 - 0.3141 + 2, abs=1e-12)
    assert np.isnan(border_crossing(arm, 1, 1.5))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rho", [0.12, 0.03, 0.003, 0.0001])
def test_antisymmetric_parts_at_a_sink_move_by_two_equations(version: Version, rho: float) -> None:
    """δḣ = −{s(1+γ²)ψ² + ρ}δh − ψ²δg with δġ = −{sψ⁴ + ρ}δg − ψ²δh (corrected) or −ρδg − ψ²δh (published)."""
    s = 2.5
    for row in asymmetry_growth(version, 1.5, rho):
        psi, gamma = row["psi"], row["gamma"]
        own = (s * psi**4 if version == "corrected" else 0) + rho
        matrix = -np.array([[own, psi**2], [psi**2, s * (1 + gamma**2) * psi**2 + rho]])
        assert row["rate"] == pytest.approx(np.linalg.eigvalsh(matrix).max(), rel=1e-6, abs=1e-12)
        determinant = psi**4 / gamma if version == "corrected" else psi * ((1 + gamma) * rho - psi**3)
        assert np.linalg.det(matrix) == pytest.approx(determinant, rel=1e-6)
        assert (row["rate"] < 0) == (determinant > 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_small_antisymmetric_part_grows_or_decays_at_the_rate_told(version: Version) -> None:
    rho = 0.03
    (row,) = asymmetry_growth(version, 1.5, rho)
    system = MatrixFlow(version=version, sigma2=1.5, rho=rho)
    turn = 1e-5 * np.array([[0.0, 1.0], [-1.0, 0.0]])
    start = {"W_f": abs(row["psi"]) * np.eye(2), "W_g": row["gamma"] * np.eye(2) + turn, "W_h": row["psi"] * np.eye(2)}
    times = np.linspace(0, 120, 7)
    size = norms(integrate(system, start, times))["asymmetry_g"]
    rate = np.log(size[-1] / size[-2]) / (times[-1] - times[-2])
    assert rate == pytest.approx(row["rate"], rel=0.02)


def test_a_rate_that_is_too_fast_to_fit_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "FLOOR", 1e9)
    row = matrices._alignment("corrected", 1.5, 0.12)
    assert row["late_rate_over_rho"] is None
    json.dumps(row, allow_nan=False)


def test_what_the_paper_leaves_open_says_so(findings: dict[str, ClaimCheck]) -> None:
    for finding in findings.values():
        assert finding.in_paper == ("not in the paper" not in finding.statement)
    own = {name for name, finding in findings.items() if not finding.in_paper}
    assert own == {"same-threshold", "c2-sink-off-parabola", "cycles"}


def test_three_rho_plus_k_is_judged_as_the_paper_says_it(findings: dict[str, ClaimCheck]) -> None:
    for version in VERSIONS:
        assert findings["positive-definite"].verdicts[version].holds
        assert min(findings["positive-definite"].numbers[version]["smallest"]["1"]) < -3 * 0.03


def test_a_pair_at_one_sink_is_as_repelling_as_its_antisymmetric_part() -> None:
    (growth,) = asymmetry_growth("published", 1.5, 0.03)
    pair = pair_growth("published", 1.5, 0.03)[-1]
    assert pair["psi"] == [growth["psi"], growth["psi"]]
    assert pair["rate"] == pytest.approx(growth["rate"], rel=1e-6)
    assert len(pair_growth("published", 1.5, 0.003)) == 6  # three sinks make six pairs


def test_what_escapes_is_found_from_its_first_to_its_last_phi() -> None:
    low, high = escaping_phi(-0.1, lambda phi: phi > 0.5) or (0, 0)
    assert low == pytest.approx(0.5, rel=0.02)
    assert high is None
    low, high = escaping_phi(-0.1, lambda phi: (phi > 0.5) & (phi < 7)) or (0, None)
    assert low == pytest.approx(0.5, rel=0.02)
    assert high == pytest.approx(7, rel=0.02)
    assert escaping_phi(-0.1, lambda phi: phi > 1e9) is None


def ends_positive(system: MatrixSystem, phi: float, psi: float, gamma: float) -> bool:
    """One direction of the matrix flow, m = d = 1."""
    values = {"W_f": np.sqrt(phi), "W_g": gamma, "W_h": psi}
    start = {name: np.array([[float(values[name])]]) for name in system.names}
    return bool(integrate(system, start, np.array([0.0, 600.0])).weights["W_h"][-1, 0, 0] > 0.1)


def test_off_the_parabola_the_matrix_flow_escapes_where_the_claim_says() -> None:
    phi = np.array([0.0102, 0.014, 0.02, 0.5])
    simple = MatrixSimSiam(sigma2=1.5, rho=0.03)
    expected = [ends_positive(simple, each, -0.1, 0.0) for each in phi]
    assert _simsiam_escapes(1.5, 0.03, -0.1, phi).tolist() == expected
    assert set(expected) == {True, False}
    for version in VERSIONS:
        whole = MatrixFlow(version=version, sigma2=1.5, rho=0.03)
        found = _ends_on_side(1, PhiNetPhi(version=version, sigma2=1.5, rho=0.03), -0.1, 0.2, phi)
        assert found.tolist() == [ends_positive(whole, each, -0.1, 0.2) for each in phi]


def test_on_the_parabola_no_negative_start_escapes() -> None:
    assert not _simsiam_escapes(1.5, 0.03, -0.3, np.array([0.09])).any()


def test_a_higher_threshold_leaves_room_where_only_phinet_survives(findings: dict[str, ClaimCheck]) -> None:
    for version in VERSIONS:
        numbers = findings["same-threshold"].numbers[version]
        rho = (numbers["phinet"] + numbers["simsiam"]) / 2
        assert len(equilibria(SimSiam(sigma2=1.5, rho=rho))) == 1
        assert any(not each.collapsed for each in sinks_of(PhiNet(version=version, sigma2=1.5, rho=rho)))


def test_some_statements_can_be_asked_for_and_unknown_ones_are_offered_the_nearest() -> None:
    assert list(check_paper(1.5, ["thresholds", "c2"])) == ["thresholds", "c2"]
    with pytest.raises(UserError, match="Did you mean 'symmetry'"):
        check_paper(1.5, ["symetry"])


@pytest.mark.parametrize("sigma2", [0.0, 5.0])
def test_every_quick_claim_answers_at_other_strengths_of_augmentation(sigma2: float) -> None:
    for check in check_paper(sigma2, QUICK).values():
        json.dumps(check.plain(), allow_nan=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_where_the_negative_sink_draws_from_off_the_parabola_is_where_scipy_says(version: Version) -> None:
    """Two starts a side of the border, well away from it, followed in ln φ."""
    drawn = CLAIMS["c2-sink-off-parabola"](1.5).numbers[version]["attracted_phi"]["-2"]
    assert 1e-4 < min(drawn) < 0.01 < max(drawn) == 1.0
    system = PhiNetPhi(version=version, sigma2=1.5, rho=1e-4)

    def rate(time: float, state: Floats) -> Floats:
        phi = np.exp(state[0])
        moved = system.flow(np.array([phi, state[1], state[2]]))
        return np.array([2 * state[1] * (1 + state[2] - system.s * (1 + state[2] ** 2) * state[1]) - 2e-4, *moved[1:]])

    for phi, ends in ((min(drawn) / 2, False), (min(drawn) * 2, True)):
        start = [np.log(phi), -0.1, -2.0]
        psi = solve_ivp(rate, (0, 2e5), start, "LSODA", rtol=1e-9, atol=1e-12).y[1, -1]
        assert (psi < -0.05) == ends
