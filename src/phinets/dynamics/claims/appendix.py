"""The appendix, line by line: the gradient, the simplified lines, and the commutators' equations."""

from typing import Any

import numpy as np

from phinets.dynamics.blocks import block_errors, smallest_eigenvalue
from phinets.dynamics.claims.finding import Claim, Finding, Verdict, listed, on_both
from phinets.dynamics.commutators import exact_rates, missing, place, printed_terms, right_terms, sum_of, verdicts
from phinets.dynamics.matrix import MatrixFlow, Weights
from phinets.dynamics.matrix_paths import Start, random_start
from phinets.dynamics.systems import Floats, PhiNetPhi, Version

RHO = 0.03
SYMMETRIC = Start(dim=4, input_dim=6, symmetric=True)
EXACT = 1e-10
"""Two sides of an equation that differ by less are the same."""


def gradient(sigma2: float) -> Finding:
    """The flow beside the derivative of the expected loss, by steps along the imaginary axis."""

    def judge(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
        weights = random_start(system, Start(dim=3, input_dim=5), 0)
        rates = system.flow(weights)
        off = {name: _gap(rates[name], -_slope(weights, name, sigma2) - RHO * weights[name]) for name in system.names}
        why = "largest difference: " + ", ".join(f"Ẇ_{name[-1]} {value:.1g}" for name, value in off.items())
        return Verdict(holds=max(off.values()) < EXACT, why=why), off

    return Finding(
        statement="The matrix flow is Ẇ = −∇L − ρW of the expected loss",
        where="Section 4, Analysis model; Appendix, Derivation of Matrix Dynamics",
        needs="random weights without symmetry, m = 3, d = 5",
        **on_both(judge),
    )


def _slope(weights: Weights, name: str, sigma2: float) -> Floats:
    """∂L/∂W of one matrix; the targets are the weights themselves and stand still."""
    found = np.empty_like(weights[name])
    for index in np.ndindex(*found.shape):
        moved = {each: matrix.astype(complex) for each, matrix in weights.items()}
        moved[name][index] += 1e-30j
        code = moved["W_h"] @ moved["W_f"]
        back, s, target = moved["W_g"] @ code, 1 + sigma2, weights["W_f"]
        loss = s * (code**2).sum() / 2 - (code * target).sum() + s * (back**2).sum() / 2 - (back * target).sum()
        found[index] = loss.imag / 1e-30
    return found


def simplified_h(sigma2: float) -> Finding:
    """Ẇ_h after the symmetry assumption, as printed."""

    def judge(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
        weights = random_start(system, SYMMETRIC, 0)
        f, G, H = weights["W_f"], weights["W_g"], weights["W_h"]
        one, Phi = np.eye(len(G)), f @ f.T
        stretch = (1 + sigma2) * (one + G @ G) @ H
        signs = {sign: -(stretch + sign * (one + G)) @ Phi - RHO * H for sign in (1, -1)}
        off = {sign: _gap(rate, system.flow(weights)["W_h"]) for sign, rate in signs.items()}
        why = f"off by {off[1]:.2g} with + (I + W_g) as printed, by {off[-1]:.1g} with −"
        return Verdict(holds=off[1] < EXACT, why=why), {"plus": off[1], "minus": off[-1]}

    return Finding(
        statement="Ẇ_h = −{(1+σ²)(I + W_g²)W_h + (I + W_g)}Φ − ρW_h for symmetric weights",
        where="Appendix, Decoupling into Eigenvalue Dynamics",
        **on_both(judge),
    )


def decoupled(sigma2: float) -> Finding:
    """The two decoupled lines, as printed, beside the summary that the paper goes on with."""
    phi, psi, gamma = np.random.default_rng(0).normal(size=(3, 50)) ** 2

    def judge(version: Version) -> tuple[Verdict, Any]:
        system, s = PhiNetPhi(version=version, sigma2=sigma2, rho=RHO), 1 + sigma2
        _, psi_rate, gamma_rate = system.flow(np.stack([phi, psi, gamma]))
        printed_gamma = -s * (psi - 1) * phi * psi - RHO * gamma
        printed_psi = -(s * (1 + gamma**2) * psi + (1 + gamma)) * phi - RHO * psi
        off = {"gamma": _gap(printed_gamma, gamma_rate), "psi": _gap(printed_psi, psi_rate)}
        why = f"γ̇ is off by up to {off['gamma']:.2g}, ψ̇ by up to {off['psi']:.2g}"
        return Verdict(holds=max(off.values()) < EXACT, why=why), off

    return Finding(
        statement="γ̇ = −(1+σ²)(ψ − 1)φψ − ργ and ψ̇ = −{(1+σ²)(1+γ²)ψ + (1+γ)}φ − ρψ",
        where="Appendix, Decoupling into Eigenvalue Dynamics",
        needs="published flow: γ̇ = −{(1+σ²)ψ − 1}φψ − ργ; corrected: −{(1+σ²)γψ − 1}φψ − ργ; both: ψ̇ with − (1+γ)",
        **on_both(judge),
    )


def commutator_equation(name: str) -> Claim:
    """The claim that the printed equation of C1, C2 or C3 is the time derivative along the flow."""

    def claim(sigma2: float) -> Finding:
        def judge(version: Version) -> tuple[Verdict, Any]:
            system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
            weights = random_start(system, SYMMETRIC, 0)
            at = place(system, weights)
            exact, printed, right = (
                exact_rates(system, weights)[name],
                printed_terms(at)[name],
                right_terms(version, at)[name],
            )
            off, ours = (_gap(sum_of(terms, at.commutators), exact) for terms in (printed, right))
            words, lacking = verdicts(printed, right), missing(printed, right)
            bad = [f"{term} ({word})" for term, word in words.items() if word != "right"]
            exchange = f"; wrong: {', '.join(bad)}; right: {', '.join(lacking)} (then off by {ours:.0e})" if bad else ""
            verdict = Verdict(holds=off < EXACT, why=f"off by {off:.1g}{exchange}")
            return verdict, {"off": off, "off_when_right": ours, "terms": words, "right_terms": lacking}

        return Finding(
            statement=f"The printed equation of Ċ{'₁₂₃'[int(name[1]) - 1]} is its time derivative along the flow",
            where="Appendix, Eigenspace Alignment",
            needs="random symmetric weights, m = 4, d = 6; G is W_g, H is W_h, s is 1 + σ²",
            **on_both(judge),
        )

    return claim


def stacked_blocks(sigma2: float) -> Finding:
    """The nine blocks of K."""

    def judge(version: Version) -> tuple[Verdict, Any]:
        system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
        errors = block_errors(version, place(system, random_start(system, SYMMETRIC, 0)))
        right = [name for name, error in errors.items() if error < EXACT]
        wrong = ", ".join(f"{name} ({error:.2g})" for name, error in errors.items() if name not in right)
        why = f"right: {', '.join(right) or 'none'}; wrong, with ‖(K − K′)C‖/‖K′C‖: {wrong or 'none'}"
        return Verdict(holds=len(right) == len(errors), why=why), errors

    return Finding(
        statement="The blocks K₁₁ … K₃₃ stack the commutators' equations",
        where="Appendix, Eigenspace Alignment",
        needs="K₁₁ as printed adds an m × m to an m² × m² matrix and is read as I ⊕ W_h(I + W_g)",
        **on_both(judge),
    )


def positive_definite(sigma2: float) -> Finding:
    """How much weight decay makes the right 3ρI + K positive definite at random symmetric weights."""
    scales, seeds = (1.0, 0.3, 0.1), range(5)

    def judge(version: Version) -> tuple[Verdict, Any]:
        least = {}
        for scale in scales:
            start = Start(dim=3, input_dim=4, scale=scale, symmetric=True)
            system = MatrixFlow(version=version, sigma2=sigma2, rho=RHO)
            places = [place(system, random_start(system, start, seed)) for seed in seeds]
            least[f"{scale:g}"] = [smallest_eigenvalue(version, at) - 3 * RHO for at in places]
        needed = {scale: -min(values) / 2 for scale, values in least.items()}
        why = (
            f"λ_min of K is {listed([min(values) for values in least.values()], 3)} for weights of the size "
            f"{', '.join(least)}; ρ above {listed(list(needed.values()), 3)} makes 3ρI + K positive definite for sure"
        )
        open_ = any(min(values) + 3 * RHO <= 0 for values in least.values())
        return Verdict(holds=open_ and _lifted(version, sigma2, needed, seeds), why=why), {
            "smallest": least,
            "rho": needed,
        }

    return Finding(
        statement="3ρI + K is not necessarily positive definite, but more easily so for larger ρ",
        where="Appendix, Eigenspace Alignment",
        needs=f"judged at ρ = {RHO}, by the right blocks; K₃₃ holds −ρ, so ρ lifts λ_min by 2 to 3 times itself",
        **on_both(judge),
    )


def _lifted(version: Version, sigma2: float, needed: dict[str, float], seeds: range) -> bool:
    """Whether 3ρI + K is positive definite at weights of each size under a little more than the ρ told for them."""
    lowest = []
    for scale, rho in needed.items():
        system = MatrixFlow(version=version, sigma2=sigma2, rho=1.001 * max(rho, RHO))
        start = Start(dim=3, input_dim=4, scale=float(scale), symmetric=True)
        places = [place(system, random_start(system, start, seed)) for seed in seeds]
        lowest += [smallest_eigenvalue(version, at) for at in places]
    return min(lowest) > 0


def _gap(a: Floats, b: Floats) -> float:
    return float(np.abs(a - b).max())
