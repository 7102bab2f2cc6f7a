"""The paper's statements: the laws that the verdicts rest on, and that each verdict follows its numbers."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from phinets.config.errors import UserError
from phinets.dynamics.basins import destinations, sinks_of
from phinets.dynamics.claims import CLAIMS, ClaimCheck, check_paper
from phinets.dynamics.claims import matrix_flow as matrices
from phinets.dynamics.claims.eigenvalue_flow import (
    GAMMAS,
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
from phinets.dynamics.phase_plane import border_crossing, smallest_escaping_psi, stable_border
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, SimSiam, Version

VERSIONS: tuple[Version, ...] = ("published", "corrected")
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
    assert "γ(0) > −2" in CLAIMS["c1"](1.5).needs


def test_c1_is_told_from_phinet_s_border_also_where_simsiam_has_no_source() -> None:
    found = CLAIMS["c1"](2.2)
    assert len(equilibria(SimSiam(sigma2=2.2, rho=0.08))) == 1
    for version in VERSIONS:
        system = PhiNet(version=version, sigma2=2.2, rho=0.08)
        (star,) = (row for row in found.numbers[version] if row["rho"] == 0.08)
        pairs = zip(star["smallest_psi"], star["gamma"], strict=True)
        psi, gamma = np.array([pair for pair in pairs if pair[0] is not None]).T
        assert 0.5 in gamma
        for share, ends in ((0.999, 0), (1.001, 1)):
            assert (destinations(system, np.stack([share * psi, gamma])) == ends).all()
        assert star["simsiam_source"] is None
        assert "SimSiam has no source" in found.verdicts[version].why
    assert "PhiNet always collapses" in CLAIMS["c1"](3.0).corrected.why


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
    assert sum(not finding.in_paper for finding in findings.values()) == 2


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
