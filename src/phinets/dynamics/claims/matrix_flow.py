"""Statements on the matrix flow: the parabola, alignment, symmetry (A1), and the appendix line by line.

The docstring of each check is the statement, true or not.
"""

from collections.abc import Mapping
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from phinets.dynamics import commutators
from phinets.dynamics.basins import sinks_of
from phinets.dynamics.claims.check import Result, claim, format_numbers
from phinets.dynamics.commutators import NAMES, block_errors, exact_rates, smallest_eigenvalue, symmetric_weights
from phinets.dynamics.matrix import MatrixFlow, Weights, jacobian, pack
from phinets.dynamics.matrix_trajectories import FLOOR, Start, integrate, norms, random_start
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, Version

RHO, WEAK = 0.03, 0.0001
RHOS = (0.12, RHO, 0.003)
SEEDS = range(3)
SMALL = Start(dim=3, input_dim=4)
SYMMETRIC = Start(dim=3, input_dim=4, symmetric=True)
APPENDIX_START = Start(dim=4, input_dim=6, symmetric=True)
EXACT = 1e-10
"""Two sides of an equation that differ by less are the same."""
ASYMMETRY_LIMIT = 0.01
"""A final asymmetry above this has not decayed."""
ALIGNMENT_LIMIT = 0.01
"""A remaining share of the commutators' norm below this has decayed."""
NEUTRAL = 1e-6
"""A rate below this share of ρ is the zero of a rotation."""
DECOUPLING_SECTION = "Appendix, Decoupling into Eigenvalue Dynamics"
ELIMINATION_SECTION = "Appendix, Adiabatic Elimination"
ALIGNMENT_SECTION = "Appendix, Eigenspace Alignment"


