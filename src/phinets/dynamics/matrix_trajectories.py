"""Trajectories of matrix flows: initial weights, integration, norms and eigenvalues over time.

The norms are the Frobenius norms of the commutators C₁ = [Φ, W_g], C₂ = [Φ, W_h], C₃ = [W_g, W_h] with Φ = W_fW_fᵀ, of
W_hᵀW_h − Φ (which decays as e^(−2ρt) in every flow), of Φ − W_h² (the paper's parabola; the same for symmetric W_h), of
W_g − W_gᵀ and W_h − W_hᵀ, and the eigenvalues of Φ and of the symmetric parts of W_g and W_h.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from phinets.config.errors import UserError
from phinets.dynamics.matrix import MatrixByol, MatrixFlow, MatrixSystem, MatrixXPhiNet, Weights, pack, unpack
from phinets.dynamics.systems import Floats

SQUARE = ("W_g", "W_h")
MOST_RATES = 1_000_000
"""Most evaluations of a flow; trajectories of the paper's settings take up to 100,000."""
MOST_WEIGHTS = 2_500
"""Most entries of all matrices together; the implicit integrator solves a dense system of this size."""
FLOOR = 1e-9
"""A norm below this counts as zero in a fit of decay rates; the integrator's error is smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Weights over time."""

    times: Floats
    """(n,), from 0."""
    weights: Mapping[str, Floats]
    """Each matrix over time, (n, rows, columns)."""

    def at(self, k: int) -> dict[str, Floats]:
        """The weights at the k-th time."""
        return {name: matrix[k] for name, matrix in self.weights.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The distribution of random initial weights."""

    dim: int = 4
    """m ≥ 1: width of the code."""
    input_dim: int = 6
    """d ≥ 1: width of the input."""
    scale: float = 1.0
    """Typical singular value; entries of a matrix with k columns have the standard deviation scale/√k."""
    symmetric: bool = False
    """Whether W_g and W_h are replaced by their symmetric parts."""

    def __post_init__(self) -> None:
        for name in ("dim", "input_dim"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}, but a matrix needs at least 1 row and column.")
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise UserError(f"scale is {self.scale}, but must be a finite number above 0.")


def random_start(system: MatrixSystem, start: Start, seed: int) -> dict[str, Floats]:
    """Gaussian weights for a system; the slow encoder is a copy of the fast one."""
    _require_few(system, start.dim, start.input_dim)
    random = np.random.default_rng(seed)
    weights = {"W_f": random.normal(size=(start.dim, start.input_dim)) * start.scale / np.sqrt(start.input_dim)}
    for name in SQUARE:
        matrix = random.normal(size=(start.dim, start.dim)) * start.scale / np.sqrt(start.dim)
        weights[name] = symmetric_part(matrix) if start.symmetric else matrix
    weights["W_s"] = weights["W_f"].copy()
    return {name: weights[name] for name in system.names}


def _require_few(system: MatrixSystem, rows: int, columns: int) -> None:
    entries = sum(rows * (rows if name in SQUARE else columns) for name in system.names)
    if entries > MOST_WEIGHTS:
        raise UserError(
            f"the matrices of width {rows} and input width {columns} have {entries:,} entries, but at most "
            f"{MOST_WEIGHTS:,} can be integrated. Choose a smaller --dim or --input-dim, or smaller matrices."
        )


def require_weights(system: MatrixSystem, weights: Weights) -> dict[str, Floats]:
    """The weights of a system as floats; refuses missing or non-finite weights and wrong shapes."""
    missing = [name for name in system.names if name not in weights]
    if missing:
        raise UserError(f"there is no {missing[0]} among the weights. Needed: {', '.join(system.names)}.")
    arrays = {name: np.asarray(weights[name]) for name in system.names}
    for name, matrix in arrays.items():
        if matrix.dtype.kind not in "fiu" or matrix.ndim != 2 or 0 in matrix.shape:
            raise UserError(f"{name} is {matrix.dtype} of shape {matrix.shape}, but must be a matrix of real numbers.")
        if not np.isfinite(matrix).all():
            raise UserError(f"{name} holds NaN or infinity; every entry must be a finite number.")
    m, d = arrays["W_f"].shape
    for name, matrix in arrays.items():
        expected = (m, m) if name in SQUARE else (m, d)
        if matrix.shape != expected:
            raise UserError(f"{name} is {matrix.shape}, but beside W_f of {(m, d)} it must be {expected}.")
    return {name: matrix.astype(np.float64) for name, matrix in arrays.items()}


def integrate(system: MatrixSystem, start: Weights, times: Floats, rtol: float = 1e-10) -> Trajectory:
    """The flow from a start, at rising times from 0, by LSODA, which is implicit where the flow is stiff."""
    _require_few(system, *start["W_f"].shape)

    def rate(vector: Floats) -> Floats:
        return pack(system, system.flow(unpack(system, vector, start)))

    return Trajectory(times=times, weights=unpack(system, _solve(rate, pack(system, start), times, rtol), start))


def _solve(flow: Callable[[Floats], Floats], start: Floats, times: Floats, rtol: float) -> Floats:
    """A vector over time, (n, size); a UserError where the integration fails."""
    evaluations = 0
    too_fast = UserError(
        f"the flow could not be integrated to time {times[-1]:g}: it is too fast or too stiff. "
        "Choose a smaller --scale or smaller weights, or a shorter --time."
    )

    def rate(_: float, vector: Floats) -> Floats:
        nonlocal evaluations
        evaluations += 1
        derivative = flow(vector)
        if evaluations > MOST_RATES or not np.isfinite(derivative).all():
            raise too_fast
        return derivative

    with np.errstate(over="ignore", invalid="ignore"):  # raises above
        solution = solve_ivp(rate, (0.0, float(times[-1])), start, "LSODA", times, rtol=rtol, atol=rtol / 100)
    if not solution.success:
        raise too_fast
    states: Floats = solution.y.T
    return states


def norms(trajectory: Trajectory) -> dict[str, Floats]:
    """The norms over time, each (n,); without W_g, those that need it are left out."""
    f, h = trajectory.weights["W_f"], trajectory.weights["W_h"]
    gram = f @ _t(f)
    matrices = {"C2": commutator(gram, h), "balance": _t(h) @ h - gram, "parabola": h @ h - gram}
    if (g := trajectory.weights.get("W_g")) is not None:
        matrices = {"C1": commutator(gram, g), "C2": matrices["C2"], "C3": commutator(g, h)} | matrices
    square = {name: trajectory.weights[name] for name in SQUARE if name in trajectory.weights}
    matrices |= {f"asymmetry_{name[-1]}": matrix - _t(matrix) for name, matrix in square.items()}
    return {name: np.sqrt((matrix**2).sum(axis=(-2, -1))) for name, matrix in matrices.items()}


def eigenvalues(trajectory: Trajectory) -> dict[str, Floats]:
    """Falling eigenvalues over time, (n, m): phi of Φ, psi and gamma of the symmetric parts of W_h and W_g."""
    f = trajectory.weights["W_f"]
    matrices = {"phi": f @ _t(f), "psi": symmetric_part(trajectory.weights["W_h"])}
    if "W_g" in trajectory.weights:
        matrices["gamma"] = symmetric_part(trajectory.weights["W_g"])
    return {name: np.linalg.eigvalsh(matrix)[..., ::-1].astype(np.float64) for name, matrix in matrices.items()}


def align(weights: Weights) -> dict[str, Floats]:
    """The initial weights of the reduced equations: diagonal in the singular basis of W_f.

    With W_f = U diag(a) Vᵀ: diag(a) and the diagonals of UᵀW_gU, UᵀW_hU and UᵀW_sV, all (m, m).
    """
    left, values, right = np.linalg.svd(weights["W_f"])

    def diagonal(entries: Floats) -> Floats:
        return np.diag(np.concatenate([entries, np.zeros(len(left) - len(entries))]))

    matrices = {"W_f": diagonal(values)}
    matrices |= {name: np.diag(np.diag(left.T @ weights[name] @ left)) for name in SQUARE if name in weights}
    if "W_s" in weights:
        matrices["W_s"] = diagonal(np.diag(left.T @ weights["W_s"] @ right.T))
    return matrices


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowComparison:
    """A matrix flow beside the reduced equations from the same start."""

    trajectory: Trajectory
    norms: Mapping[str, Floats]
    """Each (n,)."""
    eigenvalues: Mapping[str, Floats]
    """Each (n, m), falling."""
    predicted: Mapping[str, Floats]
    """The same by the reduced equations."""

    @property
    def differences(self) -> Floats:
        """The largest distance of any eigenvalue from its prediction, at each time."""
        each = [np.abs(self.eigenvalues[name] - self.predicted[name]).max(axis=1) for name in self.predicted]
        largest: Floats = np.max(each, axis=0)
        return largest


def compare_with_reduced(system: MatrixSystem, start: Weights, times: Floats) -> FlowComparison:
    """Integrate a matrix flow and the reduced equations from the same start."""
    path = integrate(system, start, times)
    predicted = reduced_eigenvalues(system, start, times)
    return FlowComparison(trajectory=path, norms=norms(path), eigenvalues=eigenvalues(path), predicted=predicted)


def reduced_eigenvalues(system: MatrixSystem, start: Weights, times: Floats) -> dict[str, Floats]:
    """Eigenvalues by the equations of single directions from `align(start)`: phi, psi and gamma, (n, m), falling."""
    diagonals = {name: np.diag(matrix) for name, matrix in align(start).items()}
    zeros = np.zeros_like(diagonals["W_f"])
    first = np.stack([diagonals["W_f"], diagonals["W_h"], diagonals.get("W_g", zeros), diagonals.get("W_s", zeros)])

    def rate(vector: Floats) -> Floats:
        return direction_rates(system, vector.reshape(first.shape)).ravel()

    a, psi, gamma, _ = np.moveaxis(_solve(rate, first.ravel(), times, 1e-10).reshape(-1, *first.shape), 1, 0)
    values = {"phi": a**2, "psi": psi} | ({"gamma": gamma} if "W_g" in system.names else {})
    return {name: np.sort(value, axis=1)[:, ::-1] for name, value in values.items()}


def direction_rates(system: MatrixSystem, state: Floats) -> Floats:
    """Rates of (a, ψ, γ, b), (4, …) → (4, …), as `phinets.dynamics.matrix` derives; absent variables stay 0."""
    a, psi, gamma, slow = state
    first = slow if isinstance(system, MatrixByol) else getattr(system, "tau", 1.0) * a
    second = a if isinstance(system, MatrixFlow) else slow * isinstance(system, MatrixXPhiNet)
    image = (1 + system.sigma2) * psi * a
    push = first - image + gamma * (second - gamma * image)
    pull = second - image * (1 if getattr(system, "version", "corrected") == "published" else gamma)
    drives = np.stack([psi * push, a * push, pull * a * psi]) - system.rho * state[:3]
    return np.stack([*drives, getattr(system, "kappa", 0.0) * (a - slow)])


def decay_rate(times: Floats, values: Floats) -> float | None:
    """The rate r of values ~ e^(−rt) over the later half; None where fewer than three values exceed FLOOR."""
    late = (times >= times[-1] / 2) & (values > FLOOR)
    if late.sum() < 3:
        return None
    return -float(np.polyfit(times[late], np.log(values[late]), 1)[0])


def commutator(a: Floats, b: Floats) -> Floats:
    """[A, B] = AB − BA."""
    return a @ b - b @ a


def symmetric_part(matrix: Floats) -> Floats:
    """½(A + Aᵀ)."""
    return (matrix + _t(matrix)) / 2


def _t(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)
