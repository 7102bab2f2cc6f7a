"""The four regimes, the thresholds between them, SimSiam beside PhiNet, and cycles."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.claims.finding import Claim, Finding, Verdict, listed, on_both
from phinets.dynamics.equilibria import Equilibrium, equilibria
from phinets.dynamics.paths import gamma_nullcline
from phinets.dynamics.systems import Floats, PhiNet, SimSiam, Version

LARGE, NEAR_ZERO = 0.5, 0.1
READ_AS = (
    f"read as: ψ ≫ 0 is (1+σ²)ψ > {LARGE}; γ ≫ 0 is γ > {LARGE}, γ ≪ 0 is γ < −{LARGE}; γ ≈ 0 is |γ| < {NEAR_ZERO}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """What the paper says of one weight decay."""

    name: str
    rho: float
    sinks: int
    """How many."""
    words: str
    """Of the sink that is new there."""
    new: Callable[[float, float], bool]
    """Whether (sψ, γ) are that sink."""


REGIMES = (
    Regime(name="STRONG", rho=0.12, sinks=1, words="the collapsed point is the only sink", new=lambda u, g: u == 0),
    Regime(
        name="MEDIUM", rho=0.03, sinks=2, words="a sink with ψ ≫ 0 and γ ≈ 0",
        new=lambda u, g: u > LARGE and abs(g) < NEAR_ZERO,
    ),
    Regime(name="LIGHT", rho=0.003, sinks=3, words="a sink with ψ, γ ≫ 0", new=lambda u, g: min(u, g) > LARGE),
    Regime(
        name="WEAK", rho=0.0001, sinks=4, words="a sink with ψ < 0 and γ ≪ 0", new=lambda u, g: u < 0 and g < -LARGE
    ),
)  # fmt: skip


def sinks(version: Version, sigma2: float, rho: float) -> list[Equilibrium]:
    """PhiNet's sinks, by rising ψ."""
    return [each for each in equilibria(PhiNet(version=version, sigma2=sigma2, rho=rho)) if each.kind == "sink"]


def regime(told: Regime) -> Claim:
    """The claim that this weight decay has so many sinks, one of them as described."""

    def claim(sigma2: float) -> Finding:
        def judge(version: Version) -> tuple[Verdict, Any]:
            found = [(each["psi"], each["gamma"]) for each in sinks(version, sigma2, told.rho)]
            described = [point for point in found if told.new((1 + sigma2) * point[0], point[1])]
            places = ", ".join(f"({psi:.4g}, {gamma:.4g})" for psi, gamma in found)
            count = f"{len(found)} sink{'s' * (len(found) != 1)} at (ψ, γ) = {places}"
            lacking = "" if described else "; none as described"
            verdict = Verdict(holds=len(found) == told.sinks and bool(described), why=count + lacking)
            return verdict, {
                "sinks": [{"psi": psi, "gamma": gamma} for psi, gamma in found],
                "described": len(described),
            }

        return Finding(
            statement=f"{told.name}, ρ = {told.rho:g}: {told.sinks} sink{'s' * (told.sinks > 1)}; {told.words}",
            where="Section 4, Bifurcation of PhiNet dynamics; Fig. vecfield",
            needs=READ_AS,
            **on_both(judge),
        )

    return claim


def thresholds(sigma2: float) -> Finding:
    """Every weight decay at which equilibria are born."""

    def judge(version: Version) -> tuple[Verdict, Any]:
        found = bifurcations(PhiNet(version=version, sigma2=sigma2), 0.0, 0.5)
        rhos = [each.rho for each in found.found]
        counts = "–".join(map(str, found.sinks))
        numbers = {"bifurcations": [each.plain() for each in found.found], "sinks": list(found.sinks)}
        return Verdict(
            holds=found.sinks == (1, 2, 3, 4), why=f"sinks {counts} as ρ falls through {listed(rhos, 6)}"
        ), numbers

    return Finding(
        statement="As weight decay falls, saddle-nodes bring the number of sinks from one to two, three and four",
        where="Section 4, Bifurcation of PhiNet dynamics",
        **on_both(judge),
    )


def simsiam_threshold(sigma2: float) -> Finding:
    """SimSiam's saddle-node, from its own polynomial."""
    formula = 1 / (4 * (1 + sigma2))
    found = [each.rho for each in bifurcations(SimSiam(sigma2=sigma2), 0.0, 0.5).found]
    holds = len(found) == 1 and abs(found[0] - formula) < 1e-12
    verdict = Verdict(holds=holds, why=f"{listed(found, 8)} beside 1/(4(1+σ²)) = {formula:.8g}")
    return Finding(
        statement="SimSiam bifurcates from STRONG to MEDIUM at ρ = 1/(4(1+σ²))",
        where="Section 4, Comparison with SimSiam dynamics",
        published=verdict,
        corrected=verdict,
        numbers={"found": found, "formula": formula},
        needs="SimSiam has no γ, so both versions are the same",
    )