@claim(
    "Section 4, Analysis model; Appendix, Derivation of Matrix Dynamics",
    needs="random weights without symmetry, m = 3, d = 5",
)
def gradient(version: Version, sigma2: float) -> Result:
    """The matrix flow is Ẇ = −∇L − ρW of the expected loss."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
    weights = random_start(system, Start(dim=3, input_dim=5), 0)
    errors = {
        name: _largest_difference(rate, -_slope(weights, name, sigma2) - RHO * weights[name])
        for name, rate in system.flow(weights).items()
    }
    why = "largest difference: " + ", ".join(f"Ẇ_{name[-1]} {error:.1g}" for name, error in errors.items())
    return max(errors.values()) < EXACT, why, errors


def _slope(weights: Weights, name: str, sigma2: float) -> Floats:
    """∂L/∂W of one matrix; the targets are the weights themselves, held fixed."""
    gradient = np.empty_like(weights[name])
    for index in np.ndindex(*gradient.shape):
        shifted = {each: matrix.astype(complex) for each, matrix in weights.items()}
        shifted[name][index] += 1e-30j
        code = shifted["W_h"] @ shifted["W_f"]
        back, s, target = shifted["W_g"] @ code, 1 + sigma2, weights["W_f"]
        loss = s * (code**2).sum() / 2 - (code * target).sum() + s * (back**2).sum() / 2 - (back * target).sum()
        gradient[index] = loss.imag / 1e-30
    return gradient


@claim(
    ELIMINATION_SECTION,
    needs="no symmetry and no alignment in the form W_hᵀW_h − W_fW_fᵀ; W_h² − Φ needs a symmetric W_h",
)
def parabola(version: Version, sigma2: float) -> Result:
    """ψ² − φ decays as e^(−2ρt) (for matrices: W_hᵀW_h − W_fW_fᵀ)."""
    system, times = MatrixFlow(version=version, sigma2=sigma2, rho=RHO), np.linspace(0, 100, 51)
    expected = np.exp(-2 * RHO * times)
    runs = [norms(integrate(system, random_start(system, SMALL, seed), times)) for seed in SEEDS]
    worst = {
        name: max(float(np.abs(each[name] / each[name][0] - expected).max()) for each in runs)
        for name in ("balance", "parabola")
    }
    why = (
        f"‖W_hᵀW_h − Φ‖ is e^(−2ρt) of its start to {worst['balance']:.0e} from any start; "
        f"‖W_h² − Φ‖ is off by up to {worst['parabola']:.2g} where W_h is not symmetric"
    )
    return worst["balance"] < 1e-6, why, worst


@claim(
    ELIMINATION_SECTION,
    needs="at the collapse the rates are ρ, ρ and 2ρ; at another sink they are its Jacobian's eigenvalues",
)
def fast_parabola(version: Version, sigma2: float) -> Result:
    """The parabola is reached much faster than the dynamics settles."""
    rows: list[dict[str, Any]] = []
    for rho in (*RHOS, WEAK):
        for each in sinks_of(PhiNetPhi(version=version, sigma2=sigma2, rho=rho)):
            if not each.collapsed:
                rates = sorted(-value.real / (2 * rho) for value in each.eigenvalues)
                rows.append({"rho": rho, "psi": each.psi, "rates_over_2rho": rates})
    slower = sum(row["rates_over_2rho"][0] < 1 - 1e-9 for row in rows)
    fastest = [row["rates_over_2rho"][-1] for row in rows]
    faster = sum(rate > 1 + 1e-9 for rate in fastest)
    why = (
        f"of {len(rows)} non-collapsed sinks, {faster} have a direction that settles faster than the parabola "
        f"(up to {max(fastest, default=0):.3g} times), {slower} a slower one"
    )
    return bool(rows) and faster == 0, why, rows


@claim(
    f"Section 4, Eigenvalue dynamics; {ALIGNMENT_SECTION}",
    needs=f"random symmetric starts, m = {SYMMETRIC.dim}, d = {SYMMETRIC.input_dim}; it holds if less than "
    f"{ALIGNMENT_LIMIT:g} of the norm is left after 12/ρ; the paper's rate, 3ρ at least, is for a positive definite K "
    "only",
)
def alignment(version: Version, sigma2: float) -> Result:
    """The commutators decay to 0: the eigenspaces of Φ, W_g and W_h align."""
    rows = [_alignment(version, sigma2, rho) for rho in RHOS]
    rates = [row["late_rate_over_rho"] for row in rows]
    why = "; ".join(
        f"ρ = {row['rho']:g}: late rate {'too fast to fit' if rate is None else f'{rate:.2g}ρ'}, "
        f"{row['left_at_end']:.1g} left at the end, {row['left_after_1_over_rho']:.0%} left after 1/ρ, "
        f"grew for a while in {row['seeds_with_growth']} of {len(SEEDS)}"
        for row, rate in zip(rows, rates, strict=True)
    )
    return max(row["left_at_end"] for row in rows) < ALIGNMENT_LIMIT, why, rows


def _alignment(version: Version, sigma2: float, rho: float) -> dict[str, Any]:
    """The norm √(‖C₁‖² + ‖C₂‖² + ‖C₃‖²) over the seeds: slowest late rate, mean and largest remaining share.

    A seed whose norm falls below FLOOR early has no late rate; None if no seed has one.
    """
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    times = np.linspace(0, 12, 121) / rho
    late_rates, shares, final_shares, growth = [], [], [], 0
    for seed in SEEDS:
        each = norms(integrate(system, random_start(system, SYMMETRIC, seed), times, rtol=1e-8))
        size = np.sqrt(np.sum([each[name] ** 2 for name in NAMES], axis=0))
        late = (times > 5 / rho) & (size > FLOOR)
        if late.sum() > 3:
            late_rates.append(-float(np.polyfit(times[late], np.log(size[late]), 1)[0]) / rho)
        shares.append(float(size[10] / size[0]))
        final_shares.append(float(size[-1] / size[0]))
        growth += bool((size > 1.01 * np.minimum.accumulate(size)).any())
    means = {"late_rate_over_rho": min(late_rates, default=None), "left_after_1_over_rho": float(np.mean(shares))}
    return {"rho": rho, **means, "left_at_end": max(final_shares), "seeds_with_growth": growth}


@claim(
    "Section 4, (A1)",
    needs="where two directions share a sink, antisymmetric parts obey δḣ = −{s(1+γ²)ψ² + ρ}δh − ψ²δg and "
    "δġ = −{sψ⁴ + ρ}δg − ψ²δh (corrected; attracting for γ > 0) or −ρδg − ψ²δh (published; for "
    "ψ{(1+γ)ρ − ψ³} > 0)",
)
def symmetry(version: Version, sigma2: float) -> Result:
    """A1: W_g and W_h may be taken as symmetric; symmetry attracts."""
    growth = [row for rho in (*RHOS, WEAK) for row in asymmetry_growth(version, sigma2, rho)]
    ends = {f"{rho:g}": [_last_asymmetry(version, sigma2, rho, seed) for seed in SEEDS] for rho in RHOS}
    asymmetric = sum(value > ASYMMETRY_LIMIT for values in ends.values() for value in values)
    rates = "; ".join(f"{row['rate']:.3g} at ψ = {row['psi']:.3g}, ρ = {row['rho']:g}" for row in growth)
    why = (
        f"an antisymmetric part of W_g and W_h moves at the rate {rates}; from random starts W_g or W_h ends "
        f"not symmetric in {asymmetric} of {len(RHOS) * len(SEEDS)}"
    )
    holds = max(row["rate"] for row in growth) < 0 and not asymmetric
    return holds, why, {"growth": growth, "asymmetry_at_end": ends}


def asymmetry_growth(version: Version, sigma2: float, rho: float) -> list[dict[str, float]]:
    """At each non-collapsed sink, the largest rate of an antisymmetric part, with two directions at that sink."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    rotation, zero = np.array([[0.0, 1.0], [-1.0, 0.0]]) / np.sqrt(2), np.zeros((2, 2))
    moves = [{"W_f": zero, "W_g": rotation, "W_h": zero}, {"W_f": zero, "W_g": zero, "W_h": rotation}]
    basis = np.stack([pack(system, move) for move in moves], axis=1)
    rows = []
    for each in sinks_of(PhiNet(version=version, sigma2=sigma2, rho=rho)):
        if not each.collapsed:
            derivative = jacobian(system, _diagonal_weights([each.psi] * 2, [each["gamma"]] * 2))
            rate = float(np.linalg.eigvals(basis.T @ derivative @ basis).real.max())
            rows.append({"rho": rho, "psi": each.psi, "gamma": each["gamma"], "rate": rate})
    return rows


