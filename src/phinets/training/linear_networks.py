"""The linear networks of the theory, trained by SGD with stop-gradient, beside the flow that they follow.

One step of size η is W ← W − η(∇L + ρW), and W_s ← W_s + ηκ(W_f − W_s) after it, so that time is η · steps. ∇L is by
autograd: of the expected loss, or of its mean over a batch of samples x ~ N(0, I), x₁, x₂ ~ N(x, σ²I). As η shrinks the
trajectory approaches the flow: as η with the expected loss, as √(η/batch) where sampling noise dominates.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.dynamics.matrix import MatrixByol, MatrixFlow, MatrixSimSiam, MatrixSystem, MatrixXPhiNet, Weights
from phinets.dynamics.matrix_trajectories import Trajectory, eigenvalues
from phinets.dynamics.systems import Floats

MARKS = 20
"""Number of times after 0 at which a trajectory is recorded and compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Learning rate, steps and samples of a training."""

    rate: float = 0.01
    """η > 0: learning rate."""
    steps: int = 1000
    """Number of steps."""
    batch: int | None = None
    """Samples per step; None: the expected loss, which is deterministic."""
    runs: int = 1
    """Number of independent runs from the same start."""
    seed: int = 0
    """Seed of the samples."""

    def __post_init__(self) -> None:
        if not 0 < self.rate < float("inf"):
            raise UserError(f"rate is {self.rate}, but a learning rate must be a finite number above 0.")
        for name in ("steps", "batch", "runs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} is {value}, but must be at least 1.")

    @property
    def marks(self) -> list[int]:
        """The steps after which weights are recorded, from 0 to the last."""
        return [int(step) for step in np.unique(np.linspace(0, self.steps, MARKS + 1).round())]


def sgd_trajectories(system: MatrixSystem, start: Weights, plan: Plan) -> list[Trajectory]:
    """The trajectories of all runs, at times η · marks; the runs are trained together, as one stack of matrices."""
    weights = {
        name: torch.tensor(start[name]).repeat(plan.runs, 1, 1).requires_grad_(name != "W_s") for name in system.names
    }
    fast = [tensor for name, tensor in weights.items() if name != "W_s"]
    optimizer = torch.optim.SGD(fast, lr=plan.rate, weight_decay=system.rho)
    random = torch.Generator().manual_seed(plan.seed)
    snapshots = [_snapshot(weights)]
    marks = set(plan.marks)
    with _one_thread():
        for step in range(1, plan.steps + 1):
            optimizer.zero_grad()
            batch = plan.batch
            loss = sampled_loss(system, weights, batch, random) if batch else expected_loss(system, weights)
            loss.backward()
            optimizer.step()
            if isinstance(system, MatrixByol | MatrixXPhiNet):
                weights["W_s"].lerp_(weights["W_f"].detach(), plan.rate * system.kappa)
            if step in marks:
                snapshots.append(_snapshot(weights))
    stacks = {name: np.stack([each[name] for each in snapshots], axis=1) for name in system.names}
    if not all(np.isfinite(stack).all() for stack in stacks.values()):
        raise UserError(f"training diverged at the learning rate {plan.rate:g}. Choose a smaller --rate or --scale.")
    times = plan.rate * np.array(plan.marks, dtype=np.float64)
    return [
        Trajectory(times=times, weights={name: stack[k] for name, stack in stacks.items()}) for k in range(plan.runs)
    ]


def _snapshot(weights: Mapping[str, Tensor]) -> dict[str, Floats]:
    return {name: tensor.detach().numpy().copy() for name, tensor in weights.items()}


@contextmanager
def _one_thread() -> Iterator[None]:
    """One torch thread: for matrices this small more threads only cost time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def expected_loss(system: MatrixSystem, w: Mapping[str, Tensor]) -> Tensor:
    """½E‖Zx₁ − T₁x₂‖² + ½E‖W_gZx₁ − T₂x‖² without the targets' own size, summed over runs; Z = W_hW_f."""
    s = 1 + system.sigma2
    first, second = targets(system, w)
    code = w["W_h"] @ w["W_f"]
    loss = s * (code**2).sum() / 2 - (code * first).sum()
    if second is not None:
        back = w["W_g"] @ code
        loss = loss + s * (back**2).sum() / 2 - (back * second).sum()
    return loss


def sampled_loss(system: MatrixSystem, w: Mapping[str, Tensor], batch: int, random: torch.Generator) -> Tensor:
    """The mean over a batch of fresh samples, summed over runs."""
    runs, _, d = w["W_f"].shape
    x, one, two = torch.randn(3, runs, d, batch, generator=random, dtype=torch.float64)
    spread = system.sigma2**0.5
    first, second = targets(system, w)
    code = w["W_h"] @ (w["W_f"] @ (x + spread * one))
    loss: Tensor = ((code - first @ (x + spread * two)) ** 2).sum() / (2 * batch)
    if second is not None:
        loss = loss + ((w["W_g"] @ code - second @ x) ** 2).sum() / (2 * batch)
    return loss


def targets(system: MatrixSystem, w: Mapping[str, Tensor]) -> tuple[Tensor, Tensor | None]:
    """The targets of the two predictions, detached: T₁, and T₂ where there is a second one."""
    fast = w["W_f"].detach()
    match system:
        case MatrixFlow():
            return fast, fast
        case MatrixSimSiam(tau=tau):
            return tau * fast, None
        case MatrixByol():
            return w["W_s"].detach(), None
        case MatrixXPhiNet():
            return fast, w["W_s"].detach()
    raise AssertionError(system)


def deviations(trajectory: Trajectory, flow: Trajectory) -> dict[str, float]:
    """The largest distance of two trajectories at the same times: of all weights (Frobenius), and of any eigenvalue."""
    apart = np.sum([((trajectory.weights[n] - flow.weights[n]) ** 2).sum(axis=(1, 2)) for n in flow.weights], axis=0)
    ours, theirs = eigenvalues(trajectory), eigenvalues(flow)
    return {
        "weights": float(np.sqrt(apart).max()),
        "eigenvalues": max(float(np.abs(ours[name] - theirs[name]).max()) for name in theirs),
    }


def order(rates: Sequence[float], values: Sequence[float]) -> float | None:
    """The p of values ~ ratesᵖ, by least squares; None where a value is 0, as from weights that do not move."""
    if min(values) <= 0:
        return None
    return float(np.polyfit(np.log(rates), np.log(values), 1)[0])
