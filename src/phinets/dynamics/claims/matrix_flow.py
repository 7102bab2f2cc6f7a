"""Statements on the matrix flow: the parabola, alignment, symmetry (A1), and the appendix line by line."""

from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from phinets.dynamics.claims.check import Claim, ClaimCheck, Verdict, both_versions, format_numbers
from phinets.dynamics.claims.eigenvalue_flow import sinks
from phinets.dynamics.commutators import (
    PRINTED,
    RIGHT,
    absent_terms,
    block_errors,
    classify_terms,
    exact_rates,
    smallest_eigenvalue,
    sum_terms,
    symmetric_weights,
)
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.matrix import MatrixFlow, Weights, jacobian, pack
from phinets.dynamics.matrix_trajectories import FLOOR, Start, Trajectory, integrate, norms, random_start
from phinets.dynamics.systems import Floats, PhiNetPhi, Version

RHOS = (0.12, 0.03, 0.003)
WEAK = 0.0001
SEEDS = range(3)
SMALL = Start(dim=3, input_dim=4)
SYMMETRIC = Start(dim=3, input_dim=4, symmetric=True)
BROKEN = 0.01
"""A final asymmetry above this has not decayed."""
GONE = 0.01
"""A remaining share of the commutators' norm below this has decayed."""
NEUTRAL = 1e-6
"""A rate below this share of ρ is the zero of a rotation."""


def parabola(sigma2: float) -> ClaimCheck:
    """The decay of ψ² − φ, and of its form for matrices without symmetry."""
    rho, times = 0.03, np.linspace(0, 100, 51)

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
        expected = np.exp(-2 * rho * times)
        runs = [norms(integrate(system, random_start(system, SMALL, seed), times)) for seed in SEEDS]
        worst = {
            name: max(float(np.abs(each[name] / each[name][0] - expected).max()) for each in runs)
            for name in ("balance", "parabola")
        }
        why = (
            f"‖W_hᵀW_h − Φ‖ is e^(−2ρt) of its start to {worst['balance']:.0e} from any start; "
            f"‖W_h² − Φ‖ is off by up to {worst['parabola']:.2g} where W_h is not symmetric"
        )
        return Verdict(holds=worst["balance"] < 1e-6, why=why), worst

    return ClaimCheck(
        statement="ψ² − φ decays as e^(−2ρt) (for matrices: W_hᵀW_h − W_fW_fᵀ)",
        where="Appendix, Adiabatic Elimination",
        needs="no symmetry and no alignment in the form W_hᵀW_h − W_fW_fᵀ; W_h² − Φ needs a symmetric W_h",
        **both_versions(evaluate),
    )


def fast_parabola(sigma2: float) -> ClaimCheck:
    """Whether the parabola is reached before the other directions converge."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        rows: list[dict[str, Any]] = []
        for rho in (*RHOS, WEAK):
            system = PhiNetPhi(version=version, sigma2=sigma2, rho=rho)
            for each in equilibria(system):
                if each.kind == "sink" and not each.collapsed:
                    rates = sorted(-value.real for value in each.eigenvalues)
                    rows.append({"rho": rho, "psi": each.psi, "rates_over_2rho": [rate / (2 * rho) for rate in rates]})
        slower = sum(min(row["rates_over_2rho"]) < 1 - 1e-9 for row in rows)
        faster = sum(max(row["rates_over_2rho"]) > 1 + 1e-9 for row in rows)
        why = (
            f"of {len(rows)} non-collapsed sinks, {faster} have a direction that settles faster than the parabola "
            f"(up to {max((max(row['rates_over_2rho']) for row in rows), default=0):.3g} times), {slower} a slower one"
        )
        return Verdict(holds=bool(rows) and faster == 0, why=why), rows

    return ClaimCheck(
        statement="The parabola is reached much faster than the dynamics settles",
        where="Appendix, Adiabatic Elimination",
        needs="at the collapse the rates are ρ, ρ and 2ρ; at another sink they are its Jacobian's eigenvalues",
        **both_versions(evaluate),
    )


def alignment(sigma2: float) -> ClaimCheck:
    """Commutators from symmetric random starts: whether they grow first, and their late rate beside 3ρ."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        rows = [_alignment(version, sigma2, rho) for rho in RHOS]
        shrink = max(row["left_at_end"] for row in rows)
        why = "; ".join(
            f"ρ = {row['rho']:g}: late rate {_in_rho(row['late_rate_over_rho'])}, "
            f"{row['left_at_end']:.1g} left at the end, {row['left_after_1_over_rho']:.0%} left after 1/ρ, "
            f"grew for a while in {row['rose']} of {len(SEEDS)}"
            for row in rows
        )
        return Verdict(holds=shrink < GONE, why=why), rows

    return ClaimCheck(
        statement="The commutators decay to 0: the eigenspaces of Φ, W_g and W_h align",
        where="Section 4, Eigenvalue dynamics; Appendix, Eigenspace Alignment",
        needs=f"random symmetric starts, m = {SYMMETRIC.dim}, d = {SYMMETRIC.input_dim}; judged by less than "
        f"{GONE:g} of the norm left after 12/ρ; the paper's rate, 3ρ at least, is for a positive definite K only",
        **both_versions(evaluate),
    )


