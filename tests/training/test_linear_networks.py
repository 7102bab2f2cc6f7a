"""Linear networks under SGD: their path nears the flow of their own loss, and of no other."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.dynamics.matrix import MatrixByol, MatrixFlow, MatrixSimSiam, MatrixSystem, MatrixXPhiNet
from phinets.dynamics.matrix_trajectories import Start, Trajectory, integrate, random_start
from phinets.training.linear_networks import Plan, deviations, expected_loss, order, sampled_loss, sgd_trajectories

EVERY: list[MatrixSystem] = [
    MatrixFlow(sigma2=0.7, rho=0.05),
    MatrixSimSiam(sigma2=0.7, rho=0.05, tau=0.8),
    MatrixByol(sigma2=0.7, rho=0.05, kappa=0.2),
    MatrixXPhiNet(sigma2=0.7, rho=0.05, kappa=0.2),
]
SMALL = Start(dim=2, input_dim=3, scale=0.8)
TIME = 4.0


def at_rates(system: MatrixSystem, rates: list[float], **more: Any) -> list[float]:
    """The largest distance of SGD's weights from the flow, at each learning rate; the mean over runs."""
    start = random_start(system, SMALL, 1)
    found = []
    for rate in rates:
        paths = sgd_trajectories(system, start, Plan(rate=rate, steps=round(TIME / rate), **more))
        flow = integrate(system, start, paths[0].times)
        found.append(float(np.mean([deviations(path, flow)["weights"] for path in paths])))
    return found


@pytest.mark.parametrize("system", EVERY, ids=lambda system: type(system).__name__)
def test_with_the_expected_loss_the_distance_from_the_flow_halves_with_the_learning_rate(system: MatrixSystem) -> None:
    rates = [0.04, 0.02, 0.01]
    found = at_rates(system, rates)
    assert found[0] < 0.1
    assert order(rates, found) == pytest.approx(1, abs=0.1)


def test_the_published_flow_is_not_what_training_follows() -> None:
    system = EVERY[0]
    start = random_start(system, SMALL, 1)
    (path,) = sgd_trajectories(system, start, Plan(rate=0.01, steps=400))
    near, far = (
        deviations(path, integrate(MatrixFlow(sigma2=0.7, rho=0.05, version=version), start, path.times))["weights"]
        for version in ("corrected", "published")
    )
    assert far > 10 * near


def test_the_noise_of_samples_falls_with_the_root_of_the_batch() -> None:
    few, many = (at_rates(EVERY[0], [0.02], batch=batch, runs=40)[0] for batch in (2, 32))
    assert few / many == pytest.approx(4, rel=0.3)


def test_the_noise_of_samples_falls_with_the_root_of_the_learning_rate() -> None:
    rates = [0.04, 0.01]
    found = at_rates(EVERY[0], rates, batch=2, runs=40)
    assert order(rates, found) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("system", EVERY, ids=lambda system: type(system).__name__)
def test_the_gradient_over_many_samples_is_the_expected_one(system: MatrixSystem) -> None:
    start = random_start(system, SMALL, 2)

    def gradient(sampled: bool) -> np.ndarray[Any, Any]:
        w = {name: torch.tensor(matrix)[None].requires_grad_(name != "W_s") for name, matrix in start.items()}
        random = torch.Generator().manual_seed(0)
        loss = sampled_loss(system, w, 200_000, random) if sampled else expected_loss(system, w)
        loss.backward()
        return np.concatenate([tensor.grad.numpy().ravel() for tensor in w.values() if tensor.grad is not None])

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=0, atol=0.03)


def test_one_step_is_one_euler_step_of_the_flow() -> None:
    for system in EVERY[:2]:
        start = random_start(system, SMALL, 3)
        (path,) = sgd_trajectories(system, start, Plan(rate=0.01, steps=1))
        for name, rate in system.flow(start).items():
            np.testing.assert_allclose(path.weights[name][1], start[name] + 0.01 * rate, rtol=0, atol=1e-12)


def test_the_slow_encoder_follows_after_the_step() -> None:
    system = MatrixXPhiNet(sigma2=0.7, rho=0.05, kappa=0.2)
    start = random_start(system, SMALL, 3)
    (path,) = sgd_trajectories(system, start, Plan(rate=0.01, steps=1))
    moved = start["W_s"] + 0.01 * 0.2 * (path.weights["W_f"][1] - start["W_s"])
    np.testing.assert_allclose(path.weights["W_s"][1], moved, rtol=0, atol=1e-15)


def test_the_same_seed_gives_the_same_runs_and_each_run_has_samples_of_its_own() -> None:
    system, plan = EVERY[0], Plan(rate=0.02, steps=20, batch=4, runs=2)
    start = random_start(system, SMALL, 0)
    one, two = sgd_trajectories(system, start, plan), sgd_trajectories(system, start, plan)
    np.testing.assert_array_equal(one[0].weights["W_f"], two[0].weights["W_f"])
    assert np.abs(one[0].weights["W_f"][-1] - one[1].weights["W_f"][-1]).max() > 1e-4
    other = sgd_trajectories(system, start, replace(plan, seed=1))
    assert np.abs(one[0].weights["W_f"][-1] - other[0].weights["W_f"][-1]).max() > 1e-4


def test_paths_are_kept_at_the_marks() -> None:
    plan = Plan(rate=0.5, steps=7)
    assert plan.marks == list(range(8))
    assert Plan(steps=1000).marks == list(range(0, 1001, 50))


def test_a_distance_is_the_largest_over_time() -> None:
    times, still = np.arange(3.0), np.zeros((3, 2, 2))
    moved = still.copy()
    moved[1] = [[3, 0], [0, 4]]
    flow = Trajectory(times=times, weights={"W_f": still, "W_h": still})
    assert deviations(Trajectory(times=times, weights={"W_f": still, "W_h": moved}), flow) == {
        "weights": 5,
        "eigenvalues": 4,
    }


def test_training_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    sgd_trajectories(EVERY[0], random_start(EVERY[0], SMALL, 0), Plan(steps=1))
    assert torch.get_num_threads() == before


def test_a_learning_rate_that_is_too_large_is_told() -> None:
    with pytest.raises(UserError, match="diverged"):
        sgd_trajectories(EVERY[0], random_start(EVERY[0], Start(scale=3.0), 0), Plan(rate=1.0, steps=50))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"rate": 0.0}, "rate is 0.0"),
        ({"steps": 0}, "steps is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"runs": 0}, "runs is 0"),
    ],
)
def test_plans_that_make_no_sense_are_refused(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Plan(**bad)
