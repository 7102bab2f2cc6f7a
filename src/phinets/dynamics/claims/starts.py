"""C1 and C2: which starting values escape the collapse, on the parabola φ = ψ² and off it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from phinets.dynamics.borders import border, crossing, escape_from
from phinets.dynamics.claims.finding import Finding, Verdict, listed, on_both
from phinets.dynamics.equilibria import Equilibrium, equilibria
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, SimSiam, Version

STAR = (0.08, 0.5)
STAR_RHO = 0.08
"""The black star of the comparison figure, and its weight decay."""
GAMMAS = (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 5.0)
RHOS = (0.08, 0.03, 0.003, 0.0001)
WEAK = 0.0001


def lowest_saddle(system: PhiNet, sign: int) -> Equilibrium | None:
    """The saddle nearest to the collapse on one side of ψ = 0: its stable manifold is the border of the collapse."""
    found = [each for each in equilibria(system) if each.kind == "saddle" and each.psi * sign > 0]
    return min(found, key=lambda each: abs(each.psi)) if found else None


def wider_basin(sigma2: float) -> Finding:
    """C1 at the star, and over γ(0) and weight decay."""

    def judge(version: Version) -> tuple[Verdict, Any]:
        rows = [row for rho in RHOS if (row := _borders(version, sigma2, rho))]
        star = next((row for row in rows if row["rho"] == STAR_RHO), None)
        if star is None:
            return Verdict(holds=False, why=f"no border at ρ = {STAR_RHO}"), rows
        need = dict(zip(GAMMAS, star["smallest_psi"], strict=True))[STAR[1]]
        source, smallest = star["simsiam_source"], rows[-1]
        off = max(abs(a / b - 1) for a, b in zip(smallest["smallest_psi"], smallest["small_rho_formula"], strict=True))
        escapes = "escapes" if need < STAR[0] else "collapses"
        why = (
            f"from γ(0) = {STAR[1]} ψ(0) must be above {need:.5f}, so ★ at {STAR[0]} {escapes} ({STAR[0] / need - 1:+.1%}); "
            f"SimSiam's source is {source:.5f}. At ρ = {smallest['rho']:g} and γ(0) = {listed(GAMMAS, 3)} it takes ψ(0)/ρ above "
            f"{listed([psi / smallest['rho'] for psi in smallest['smallest_psi']], 3)}: 1/(1 + γ(0)/2) to {off:.1%}"
        )
        holds = need < STAR[0] < source
        return Verdict(holds=holds, why=why), rows

    return Finding(
        statement="C1: PhiNet escapes even if ψ(0) is close to zero, as long as γ(0) is large (★: ψ = 0.08, γ = 0.5)",
        where="Section 4, C1; Fig. comparison (ρ = 0.08)",
        needs="for small ρ, ψ(0) > ρ/(1 + γ(0)/2); it follows from ψ̇ = (1+γ)ψ² − ρψ and γ = γ(0)e^(−ρt)",
        **on_both(judge),
    )


def _borders(version: Version, sigma2: float, rho: float) -> dict[str, Any] | None:
    """The smallest ψ(0) that escapes, for each γ(0), beside SimSiam's source; None where everything collapses."""
    system = PhiNet(version=version, sigma2=sigma2, rho=rho)
    saddle = lowest_saddle(system, 1)
    source = [each.psi for each in equilibria(SimSiam(sigma2=sigma2, rho=rho)) if each.kind == "source"]
    if saddle is None or not source:
        return None
    found = escape_from(system, saddle, GAMMAS)
    guess = [rho / (1 + gamma / 2) for gamma in GAMMAS]
    return {
        "rho": rho,
        "gamma": list(GAMMAS),
        "smallest_psi": [None if np.isnan(psi) else psi for psi in found],
        "small_rho_formula": guess,
        "simsiam_source": source[0],
    }