def _in_rho(rate: float | None) -> str:
    return "too fast to tell" if rate is None else f"{rate:.2g}ρ"


def _alignment(version: Version, sigma2: float, rho: float) -> dict[str, Any]:
    """The norm of all three commutators over the seeds: slowest late rate, mean and largest remaining share.

    A seed whose norm falls below FLOOR early has no late rate; None if no seed has one.
    """
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    times = np.linspace(0, 12, 121) / rho
    late_rates, shares, final_shares, growing = [], [], [], 0
    for seed in SEEDS:
        size = _commutators(integrate(system, random_start(system, SYMMETRIC, seed), times, rtol=1e-8))
        late_times = (times > 5 / rho) & (size > FLOOR)
        if late_times.sum() > 3:
            late_rates.append(-float(np.polyfit(times[late_times], np.log(size[late_times]), 1)[0]) / rho)
        shares.append(float(size[10] / size[0]))
        final_shares.append(float(size[-1] / size[0]))
        growing += bool((size > 1.01 * np.minimum.accumulate(size)).any())
    slowest = min(late_rates, default=None)
    means = {"late_rate_over_rho": slowest, "left_after_1_over_rho": float(np.mean(shares))}
    return {"rho": rho, **means, "left_at_end": max(final_shares), "rose": growing}


def _commutators(trajectory: Trajectory) -> Floats:
    """√(‖C₁‖² + ‖C₂‖² + ‖C₃‖²) over time."""
    sizes = norms(trajectory)
    size: Floats = np.sqrt(sum(sizes[name] ** 2 for name in ("C1", "C2", "C3")))
    return size


