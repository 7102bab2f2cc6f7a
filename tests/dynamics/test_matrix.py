"""The matrix flows: gradients of the expected loss, what becomes of them on aligned weights, and their exact laws."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from phinets.dynamics.matrix import (
    MatrixByol,
    MatrixFlow,
    MatrixSimSiam,
    MatrixSystem,
    MatrixXPhiNet,
    jacobian,
    pack,
    unpack,
)
from phinets.dynamics.matrix_trajectories import Start, align, eigenvalues, integrate, norms, random_start
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, SimSiam, Version, XPhiNet

VERSIONS: tuple[Version, ...] = ("published", "corrected")
SIGMA2, RHO = 0.7, 0.05
ODD = Start(dim=3, input_dim=5)
EVERY: list[MatrixSystem] = [
    MatrixFlow(sigma2=SIGMA2, rho=RHO, version="published"),
    MatrixFlow(sigma2=SIGMA2, rho=RHO),
    MatrixSimSiam(sigma2=SIGMA2, rho=RHO, tau=0.9),
    MatrixByol(sigma2=SIGMA2, rho=RHO, kappa=0.2),
    MatrixXPhiNet(sigma2=SIGMA2, rho=RHO, kappa=0.2),
    MatrixXPhiNet(sigma2=SIGMA2, rho=RHO, kappa=0.2, version="published"),
]
Targets = Callable[[dict[str, torch.Tensor]], tuple[torch.Tensor, torch.Tensor | None]]
WITHOUT_SLIP: list[tuple[MatrixSystem, Targets]] = [
    (MatrixFlow(sigma2=SIGMA2, rho=RHO), lambda w: (w["W_f"], w["W_f"])),
    (MatrixSimSiam(sigma2=SIGMA2, rho=RHO), lambda w: (w["W_f"], None)),
    (MatrixSimSiam(sigma2=SIGMA2, rho=RHO, tau=0.6), lambda w: (0.6 * w["W_f"], None)),
    (MatrixByol(sigma2=SIGMA2, rho=RHO), lambda w: (w["W_s"], None)),
    (MatrixXPhiNet(sigma2=SIGMA2, rho=RHO), lambda w: (w["W_f"], w["W_s"])),
]


def expected_loss(w: dict[str, torch.Tensor], first: torch.Tensor, second: torch.Tensor | None) -> torch.Tensor:
    """½E‖W_hW_f x₁ − T₁x₂‖² + ½E‖W_gW_hW_f x₁ − T₂x‖² by E x₁x₁ᵀ = E x₂x₂ᵀ = sI, E xxᵀ = E x₂x₁ᵀ = E xx₁ᵀ = I."""
    s = 1 + SIGMA2
    code = w["W_h"] @ w["W_f"]
    loss = s * (code**2).sum() - 2 * (code * first).sum() + s * (first**2).sum()
    if second is not None:
        back = w["W_g"] @ code
        loss = loss + s * (back**2).sum() - 2 * (back * second).sum() + (second**2).sum()
    return loss / 2


def downhill(system: MatrixSystem, weights: dict[str, Floats], targets: Targets) -> dict[str, Floats]:
    """−∇L − ρW by automatic differentiation; the targets are cut off from the graph."""
    w = {name: torch.tensor(matrix, requires_grad=True) for name, matrix in weights.items()}
    constant = tuple(None if t is None else t.detach() for t in targets(w))
    assert constant[0] is not None
    expected_loss(w, constant[0], constant[1]).backward()
    return {
        name: (-tensor.grad - RHO * tensor.detach()).numpy() for name, tensor in w.items() if tensor.grad is not None
    }


def drawn(system: MatrixSystem, seed: int = 0, start: Start = ODD) -> dict[str, Floats]:
    weights = random_start(system, start, seed)
    if "W_s" in weights:
        weights["W_s"] = np.random.default_rng(seed + 99).normal(size=weights["W_s"].shape)
    return weights


def aligned_weights(system: MatrixSystem, d: int, values: Floats) -> dict[str, Floats]:
    """Weights that share their bases: rows of `values` are a, γ, ψ, b, (4, m)."""
    a, gamma, psi, b = values
    m, random = len(a), np.random.default_rng(5)
    left = np.linalg.qr(random.normal(size=(m, m)))[0]
    right = np.linalg.qr(random.normal(size=(d, m)))[0]
    every = {
        "W_f": left @ np.diag(a) @ right.T,
        "W_g": left @ np.diag(gamma) @ left.T,
        "W_h": left @ np.diag(psi) @ left.T,
        "W_s": left @ np.diag(b) @ right.T,
    }
    return {name: every[name] for name in system.names}


@pytest.mark.parametrize(("system", "targets"), WITHOUT_SLIP, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_the_flow_is_the_expected_loss_s_gradient(system: MatrixSystem, targets: Targets, seed: int) -> None:
    weights = drawn(system, seed)
    rates = system.flow(weights)
    found = downhill(system, weights, targets)
    assert set(found) == set(system.names) - {"W_s"}
    for name, rate in found.items():
        np.testing.assert_allclose(rates[name], rate, rtol=0, atol=1e-10)


def test_the_published_flow_is_not_and_only_the_second_predictor_differs() -> None:
    system = MatrixFlow(sigma2=SIGMA2, rho=RHO, version="published")
    weights = drawn(system)
    rates, true = system.flow(weights), downhill(system, weights, lambda w: (w["W_f"], w["W_f"]))
    for name in ("W_f", "W_h"):
        np.testing.assert_allclose(rates[name], true[name], rtol=0, atol=1e-10)
    assert np.abs(rates["W_g"] - true["W_g"]).max() > 0.1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(3))
def test_at_symmetric_predictors_the_flow_is_the_paper_s_but_for_a_sign_in_h_s_equation(
    version: Version, seed: int
) -> None:
    """The appendix's equations of Φ, W_g, W_h under its first assumption, its Φ̇ labeled ode_matphi."""
    system = MatrixFlow(sigma2=SIGMA2, rho=RHO, version=version)
    weights = random_start(system, Start(dim=3, input_dim=5, symmetric=True), seed)
    F, G, H = weights["W_f"], weights["W_g"], weights["W_h"]
    s, one, Phi, Q = 1 + SIGMA2, np.eye(3), F @ F.T, np.eye(3) + G @ G
    K = H @ Q @ H
    rates = system.flow(weights)
    Phi_rate = -s * (K @ Phi + Phi @ K) + (H @ Phi + Phi @ H) + (H @ G @ Phi + Phi @ G @ H) - 2 * RHO * Phi
    np.testing.assert_allclose(rates["W_f"] @ F.T + F @ rates["W_f"].T, Phi_rate, rtol=0, atol=1e-12)
    printed_G = -(s * H - one) @ Phi @ H - RHO * G
    assert np.allclose(rates["W_g"], printed_G, rtol=0, atol=1e-12) == (version == "published")
    np.testing.assert_allclose(rates["W_h"], -(s * Q @ H - (one + G)) @ Phi - RHO * H, rtol=0, atol=1e-12)
    printed_H = -(s * Q @ H + (one + G)) @ Phi - RHO * H
    np.testing.assert_allclose(rates["W_h"] - printed_H, 2 * (one + G) @ Phi, rtol=0, atol=1e-12)