def _diagonal_weights(psi: list[float], gamma: list[float]) -> dict[str, Floats]:
    return {"W_f": np.diag(np.abs(psi)), "W_g": np.diag(gamma), "W_h": np.diag(psi)}


def _last_asymmetry(version: Version, sigma2: float, rho: float, seed: int) -> float:
    """The larger of ‖W_g − W_gᵀ‖ and ‖W_h − W_hᵀ‖ after 20/ρ from a start that is not symmetric."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    sizes = norms(integrate(system, random_start(system, SMALL, seed), np.array([0.0, 20 / rho]), rtol=1e-8))
    return max(float(sizes[name][-1]) for name in ("asymmetry_g", "asymmetry_h"))


@claim(
    "Section 4, Eigenvalue dynamics; C2",
    needs="two directions, each at a sink; rotations are neutral; a rate above 0 is an unstable direction that the "
    "reduced equations do not have",
)
def matrix_sinks(version: Version, sigma2: float) -> Result:
    """A sink of the eigenvalue dynamics is one of the matrix dynamics."""
    rows = [row for rho in (*RHOS, WEAK) for row in pair_growth(version, sigma2, rho)]
    repelling = [row for row in rows if row["rate"] > NEUTRAL * row["rho"]]
    rates = "; ".join(
        f"ψ = {row['psi'][0]:.3g} and {row['psi'][1]:.3g}, ρ = {row['rho']:g}: {row['rate']:.2g}" for row in repelling
    )
    why = f"{len(repelling)} of {len(rows)} pairs of sinks repel" + (f", at the rates {rates}" if repelling else "")
    return not repelling, why, rows


def pair_growth(version: Version, sigma2: float, rho: float) -> list[dict[str, Any]]:
    """The largest rate of any perturbation, for m = d = 2 with each direction at a sink, for every pair of sinks."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    rows = []
    for pair in combinations_with_replacement(sinks_of(PhiNet(version=version, sigma2=sigma2, rho=rho)), 2):
        psi, gamma = ([each[name] for each in pair] for name in ("psi", "gamma"))
        rate = float(np.linalg.eigvals(jacobian(system, _diagonal_weights(psi, gamma))).real.max())
        rows.append({"rho": rho, "psi": psi, "gamma": gamma, "rate": rate})
    return rows