def symmetry(sigma2: float) -> ClaimCheck:
    """A1: whether asymmetry decays, at the sinks to first order and from random starts in full."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        growth = [row for rho in (*RHOS, WEAK) for row in asymmetry_growth(version, sigma2, rho)]
        ends = {f"{rho:g}": [_last_asymmetry(version, sigma2, rho, seed) for seed in SEEDS] for rho in RHOS}
        worst = max(row["rate"] for row in growth)
        broken = sum(value > BROKEN for values in ends.values() for value in values)
        rates = "; ".join(f"{row['rate']:.3g} at ψ = {row['psi']:.3g}, ρ = {row['rho']:g}" for row in growth)
        why = (
            f"an antisymmetric part of W_g and W_h moves at the rate {rates}; from random starts W_g or W_h ends "
            f"not symmetric in {broken} of {len(RHOS) * len(SEEDS)}"
        )
        return Verdict(holds=worst < 0 and not broken, why=why), {"growth": growth, "asymmetry_at_end": ends}

    return ClaimCheck(
        statement="A1: W_g and W_h may be taken as symmetric; symmetry attracts",
        where="Section 4, (A1)",
        needs="where two directions share a sink, antisymmetric parts obey δḣ = −{s(1+γ²)ψ² + ρ}δh − ψ²δg and "
        "δġ = −{sψ⁴ + ρ}δg − ψ²δh (corrected; attracting for γ > 0) or −ρδg − ψ²δh (published; for "
        "ψ{(1+γ)ρ − ψ³} > 0)",
        **both_versions(evaluate),
    )


def asymmetry_growth(version: Version, sigma2: float, rho: float) -> list[dict[str, float]]:
    """At each non-collapsed sink, the largest rate of an antisymmetric part, with two directions at that sink."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]]) / np.sqrt(2)
    none = np.zeros((2, 2))
    rows = []
    for each in sinks(version, sigma2, rho):
        if not each.collapsed:
            scaled = zip(system.names, (abs(each.psi), each["gamma"], each.psi), strict=True)
            derivative = jacobian(system, {name: value * np.eye(2) for name, value in scaled})
            moves = [{"W_f": none, "W_g": turn, "W_h": none}, {"W_f": none, "W_g": none, "W_h": turn}]
            basis = np.stack([pack(system, move) for move in moves], axis=1)
            rates = np.linalg.eigvals(basis.T @ derivative @ basis)
            rows.append({"rho": rho, "psi": each.psi, "gamma": each["gamma"], "rate": float(rates.real.max())})
    return rows


def matrix_sinks(sigma2: float) -> ClaimCheck:
    """Whether two directions at sinks of the reduced flow are an attracting state of the matrix flow."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        rows = [row for rho in (*RHOS, WEAK) for row in pair_growth(version, sigma2, rho)]
        bad = [row for row in rows if row["rate"] > NEUTRAL * row["rho"]]
        rates = "; ".join(
            f"ψ = {row['psi'][0]:.3g} and {row['psi'][1]:.3g}, ρ = {row['rho']:g}: {row['rate']:.2g}" for row in bad
        )
        why = f"{len(bad)} of {len(rows)} pairs of sinks repel" + (f", at the rates {rates}" if bad else "")
        return Verdict(holds=not bad, why=why), rows

    return ClaimCheck(
        statement="A sink of the eigenvalue dynamics is one of the matrix dynamics",
        where="Section 4, Eigenvalue dynamics; C2",
        needs="two directions, each at a sink; rotations are neutral; a rate above 0 is a way out that the reduced "
        "equations can't see",
        **both_versions(evaluate),
    )


def pair_growth(version: Version, sigma2: float, rho: float) -> list[dict[str, Any]]:
    """The largest rate of any perturbation, for m = d = 2 with each direction at a sink, for every pair of sinks."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    rows = []
    for pair in combinations_with_replacement(sinks(version, sigma2, rho), 2):
        psi, gamma = ([each[name] for each in pair] for name in ("psi", "gamma"))
        weights = {"W_f": np.diag(np.abs(psi)), "W_g": np.diag(gamma), "W_h": np.diag(psi)}
        rate = float(np.linalg.eigvals(jacobian(system, weights)).real.max())
        rows.append({"rho": rho, "psi": psi, "gamma": gamma, "rate": rate})
    return rows


def _last_asymmetry(version: Version, sigma2: float, rho: float, seed: int) -> float:
    """The larger of ‖W_g − W_gᵀ‖ and ‖W_h − W_hᵀ‖ after 20/ρ from a start that is not symmetric."""
    system = MatrixFlow(version=version, sigma2=sigma2, rho=rho)
    sizes = norms(integrate(system, random_start(system, SMALL, seed), np.array([0.0, 20 / rho]), rtol=1e-8))
    return max(float(sizes[name][-1]) for name in ("asymmetry_g", "asymmetry_h"))


RHO = 0.03
APPENDIX_START = Start(dim=4, input_dim=6, symmetric=True)
EXACT = 1e-10
"""Two sides of an equation that differ by less are the same."""


