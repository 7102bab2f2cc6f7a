"""Matrix flows over time: starts, integration, and what is measured along the way.

Measured are the Frobenius norms of the commutators C₁ = [Φ, W_g], C₂ = [Φ, W_h], C₃ = [W_g, W_h] with Φ = W_fW_fᵀ, of
W_hᵀW_h − Φ (which decays as e^(−2ρt) in every flow), of Φ − W_h² (the paper's parabola; the same for symmetric W_h), of
W_g − W_gᵀ and W_h − W_hᵀ, and the eigenvalues of Φ and of the symmetric parts of W_g and W_h.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from phinets.config.errors import UserError
from phinets.dynamics.matrix import MatrixByol, MatrixFlow, MatrixSystem, MatrixXPhiNet, Weights, packed, unpacked
from phinets.dynamics.systems import Floats

SQUARE = ("W_g", "W_h")
MOST_RATES = 1_000_000
"""Evaluations of a flow after which it is given up; paths of the paper's settings take up to 100,000."""
MOST_WEIGHTS = 2_500
"""Entries of all matrices together; the integrator solves for a square of so many a side, which takes its time."""
FLOOR = 1e-9
"""A norm below this is taken for zero when rates are fitted; the integrator errs by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
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
    """How random weights are drawn."""

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
    """Gaussian weights for a system; the slow encoder begins as a copy of the fast one."""
    _require_few(system, start.dim, start.input_dim)
    random = np.random.default_rng(seed)
    weights = {"W_f": random.normal(size=(start.dim, start.input_dim)) * start.scale / np.sqrt(start.input_dim)}
    for name in SQUARE:
        drawn = random.normal(size=(start.dim, start.dim)) * start.scale / np.sqrt(start.dim)
        weights[name] = symmetric_part(drawn) if start.symmetric else drawn
    weights["W_s"] = weights["W_f"].copy()
    return {name: weights[name] for name in system.names}


def _require_few(system: MatrixSystem, rows: int, columns: int) -> None:
    entries = sum(rows * (rows if name in SQUARE else columns) for name in system.names)
    if entries > MOST_WEIGHTS:
        raise UserError(
            f"the matrices of width {rows} and input width {columns} have {entries:,} entries, but at most "
            f"{MOST_WEIGHTS:,} can be followed. Choose a smaller --dim or --input-dim, or smaller matrices."
        )


def require_weights(system: MatrixSystem, weights: Weights) -> dict[str, Floats]:
    """The weights a system needs, as floats; refuses what is missing, not finite, or of shapes that don't fit."""
    missing = [name for name in system.names if name not in weights]
    if missing:
        raise UserError(f"there is no {missing[0]} among the weights. Needed: {', '.join(system.names)}.")
    given = {name: np.asarray(weights[name]) for name in system.names}
    for name, matrix in given.items():
        if matrix.dtype.kind not in "fiu" or matrix.ndim != 2 or 0 in matrix.shape:
            raise UserError(f"{name} is {matrix.dtype} of shape {matrix.shape}, but must be a matrix of real numbers.")
        if not np.isfinite(matrix).all():
            raise UserError(f"{name} holds NaN or infinity; every entry must be a finite number.")
    m, d = given["W_f"].shape
    for name, matrix in given.items():
        fits = (m, m) if name in SQUARE else (m, d)
        if matrix.shape != fits:
            raise UserError(f"{name} is {matrix.shape}, but beside W_f of {(m, d)} it must be {fits}.")
    return {name: matrix.astype(np.float64) for name, matrix in given.items()}


def integrate(system: MatrixSystem, start: Weights, times: Floats, rtol: float = 1e-10) -> Path:
    """The flow from a start, at rising times from 0; LSODA, which turns implicit where the flow is stiff."""
    _require_few(system, *start["W_f"].shape)

    def rate(vector: Floats) -> Floats:
        return packed(system, system.flow(unpacked(system, vector, start)))

    return Path(times=times, weights=unpacked(system, _solved(rate, packed(system, start), times, rtol), start))


def _solved(flow: Callable[[Floats], Floats], start: Floats, times: Floats, rtol: float) -> Floats:
    """A vector over time, (n, size), or why it can't be followed."""
    left = MOST_RATES
    too_fast = UserError(
        f"the flow could not be followed to time {times[-1]:g}: it is too fast or too stiff. "
        "Choose a smaller --scale or smaller weights, or a shorter --time."
    )

    def rate(_: float, vector: Floats) -> Floats:
        nonlocal left
        left -= 1
        found = flow(vector)
        if left < 0 or not np.isfinite(found).all():
            raise too_fast
        return found

    with np.errstate(over="ignore", invalid="ignore"):  # told above
        found = solve_ivp(rate, (0.0, float(times[-1])), start, "LSODA", times, rtol=rtol, atol=rtol / 100)
    if not found.success:
        raise too_fast
    states: Floats = found.y.T
    return states


def norms(path: Path) -> dict[str, Floats]:
    """The measured norms over time, each (n,); what needs a g is left out where there is none."""
    f, h = path.weights["W_f"], path.weights["W_h"]
    gram = f @ _t(f)
    found = {"C2": commutator(gram, h)}
    if "W_g" in path.weights:
        g = path.weights["W_g"]
        found = {"C1": commutator(gram, g), "C2": found["C2"], "C3": commutator(g, h)}
    found["balance"] = _t(h) @ h - gram
    found["parabola"] = h @ h - gram
    found |= {
        f"asymmetry_{name[-1]}": path.weights[name] - _t(path.weights[name]) for name in SQUARE if name in path.weights
    }
    return {name: np.sqrt((matrix**2).sum(axis=(-2, -1))) for name, matrix in found.items()}