@claim(DECOUPLING_SECTION)
def simplified_h(version: Version, sigma2: float) -> Result:
    """Ẇ_h = −{(1+σ²)(I + W_g²)W_h + (I + W_g)}Φ − ρW_h for symmetric weights."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
    weights = random_start(system, APPENDIX_START, 0)
    f, G, H = weights["W_f"], weights["W_g"], weights["W_h"]
    one, Phi, rate = np.eye(len(G)), f @ f.T, system.flow(weights)["W_h"]
    stretch = (1 + sigma2) * (one + G @ G) @ H
    plus, minus = (_largest_difference(-(stretch + sign * (one + G)) @ Phi - RHO * H, rate) for sign in (1, -1))
    why = f"off by {plus:.2g} with + (I + W_g) as printed, by {minus:.1g} with −"
    return plus < EXACT, why, {"plus": plus, "minus": minus}


@claim(
    DECOUPLING_SECTION,
    needs="published flow: γ̇ = −{(1+σ²)ψ − 1}φψ − ργ; corrected: −{(1+σ²)γψ − 1}φψ − ργ; both: ψ̇ with − (1+γ)",
    name="decoupled",
)
def decoupled_equations(version: Version, sigma2: float) -> Result:
    """γ̇ = −(1+σ²)(ψ − 1)φψ − ργ and ψ̇ = −{(1+σ²)(1+γ²)ψ + (1+γ)}φ − ρψ."""
    phi, psi, gamma = np.random.default_rng(0).normal(size=(3, 50)) ** 2
    system, s = PhiNetPhi(version=version, sigma2=sigma2, rho=RHO), 1 + sigma2
    _, psi_rate, gamma_rate = system.flow(np.stack([phi, psi, gamma]))
    printed_gamma = -s * (psi - 1) * phi * psi - RHO * gamma
    printed_psi = -(s * (1 + gamma**2) * psi + (1 + gamma)) * phi - RHO * psi
    pairs = {"gamma": (printed_gamma, gamma_rate), "psi": (printed_psi, psi_rate)}
    errors = {name: _largest_difference(*pair) for name, pair in pairs.items()}
    why = f"γ̇ is off by up to {errors['gamma']:.2g}, ψ̇ by up to {errors['psi']:.2g}"
    return max(errors.values()) < EXACT, why, errors


def _commutator_equation(name: str, version: Version, sigma2: float) -> Result:
    """Whether the printed equation of C1, C2 or C3 is the time derivative along the flow."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
    weights = random_start(system, APPENDIX_START, 0)
    at = symmetric_weights(system, weights)
    printed, right = commutators.PRINTED_EQUATIONS[name], commutators.RIGHT_EQUATIONS[version][name]
    exact = exact_rates(system, weights)[name]
    error, right_error = (_largest_difference(commutators.sum_terms(terms, at), exact) for terms in (printed, right))
    words, absent = commutators.classify_terms(printed, right, at), commutators.absent_terms(printed, right, at)
    why = f"off by {error:.1g}"
    if bad := [f"{term} ({word})" for term, word in words.items() if word != "right"]:
        why += f"; wrong: {', '.join(bad)}; right: {', '.join(absent)} (then off by {right_error:.0e})"
    return error < EXACT, why, {"off": error, "off_when_right": right_error, "terms": words, "right_terms": absent}


for _name, _letter in zip(NAMES, ("Ċ₁", "Ċ₂", "Ċ₃"), strict=True):
    claim(
        ALIGNMENT_SECTION,
        name=f"commutator-{_name[1]}",
        statement=f"The printed equation of {_letter} is its time derivative along the flow",
        needs="random symmetric weights, m = 4, d = 6; G is W_g, H is W_h, s is 1 + σ²",
    )(partial(_commutator_equation, _name))


@claim(ALIGNMENT_SECTION, needs="K₁₁ as printed adds an m × m to an m² × m² matrix and is read as I ⊕ W_h(I + W_g)")
def stacked_blocks(version: Version, sigma2: float) -> Result:
    """The blocks K₁₁ … K₃₃ stack the commutators' equations."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
    errors = block_errors(version, symmetric_weights(system, random_start(system, APPENDIX_START, 0)))
    right = [name for name, error in errors.items() if error < EXACT]
    wrong = ", ".join(f"{name} ({error:.2g})" for name, error in errors.items() if name not in right)
    why = f"right: {', '.join(right) or 'none'}; wrong, with ‖(K − K′)C‖/‖K′C‖: {wrong or 'none'}"
    return len(right) == len(errors), why, errors


@claim(
    ALIGNMENT_SECTION,
    needs=f"evaluated at ρ = {RHO}, by the right blocks; K₃₃ holds −ρ, so ρ lifts λ_min by 2 to 3 times itself",
)
def positive_definite(version: Version, sigma2: float) -> Result:
    """3ρI + K is not necessarily positive definite, but more easily so for larger ρ."""
    sizes = ("1", "0.3", "0.1")
    lowest = _smallest_eigenvalues(version, sigma2, dict.fromkeys(sizes, RHO))
    smallest = {size: [value - 3 * RHO for value in values] for size, values in lowest.items()}
    rhos = {size: -min(values) / 2 for size, values in smallest.items()}
    why = (
        f"λ_min of K is {format_numbers([min(values) for values in smallest.values()], 3)} for weights of the size "
        f"{', '.join(sizes)}; "
        f"ρ above {format_numbers(list(rhos.values()), 3)} makes 3ρI + K positive definite for sure"
    )
    larger = _smallest_eigenvalues(version, sigma2, {size: 1.001 * max(rho, RHO) for size, rho in rhos.items()})
    holds = min(map(min, lowest.values())) <= 0 < min(map(min, larger.values()))
    return holds, why, {"smallest": smallest, "rho": rhos}


def _smallest_eigenvalues(version: Version, sigma2: float, rhos: Mapping[str, float]) -> dict[str, list[float]]:
    """λ_min of 3ρI + K at five random symmetric weights of each size, under the ρ of that size."""
    values = {}
    for size, rho in rhos.items():
        system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
        start = Start(dim=3, input_dim=4, scale=float(size), symmetric=True)
        points = [symmetric_weights(system, random_start(system, start, seed)) for seed in range(5)]
        values[size] = [smallest_eigenvalue(version, at) for at in points]
    return values


def _largest_difference(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max())