def gradient(sigma2: float) -> ClaimCheck:
    """The flow beside the derivative of the expected loss, by steps along the imaginary axis."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
        weights = random_start(system, Start(dim=3, input_dim=5), 0)
        rates = system.flow(weights)
        off = {
            name: _largest_difference(rates[name], -_slope(weights, name, sigma2) - RHO * weights[name])
            for name in system.names
        }
        why = "largest difference: " + ", ".join(f"Ẇ_{name[-1]} {value:.1g}" for name, value in off.items())
        return Verdict(holds=max(off.values()) < EXACT, why=why), off

    return ClaimCheck(
        statement="The matrix flow is Ẇ = −∇L − ρW of the expected loss",
        where="Section 4, Analysis model; Appendix, Derivation of Matrix Dynamics",
        needs="random weights without symmetry, m = 3, d = 5",
        **both_versions(evaluate),
    )


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


def simplified_h(sigma2: float) -> ClaimCheck:
    """Ẇ_h after the symmetry assumption, as printed."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
        weights = random_start(system, APPENDIX_START, 0)
        f, G, H = weights["W_f"], weights["W_g"], weights["W_h"]
        one, Phi = np.eye(len(G)), f @ f.T
        stretch = (1 + sigma2) * (one + G @ G) @ H
        signs = {sign: -(stretch + sign * (one + G)) @ Phi - RHO * H for sign in (1, -1)}
        off = {sign: _largest_difference(rate, system.flow(weights)["W_h"]) for sign, rate in signs.items()}
        why = f"off by {off[1]:.2g} with + (I + W_g) as printed, by {off[-1]:.1g} with −"
        return Verdict(holds=off[1] < EXACT, why=why), {"plus": off[1], "minus": off[-1]}

    return ClaimCheck(
        statement="Ẇ_h = −{(1+σ²)(I + W_g²)W_h + (I + W_g)}Φ − ρW_h for symmetric weights",
        where="Appendix, Decoupling into Eigenvalue Dynamics",
        **both_versions(evaluate),
    )


def decoupled(sigma2: float) -> ClaimCheck:
    """The two decoupled lines, as printed, beside the equations that the paper uses afterward."""
    phi, psi, gamma = np.random.default_rng(0).normal(size=(3, 50)) ** 2

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        system, s = PhiNetPhi(version=version, sigma2=sigma2, rho=RHO), 1 + sigma2
        _, psi_rate, gamma_rate = system.flow(np.stack([phi, psi, gamma]))
        printed_gamma = -s * (psi - 1) * phi * psi - RHO * gamma
        printed_psi = -(s * (1 + gamma**2) * psi + (1 + gamma)) * phi - RHO * psi
        off = {
            "gamma": _largest_difference(printed_gamma, gamma_rate),
            "psi": _largest_difference(printed_psi, psi_rate),
        }
        why = f"γ̇ is off by up to {off['gamma']:.2g}, ψ̇ by up to {off['psi']:.2g}"
        return Verdict(holds=max(off.values()) < EXACT, why=why), off

    return ClaimCheck(
        statement="γ̇ = −(1+σ²)(ψ − 1)φψ − ργ and ψ̇ = −{(1+σ²)(1+γ²)ψ + (1+γ)}φ − ρψ",
        where="Appendix, Decoupling into Eigenvalue Dynamics",
        needs="published flow: γ̇ = −{(1+σ²)ψ − 1}φψ − ργ; corrected: −{(1+σ²)γψ − 1}φψ − ργ; both: ψ̇ with − (1+γ)",
        **both_versions(evaluate),
    )