def eigenvalues(path: Path) -> dict[str, Floats]:
    """Falling eigenvalues over time, (n, m): phi of Φ, psi and gamma of the symmetric parts of W_h and W_g."""
    f = path.weights["W_f"]
    found = {"phi": f @ _t(f), "psi": symmetric_part(path.weights["W_h"])}
    if "W_g" in path.weights:
        found["gamma"] = symmetric_part(path.weights["W_g"])
    return {name: np.linalg.eigvalsh(matrix)[..., ::-1].astype(np.float64) for name, matrix in found.items()}


def aligned(weights: Weights) -> dict[str, Floats]:
    """The start that the reduced equations see: everything diagonal in the singular basis of W_f.

    With W_f = U diag(a) Vᵀ: diag(a) and the diagonals of UᵀW_gU, UᵀW_hU and UᵀW_sV, all (m, m). Diagonal weights stay
    diagonal, and each direction then moves by the equations of φ = a², ψ and γ (`systems.PhiNetPhi`).
    """
    f = weights["W_f"]
    left, values, right = np.linalg.svd(f)
    m = len(left)

    def diagonal(entries: Floats) -> Floats:
        return np.diag(np.concatenate([entries, np.zeros(m - len(entries))]))

    found = {"W_f": diagonal(values)}
    found |= {name: np.diag(np.diag(left.T @ weights[name] @ left)) for name in SQUARE if name in weights}
    if "W_s" in weights:
        found["W_s"] = diagonal(np.diag(left.T @ weights["W_s"] @ right.T))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A matrix flow over time, beside what the reduced equations say from the same start."""

    path: Path
    norms: Mapping[str, Floats]
    """Each (n,)."""
    eigenvalues: Mapping[str, Floats]
    """Each (n, m), falling."""
    predicted: Mapping[str, Floats]
    """What `reduced` says of the same."""

    @property
    def differences(self) -> Floats:
        """The largest distance of any eigenvalue from its prediction, at each time."""
        each = [np.abs(self.eigenvalues[name] - self.predicted[name]).max(axis=1) for name in self.predicted]
        found: Floats = np.max(each, axis=0)
        return found


def follow(system: MatrixSystem, start: Weights, times: Floats) -> Following:
    """Integrate and measure, beside the reduced equations."""
    path = integrate(system, start, times)
    predicted = reduced(system, start, times)
    return Following(path=path, norms=norms(path), eigenvalues=eigenvalues(path), predicted=predicted)


def reduced(system: MatrixSystem, start: Weights, times: Floats) -> dict[str, Floats]:
    """What the equations of single directions say from `aligned(start)`: phi = a², psi and gamma, (n, m), falling.

    No matrix moves here: each direction has its a, ψ, γ and slow b, and goes by itself (`direction`).
    """
    begin = {name: np.diag(matrix) for name, matrix in aligned(start).items()}
    none = np.zeros_like(begin["W_f"])
    first = np.stack([begin["W_f"], begin["W_h"], begin.get("W_g", none), begin.get("W_s", none)])

    def rate(vector: Floats) -> Floats:
        return direction(system, vector.reshape(first.shape)).ravel()

    a, psi, gamma, _ = np.moveaxis(_solved(rate, first.ravel(), times, 1e-10).reshape(-1, *first.shape), 1, 0)
    found = {"phi": a**2, "psi": psi} | ({"gamma": gamma} if "W_g" in system.names else {})
    return {name: np.sort(values, axis=1)[:, ::-1] for name, values in found.items()}


def direction(system: MatrixSystem, state: Floats) -> Floats:
    """Rates of (a, ψ, γ, b), (4, …) → (4, …), with targets t₁, t₂ and e = sψa, as `phinets.dynamics.matrix` derives.

    ȧ = ψ·push − ρa, ψ̇ = a·push − ρψ with push = t₁ − e + γ(t₂ − γe), γ̇ = (t₂ − γe)aψ − ργ (published: (t₂ − e)aψ − ργ),
    ḃ = κ(a − b). What a system lacks is 0 and stays so.
    """
    a, psi, gamma, slow = state
    first = slow if isinstance(system, MatrixByol) else getattr(system, "tau", 1.0) * a
    second = a if isinstance(system, MatrixFlow) else slow * isinstance(system, MatrixXPhiNet)
    image = (1 + system.sigma2) * psi * a
    push = first - image + gamma * (second - gamma * image)
    pull = second - image * (1 if getattr(system, "version", "corrected") == "published" else gamma)
    rates = [psi * push, a * push, pull * a * psi]
    moved = [rate - system.rho * value for rate, value in zip(rates, (a, psi, gamma), strict=True)]
    return np.stack([*moved, getattr(system, "kappa", 0.0) * (a - slow)])


def decay_rate(times: Floats, values: Floats) -> float | None:
    """The rate r of values ~ e^(−rt) over the later half of the times; None where too little is left to fit."""
    late = (times >= times[-1] / 2) & (values > FLOOR)
    if late.sum() < 3:
        return None
    slope, _ = np.polyfit(times[late], np.log(values[late]), 1)
    return -float(slope)


def commutator(a: Floats, b: Floats) -> Floats:
    """[A, B] = AB − BA."""
    return a @ b - b @ a


def symmetric_part(matrix: Floats) -> Floats:
    """½(A + Aᵀ)."""
    return (matrix + _t(matrix)) / 2


def _t(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)