def same_threshold(sigma2: float) -> Finding:
    """Whether PhiNet leaves STRONG where SimSiam does."""
    simsiam = bifurcations(SimSiam(sigma2=sigma2), 0.0, 0.5).found[0].rho

    def judge(version: Version) -> tuple[Verdict, Any]:
        first = bifurcations(PhiNet(version=version, sigma2=sigma2), 0.0, 0.5).found[0].rho
        why = f"PhiNet's is {first:.6g}, {first / simsiam:.4g} times SimSiam's {simsiam:.6g}"
        between = "; between the two SimSiam must collapse and PhiNet need not" if first > simsiam else ""
        return Verdict(holds=abs(first - simsiam) < 1e-9, why=why + between), {"phinet": first, "simsiam": simsiam}

    return Finding(
        statement="STRONG and MEDIUM of SimSiam are those of PhiNet: both begin at the same weight decay",
        where="Section 4, Comparison with SimSiam dynamics",
        needs="they are one regime only for ρ below SimSiam's threshold or above PhiNet's",
        **on_both(judge),
    )


def conjugate(sigma2: float) -> Finding:
    """The green line of the comparison figure: which nullcline it is, whether the flow keeps to it, who rests on it."""
    rho, s = 0.08, 1 + sigma2
    psi = np.linspace(-0.2, 0.5, 2801) * 2.5 / s
    simple = SimSiam(sigma2=sigma2, rho=rho)
    pattern = _signs(simple.flow(psi[None])[0])

    def judge(version: Version) -> tuple[Verdict, Any]:
        system = PhiNet(version=version, sigma2=sigma2, rho=rho)
        gamma = gamma_nullcline(system, psi)
        rates = system.flow(np.stack([psi, gamma]))
        angle = float(np.degrees(np.arctan(np.abs(np.gradient(gamma, psi)))).max())
        same = _signs(rates[0]) == pattern
        largest = [float(np.abs(rate).max()) for rate in rates]
        why = (
            f"the line drawn is γ̇ = 0 (on it |γ̇| ≤ {largest[1]:.0e}, |ψ̇| ≤ {largest[0]:.2g}), which the flow crosses "
            f"at up to {angle:.0f}°; ψ̇ read along it has {'the' if same else 'not the'} signs of SimSiam's"
        )
        numbers = {"largest_psi_rate": largest[0], "largest_gamma_rate": largest[1], "angle": angle, "same_signs": same}
        return Verdict(holds=same and angle < 1, why=why), numbers

    return Finding(
        statement="The SimSiam-MEDIUM flow is conjugate with the flow on the nullcline ψ̇ = 0 of PhiNet-MEDIUM",
        where="Fig. comparison (ρ = 0.08)",
        needs="a line that the flow crosses has no flow of its own; what can be compared is ψ̇ along it",
        **on_both(judge),
    )


def _signs(values: Floats) -> list[int]:
    """The signs in the order in which they come, each once, without zeros."""
    signs = np.sign(values[np.abs(values) > 1e-15]).astype(int)
    return [int(sign) for k, sign in enumerate(signs) if k == 0 or sign != signs[k - 1]]


def cycles(sigma2: float) -> Finding:
    """Dulac's test with the function 1/ψ², and the numbers that go with it."""
    psi, gamma = np.meshgrid(np.linspace(-2, 2, 401)[np.arange(401) != 200], np.linspace(-6, 6, 401))
    rhos = [0.5, 0.12, 0.03, 0.003, 0.0001]

    def judge(version: Version) -> tuple[Verdict, Any]:
        systems = [PhiNet(version=version, sigma2=sigma2, rho=rho) for rho in rhos]
        largest = max(float(dulac(system, np.stack([psi, gamma])).max()) for system in systems)
        formula = "−s(1 + γ²)" if version == "published" else "−s(1 + γ² + ψ²)"
        axis = max(float(np.abs(system.flow(np.stack([0 * gamma, gamma]))[0]).max()) for system in systems)
        why = f"div(F/ψ²) = {formula}, at most {largest:.4g} on the grid; no orbit crosses ψ = 0, where |ψ̇| ≤ {axis:g}"
        return Verdict(holds=largest < 0 and axis == 0, why=why), {"largest_divergence": largest, "rate_on_axis": axis}

    return Finding(
        statement="The flows of (ψ, γ) and of (φ, ψ, γ) have no cycles (not in the paper, which shows none)",
        in_paper=False,
        where="Section 4, Eq. PhiNet-dynamics",
        needs="any σ² ≥ 0 and ρ > 0, by Bendixson and Dulac; with φ a cycle would lie on φ = ψ², so none there. "
        "Not proved for the matrix flow or for X-PhiNet",
        **on_both(judge),
    )


def dulac(system: PhiNet, state: Floats) -> Floats:
    """div(F/ψ²) from the flow and its Jacobian: (tr J − 2ψ̇/ψ)/ψ². Weight decay cancels: −ρ − ρ + 2ρ = 0."""
    psi = state[0]
    jacobian = system.jacobian(state)
    found: Floats = (jacobian[0, 0] + jacobian[1, 1] - 2 * system.flow(state)[0] / psi) / psi**2
    return found