def test_the_expected_loss_is_the_mean_over_samples() -> None:
    random, n = np.random.default_rng(1), 400_000
    weights = drawn(EVERY[1])
    x = random.normal(size=(5, n))
    one, two = (x + np.sqrt(SIGMA2) * random.normal(size=x.shape) for _ in range(2))
    code = weights["W_h"] @ weights["W_f"] @ one
    errors = (code - weights["W_f"] @ two) ** 2, (weights["W_g"] @ code - weights["W_f"] @ x) ** 2
    each = sum(error.sum(axis=0) for error in errors) / 2
    w = {name: torch.tensor(matrix) for name, matrix in weights.items()}
    expected = expected_loss(w, w["W_f"], w["W_f"]).item()
    assert abs(each.mean() - expected) < 5 * each.std() / np.sqrt(n)


@pytest.mark.parametrize("version", VERSIONS)
def test_on_aligned_weights_each_direction_moves_by_the_reduced_equations(version: Version) -> None:
    system = MatrixFlow(sigma2=SIGMA2, rho=RHO, version=version)
    values = np.random.default_rng(2).normal(size=(4, 3))
    a, gamma, psi, _ = values
    weights = aligned_weights(system, 5, values)
    rates = system.flow(weights)
    gram_rate = rates["W_f"] @ weights["W_f"].T + weights["W_f"] @ rates["W_f"].T
    phi_rate, psi_rate, gamma_rate = PhiNetPhi(sigma2=SIGMA2, rho=RHO, version=version).flow(
        np.stack([a**2, psi, gamma])
    )
    basis = np.linalg.eigh(weights["W_h"])[1]
    order = np.argsort(psi)
    for rate, expected in ((gram_rate, phi_rate), (rates["W_h"], psi_rate), (rates["W_g"], gamma_rate)):
        np.testing.assert_allclose(basis.T @ rate @ basis, np.diag(expected[order]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_on_the_parabola_the_matrix_path_is_the_two_variable_path(version: Version) -> None:
    psi, gamma = np.array([0.5, 0.3, 0.12]), np.array([0.1, 0.4, -0.2])
    system = MatrixFlow(sigma2=1.5, rho=0.03, version=version)
    times = np.linspace(0, 60, 13)
    path = integrate(system, aligned_weights(system, 4, np.stack([psi, gamma, psi, psi])), times)
    reduced = PhiNet(sigma2=1.5, rho=0.03, version=version)
    found = solve_ivp(
        lambda _, y: reduced.flow(y.reshape(2, 3)).ravel(), (0, 60), np.concatenate([psi, gamma]), "DOP853", times,
        rtol=1e-11, atol=1e-13,
    ).y.reshape(2, 3, -1)  # fmt: skip
    for name, row in zip(("psi", "gamma"), found, strict=True):
        np.testing.assert_allclose(np.sort(eigenvalues(path)[name], axis=1), np.sort(row.T, axis=1), rtol=0, atol=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_x_phinet_s_reduced_path_is_its_matrix_path(version: Version) -> None:
    start = np.array([[0.5, 0.3, 0.12], [0.1, 0.4, -0.2], [0.3, 0.35, 0.2]])  # ψ, γ, slow
    setting: dict[str, Any] = {"sigma2": 1.5, "rho": 0.03, "kappa": 0.04, "version": version}
    system, reduced = MatrixXPhiNet(**setting), XPhiNet(**setting)
    times = np.linspace(0, 60, 13)
    path = integrate(system, aligned_weights(system, 4, start[[0, 1, 0, 2]]), times)
    found = solve_ivp(
        lambda _, y: reduced.flow(y.reshape(3, 3)).ravel(), (0, 60), start.ravel(), "DOP853", times,
        rtol=1e-11, atol=1e-13,
    ).y.reshape(3, 3, -1)  # fmt: skip
    slow = np.linalg.svd(path.weights["W_s"], compute_uv=False)
    for row, values in zip(found, (eigenvalues(path)["psi"], eigenvalues(path)["gamma"], slow), strict=True):
        np.testing.assert_allclose(np.sort(values, axis=1), np.sort(row.T, axis=1), rtol=0, atol=1e-7)


@pytest.mark.parametrize("tau", [1.0, 0.7])
def test_simsiam_with_a_target_of_constant_ratio_is_tian_s_equation(tau: float) -> None:
    psi = np.array([0.45, 0.2])
    system = MatrixSimSiam(sigma2=1.5, rho=0.03, tau=tau)
    times = np.linspace(0, 80, 9)
    path = integrate(system, aligned_weights(system, 3, np.stack([psi] * 4)), times)
    reduced = SimSiam(sigma2=1.5, rho=0.03, tau=tau)
    found = solve_ivp(lambda _, y: reduced.flow(y[None])[0], (0, 80), psi, "DOP853", times, rtol=1e-11, atol=1e-13).y
    np.testing.assert_allclose(eigenvalues(path)["psi"], -np.sort(-found.T, axis=1), rtol=0, atol=1e-7)


def test_a_true_slow_target_s_ratio_moves_by_tian_s_equation_and_ends_at_one() -> None:
    s, rho, kappa = 2.5, 0.03, 0.05

    def tian(_: float, state: Floats) -> Floats:  # Tian et al. 2021, eqs. 11 to 13, of (s_j, p_j, τ)
        phi, psi, tau = state
        phi_rate = 2 * psi * phi * (tau - s * psi) - 2 * rho * phi
        return np.array([phi_rate, phi * (tau - s * psi) - rho * psi, kappa * (1 - tau) - tau * phi_rate / (2 * phi)])

    system = MatrixByol(sigma2=s - 1, rho=rho, kappa=kappa)
    a, b, psi, times = 0.25, 0.15, 0.3, np.linspace(0, 1500, 301)
    start = {"W_f": np.array([[a]]), "W_h": np.array([[psi]]), "W_s": np.array([[b]])}
    path = integrate(system, start, times)
    ratio = path.weights["W_s"][:, 0, 0] / path.weights["W_f"][:, 0, 0]
    found = solve_ivp(tian, (0, 1500), [a**2, psi, b / a], "DOP853", times, rtol=1e-11, atol=1e-13).y
    np.testing.assert_allclose(ratio, found[2], rtol=0, atol=1e-6)
    np.testing.assert_allclose(path.weights["W_h"][:, 0, 0], found[1], rtol=0, atol=1e-7)
    assert abs(ratio[10] - 1) > 0.01
    assert ratio[-1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_the_balance_of_encoder_and_predictor_decays_by_exactly_twice_the_weight_decay(system: MatrixSystem) -> None:
    times = np.linspace(0, 40, 21)
    path = integrate(system, drawn(system, start=Start(dim=3, input_dim=5, scale=0.8)), times)
    f, h = path.weights["W_f"], path.weights["W_h"]
    balance = np.swapaxes(h, 1, 2) @ h - f @ np.swapaxes(f, 1, 2)
    expected = balance[0] * np.exp(-2 * RHO * times)[:, None, None]
    np.testing.assert_allclose(balance, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(norms(path)["balance"], np.linalg.norm(expected, axis=(1, 2)), rtol=0, atol=1e-8)


def test_for_predictors_that_are_not_symmetric_the_paper_s_parabola_is_no_such_law() -> None:
    system = MatrixFlow(sigma2=1.5, rho=0.03, version="corrected")
    times = np.linspace(0, 40, 41)
    distance = norms(integrate(system, random_start(system, ODD, 3), times))["parabola"]
    assert np.abs(distance / distance[0] - np.exp(-2 * 0.03 * times)).max() > 0.01


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_rotated_weights_flow_as_the_rotation_of_the_flow(system: MatrixSystem) -> None:
    random = np.random.default_rng(4)
    P, Q = (np.linalg.qr(random.normal(size=(n, n)))[0] for n in (3, 5))
    weights = drawn(system)

    def turned(matrices: dict[str, Floats]) -> dict[str, Floats]:
        return {n: P @ w @ (P.T if n in ("W_g", "W_h") else Q.T) for n, w in matrices.items()}

    expected = turned(system.flow(weights))
    for name, rate in system.flow(turned(weights)).items():
        np.testing.assert_allclose(rate, expected[name], rtol=0, atol=1e-12)


def test_a_slow_encoder_that_is_the_fast_one_makes_x_phinet_phinet_and_byol_simsiam() -> None:
    for slow, plain in ((EVERY[4], EVERY[1]), (EVERY[3], MatrixSimSiam(sigma2=SIGMA2, rho=RHO))):
        weights = random_start(slow, ODD, 0)
        rates = slow.flow(weights)
        assert not rates["W_s"].any()
        for name, rate in plain.flow(weights).items():
            np.testing.assert_allclose(rates[name], rate, rtol=0, atol=1e-14)


@pytest.mark.parametrize("system", EVERY, ids=repr)
def test_the_jacobian_is_the_flow_s_derivative(system: MatrixSystem) -> None:
    weights = drawn(system)
    found, random = jacobian(system, weights), np.random.default_rng(6)
    point = pack(system, weights)
    along = random.normal(size=len(point)) * 1e-5

    def rate(at: Floats) -> Floats:
        return pack(system, system.flow(unpack(system, at, weights)))

    np.testing.assert_allclose(found @ along, (rate(point + along) - rate(point - along)) / 2, rtol=0, atol=1e-12)


def test_the_aligned_start_is_diagonal_and_stays_so_and_is_the_start_itself_where_that_is_aligned() -> None:
    system = MatrixXPhiNet(sigma2=1.5, rho=0.03)
    path = integrate(system, align(drawn(system)), np.linspace(0, 20, 5))
    for matrices in path.weights.values():
        assert matrices.shape[1:] == (3, 3)
        assert not (matrices * (1 - np.eye(3))).any()
    values = np.array([[0.9, 0.5, 0.2], [0.3, -0.4, 0.6], [0.8, 0.1, -0.7], [0.6, 0.4, 0.5]])
    found = align(aligned_weights(system, 5, values))
    for name, row in zip(("W_f", "W_g", "W_h", "W_s"), values, strict=True):
        np.testing.assert_allclose(found[name], np.diag(row), rtol=0, atol=1e-12)


def test_narrow_inputs_leave_directions_without_encoder() -> None:
    system = MatrixXPhiNet(sigma2=1.5, rho=0.03)
    start = drawn(system, start=Start(dim=4, input_dim=2))
    found = align(start)
    assert np.count_nonzero(np.diag(found["W_f"])) == 2
    path = integrate(system, start, np.array([0.0, 200.0]))
    assert np.abs(eigenvalues(path)["phi"][:, 2:]).max() < 1e-9