def negative_sink(sigma2: float) -> Finding:
    """C2 on the parabola: the negative sink, and from which γ(0) it is reached."""
    psis = (-0.4, -0.2, -0.1, -0.05, -0.02, -0.005)

    def judge(version: Version) -> tuple[Verdict, Any]:
        system = PhiNet(version=version, sigma2=sigma2, rho=WEAK)
        there = [each for each in equilibria(system) if each.kind == "sink" and each.psi < 0]
        saddle = lowest_saddle(system, -1)
        if not there or saddle is None:
            return Verdict(holds=False, why=f"no sink with ψ < 0 at ρ = {WEAK:g}"), {"sinks": []}
        lower, upper = border(system, saddle, gamma_max=12.0)
        needed = [crossing(upper if psi < saddle.psi else lower, 0, psi) for psi in psis]
        why = (
            f"the sink is at ({there[0].psi:.4g}, {there[0]['gamma']:.4g}); it takes γ(0) below "
            f"{listed(needed, 3)} for ψ(0) = {listed(psis, 3)}" + "; other negative starts collapse" * (len(there) == 1)
        )
        numbers = {"sink": [there[0].psi, there[0]["gamma"]], "psi": list(psis), "largest_gamma": needed}
        return Verdict(holds=max(needed) < 0, why=why), numbers

    return Finding(
        statement="C2: PhiNet-WEAK has a negative sink, which attracts negative initialisation ψ(0) < 0",
        where="Section 4, C2; Fig. vecfield (ρ = 0.0001)",
        needs="on the parabola ψ = 0 is never crossed, so a negative start ends at the negative sink or collapses",
        **on_both(judge),
    )


def off_the_parabola(sigma2: float) -> Finding:
    """C2 beside SimSiam with φ as a variable of its own: how large an encoder carries a negative ψ over zero."""
    rho, psis, gammas = 0.03, (-0.1, -0.3, -1.0), (0.0, -0.5, -1.5)
    simple = [smallest_phi(PhiNetPhi(sigma2=sigma2, rho=rho), psi, None) for psi in psis]

    def judge(version: Version) -> tuple[Verdict, Any]:
        system = PhiNetPhi(version=version, sigma2=sigma2, rho=rho)
        table = {gamma: [smallest_phi(system, psi, gamma) for psi in psis] for gamma in gammas}
        why = (
            f"from ψ(0) = {listed(psis, 3)} SimSiam crosses ψ = 0 and escapes once φ(0) > {_shown(simple)}; "
            + "; ".join(f"PhiNet with γ(0) = {gamma:g}: {_shown(found)}" for gamma, found in table.items())
        )
        holds = all(found is None for found in simple)
        return Verdict(holds=holds, why=why), {"psi": list(psis), "simsiam": simple, "phinet": table}

    return Finding(
        statement="C2: SimSiam-MEDIUM cannot reach the non-collapsed solution from a negative ψ(0), whatever φ(0)",
        where="Section 4, C2, before φ is eliminated (ρ = 0.03)",
        needs="true on the parabola φ = ψ², where ψ = 0 is never crossed; off it ψ̇ = φ(1+γ) > 0 at ψ = 0 for γ > −1",
        **on_both(judge),
    )


def smallest_phi(system: PhiNetPhi, psi: float, gamma: float | None, largest: float = 20.0) -> float | None:
    """The smallest φ(0) from which a negative ψ(0) ends beyond zero, to 1e-3 of itself; None where even `largest` fails.

    γ None is SimSiam before φ is eliminated: γ stays 0, and what is left are its equations of φ and ψ. Sought between
    ψ(0)², from which ψ can't cross, and the largest, by sixteen starts at a time.
    """
    low, high = np.log(psi**2), np.log(largest)
    while high - low > 1e-3:
        tried = np.linspace(low, high, 17)[1:]
        beyond = np.flatnonzero(_cross(system, np.exp(tried), psi, gamma))
        if not len(beyond):
            return None
        low, high = (low if beyond[0] == 0 else tried[beyond[0] - 1]), tried[beyond[0]]
    return float(np.exp(high))


def _cross(system: PhiNetPhi, phi: Floats, psi: float, gamma: float | None) -> NDArray[np.bool_]:
    """Whether one direction with these starting values ends with ψ well above zero."""
    moves = np.array([1, 1, 0 if gamma is None else 1])[:, None]

    def rate(_: float, state: Floats) -> Floats:
        return (moves * system.flow(state.reshape(3, -1))).ravel()

    start = np.stack([phi, np.full_like(phi, psi), np.full_like(phi, gamma or 0.0)])
    end = solve_ivp(rate, (0, 15 / system.rho), start.ravel(), "RK45", rtol=1e-6, atol=1e-10).y[:, -1].reshape(3, -1)
    found: NDArray[np.bool_] = end[1] > 0.1 / system.s
    return found


def _shown(values: list[float | None]) -> str:
    return ", ".join("never" if value is None else f"{value:.3g}" for value in values)