def commutator_equation(name: str) -> Claim:
    """The claim that the printed equation of C1, C2 or C3 is the time derivative along the flow."""

    def claim(sigma2: float) -> ClaimCheck:
        def evaluate(version: Version) -> tuple[Verdict, Any]:
            system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
            weights = random_start(system, APPENDIX_START, 0)
            at = symmetric_weights(system, weights)
            exact, printed, right = exact_rates(system, weights)[name], PRINTED[name], RIGHT[version][name]
            off, ours = (_largest_difference(sum_terms(terms, at), exact) for terms in (printed, right))
            word_of_term, missing_terms = classify_terms(printed, right, at), absent_terms(printed, right, at)
            bad = [f"{term} ({word})" for term, word in word_of_term.items() if word != "right"]
            exchange = (
                f"; wrong: {', '.join(bad)}; right: {', '.join(missing_terms)} (then off by {ours:.0e})" if bad else ""
            )
            verdict = Verdict(holds=off < EXACT, why=f"off by {off:.1g}{exchange}")
            return verdict, {"off": off, "off_when_right": ours, "terms": word_of_term, "right_terms": missing_terms}

        return ClaimCheck(
            statement=f"The printed equation of Ċ{'₁₂₃'[int(name[1]) - 1]} is its time derivative along the flow",
            where="Appendix, Eigenspace Alignment",
            needs="random symmetric weights, m = 4, d = 6; G is W_g, H is W_h, s is 1 + σ²",
            **both_versions(evaluate),
        )

    return claim


def stacked_blocks(sigma2: float) -> ClaimCheck:
    """The nine blocks of K."""

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
        errors = block_errors(version, symmetric_weights(system, random_start(system, APPENDIX_START, 0)))
        right = [name for name, error in errors.items() if error < EXACT]
        wrong = ", ".join(f"{name} ({error:.2g})" for name, error in errors.items() if name not in right)
        why = f"right: {', '.join(right) or 'none'}; wrong, with ‖(K − K′)C‖/‖K′C‖: {wrong or 'none'}"
        return Verdict(holds=len(right) == len(errors), why=why), errors

    return ClaimCheck(
        statement="The blocks K₁₁ … K₃₃ stack the commutators' equations",
        where="Appendix, Eigenspace Alignment",
        needs="K₁₁ as printed adds an m × m to an m² × m² matrix and is read as I ⊕ W_h(I + W_g)",
        **both_versions(evaluate),
    )


def positive_definite(sigma2: float) -> ClaimCheck:
    """How much weight decay makes the right 3ρI + K positive definite at random symmetric weights."""
    scales, seeds = (1.0, 0.3, 0.1), range(5)

    def evaluate(version: Version) -> tuple[Verdict, Any]:
        least = {}
        for scale in scales:
            start = Start(dim=3, input_dim=4, scale=scale, symmetric=True)
            system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
            points = [symmetric_weights(system, random_start(system, start, seed)) for seed in seeds]
            least[f"{scale:g}"] = [smallest_eigenvalue(version, at) - 3 * RHO for at in points]
        needed = {scale: -min(values) / 2 for scale, values in least.items()}
        smallest = [min(values) for values in least.values()]
        why = (
            f"λ_min of K is {format_numbers(smallest, 3)} for weights of the size {', '.join(least)}; "
            f"ρ above {format_numbers(list(needed.values()), 3)} makes 3ρI + K positive definite for sure"
        )
        open_ = any(min(values) + 3 * RHO <= 0 for values in least.values())
        return Verdict(holds=open_ and _positive_definite_at(version, sigma2, needed, seeds), why=why), {
            "smallest": least,
            "rho": needed,
        }

    return ClaimCheck(
        statement="3ρI + K is not necessarily positive definite, but more easily so for larger ρ",
        where="Appendix, Eigenspace Alignment",
        needs=f"judged at ρ = {RHO}, by the right blocks; K₃₃ holds −ρ, so ρ lifts λ_min by 2 to 3 times itself",
        **both_versions(evaluate),
    )


def _positive_definite_at(version: Version, sigma2: float, needed: dict[str, float], seeds: range) -> bool:
    """Whether 3ρI + K is positive definite at weights of each size under slightly more than the ρ required for them."""
    lowest = []
    for scale, rho in needed.items():
        system = MatrixFlow(version=version, sigma2=sigma2, rho=1.001 * max(rho, RHO))
        start = Start(dim=3, input_dim=4, scale=float(scale), symmetric=True)
        points = [symmetric_weights(system, random_start(system, start, seed)) for seed in seeds]
        lowest += [smallest_eigenvalue(version, at) for at in points]
    return min(lowest) > 0


def _largest_difference(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max())
