"""Statements on the eigenvalue dynamics: regimes, thresholds, SimSiam beside PhiNet, C1 and C2, cycles.

The docstring of each check is the statement, true or not.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from phinets.dynamics.basins import destinations, sinks_of
from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.claims.check import Result, claim, format_numbers
from phinets.dynamics.equilibria import Equilibrium, equilibria
from phinets.dynamics.phase_plane import border_crossing, gamma_nullcline, smallest_escaping_psi, stable_border
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, SimSiam, Version

LARGE, NEAR_ZERO = 0.5, 0.1


class Regime(NamedTuple):
    """The paper's statement on one weight decay: its number of sinks, and the sink that is new there."""

    name: str
    rho: float
    sinks: int
    words: str
    is_new: Callable[[float, float], bool]
    """Whether (sψ, γ) are the new sink."""


REGIMES = (
    Regime("STRONG", 0.12, 1, "the collapsed point is the only sink", lambda u, g: u == 0),
    Regime("MEDIUM", 0.03, 2, "a sink with ψ ≫ 0 and γ ≈ 0", lambda u, g: u > LARGE and abs(g) < NEAR_ZERO),
    Regime("LIGHT", 0.003, 3, "a sink with ψ, γ ≫ 0", lambda u, g: min(u, g) > LARGE),
    Regime("WEAK", 0.0001, 4, "a sink with ψ < 0 and γ ≪ 0", lambda u, g: u < 0 and g < -LARGE),
)


def _regime(regime: Regime, version: Version, sigma2: float) -> Result:
    """This weight decay has this number of sinks, one of them as described."""
    system = PhiNet(version=version, sigma2=sigma2, rho=regime.rho)
    points = [{"psi": each.psi, "gamma": each["gamma"]} for each in sinks_of(system)]
    described = sum(regime.is_new(system.s * point["psi"], point["gamma"]) for point in points)
    places = ", ".join(f"({point['psi']:.4g}, {point['gamma']:.4g})" for point in points)
    why = f"{len(points)} sink{'s' * (len(points) != 1)} at (ψ, γ) = {places}" + "; none as described" * (not described)
    return len(points) == regime.sinks and described > 0, why, {"sinks": points, "described": described}


for _each in REGIMES:
    claim(
        "Section 4, Bifurcation of PhiNet dynamics; Fig. vecfield",
        name=_each.name.lower(),
        statement=f"{_each.name}, ρ = {_each.rho:g}: {_each.sinks} sink{'s' * (_each.sinks > 1)}; {_each.words}",
        needs=f"read as: ψ ≫ 0 is (1+σ²)ψ > {LARGE}; γ ≫ 0 is γ > {LARGE}, γ ≪ 0 is γ < −{LARGE}; "
        f"γ ≈ 0 is |γ| < {NEAR_ZERO}",
    )(partial(_regime, _each))


@claim("Section 4, Bifurcation of PhiNet dynamics")
def thresholds(version: Version, sigma2: float) -> Result:
    """As weight decay falls, saddle-nodes bring the number of sinks from one to two, three and four."""
    diagram = bifurcations(PhiNet(version=version, sigma2=sigma2))
    rhos = [each.rho for each in diagram.points]
    why = f"sinks {'–'.join(map(str, diagram.sinks))} as ρ falls through {format_numbers(rhos, 6)}"
    numbers = {"bifurcations": [each.plain() for each in diagram.points], "sinks": list(diagram.sinks)}
    return diagram.sinks == (1, 2, 3, 4), why, numbers


@claim("Section 4, Comparison with SimSiam dynamics", needs="SimSiam has no γ, so both versions are the same")
def simsiam_threshold(version: Version, sigma2: float) -> Result:
    """SimSiam bifurcates from STRONG to MEDIUM at ρ = 1/(4(1+σ²))."""
    formula = 1 / (4 * (1 + sigma2))
    rhos = [each.rho for each in bifurcations(SimSiam(sigma2=sigma2)).points]
    why = f"{format_numbers(rhos, 8)} beside 1/(4(1+σ²)) = {formula:.8g}"
    return len(rhos) == 1 and abs(rhos[0] - formula) < 1e-12, why, {"rho": rhos, "formula": formula}


@claim(
    "Section 4, Comparison with SimSiam dynamics",
    needs="they are one regime only for ρ below SimSiam's threshold or above PhiNet's",
)
def same_threshold(version: Version, sigma2: float) -> Result:
    """STRONG and MEDIUM of SimSiam are those of PhiNet: both begin at the same weight decay."""
    simsiam = bifurcations(SimSiam(sigma2=sigma2)).points[0].rho
    phinet = bifurcations(PhiNet(version=version, sigma2=sigma2)).points[0].rho
    why = f"PhiNet's is {phinet:.6g}, {phinet / simsiam:.4g} times SimSiam's {simsiam:.6g}"
    why += "; between the two SimSiam must collapse and PhiNet need not" * (phinet > simsiam)
    return abs(phinet - simsiam) < 1e-9, why, {"phinet": phinet, "simsiam": simsiam}


@claim(
    "Fig. comparison (ρ = 0.08)",
    needs="a line that the flow crosses has no flow of its own; what can be compared is ψ̇ along it",
)
def conjugate(version: Version, sigma2: float) -> Result:
    """The SimSiam-MEDIUM flow is conjugate with the flow on the nullcline ψ̇ = 0 of PhiNet-MEDIUM."""
    psi = np.linspace(-0.2, 0.5, 2801) * 2.5 / (1 + sigma2)
    system = PhiNet(version=version, sigma2=sigma2, rho=0.08)
    gamma = gamma_nullcline(system, psi)
    rates = system.flow(np.stack([psi, gamma]))
    angle = float(np.degrees(np.arctan(np.abs(np.gradient(gamma, psi)))).max())
    same = _signs(rates[0]) == _signs(SimSiam(sigma2=sigma2, rho=0.08).flow(psi[None])[0])
    largest = [float(np.abs(rate).max()) for rate in rates]
    why = (
        f"the line drawn is γ̇ = 0 (on it |γ̇| ≤ {largest[1]:.0e}, |ψ̇| ≤ {largest[0]:.2g}), which the flow crosses "
        f"at up to {angle:.0f}°; ψ̇ read along it has {'the' if same else 'not the'} signs of SimSiam's"
    )
    numbers = {"largest_psi_rate": largest[0], "largest_gamma_rate": largest[1], "angle": angle, "same_signs": same}
    return same and angle < 1, why, numbers


def _signs(values: Floats) -> list[int]:
    """The sequence of signs, without zeros and repetitions."""
    signs = np.sign(values[np.abs(values) > 1e-15]).astype(int)
    return [int(sign) for k, sign in enumerate(signs) if k == 0 or sign != signs[k - 1]]


STAR, STAR_RHO = (0.08, 0.5), 0.08
"""The black star of the comparison figure, and its weight decay."""
GAMMAS = (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 5.0)
RHOS = (STAR_RHO, 0.03, 0.003, 0.0001)
WEAK = 0.0001
LARGEST_PHI = 100.0


def lowest_saddle(system: PhiNet, sign: int) -> Equilibrium | None:
    """The saddle nearest to the collapse on one side of ψ = 0: its stable manifold is the border of the collapse."""
    saddles = [each for each in equilibria(system) if each.kind == "saddle" and each.psi * sign > 0]
    return min(saddles, key=lambda each: abs(each.psi), default=None)


@claim(
    "Section 4, C1; Fig. comparison (ρ = 0.08)",
    needs="for small ρ and γ(0) > −2, ψ(0) > ρ/(1 + γ(0)/2); it follows from ψ̇ = (1+γ)ψ² − ρψ and γ = γ(0)e^(−ρt), "
    "by which for γ(0) ≤ −2 every small ψ(0) collapses",
)
def c1(version: Version, sigma2: float) -> Result:
    """C1: PhiNet escapes even if ψ(0) is close to zero, as long as γ(0) is large (★: ψ = 0.08, γ = 0.5)."""
    rows = [row for rho in RHOS if (row := _border_row(version, sigma2, rho))]
    star = next((row for row in rows if row["rho"] == STAR_RHO), None)
    if star is None:
        return False, f"PhiNet always collapses at ρ = {STAR_RHO}", rows
    threshold = star["smallest_psi"][GAMMAS.index(STAR[1])]
    if threshold is None:
        return False, f"from γ(0) = {STAR[1]} no ψ(0) escapes at ρ = {STAR_RHO}", rows
    source, last = star["simsiam_source"], rows[-1]
    pairs = zip(last["smallest_psi"], last["small_rho_formula"], strict=True)
    largest_error = max(abs(psi / formula - 1) for psi, formula in pairs if psi is not None)
    why = (
        f"from γ(0) = {STAR[1]} ψ(0) must be above {threshold:.5f}, so ★ at {STAR[0]} "
        f"{'escapes' if threshold < STAR[0] else 'collapses'} ({STAR[0] / threshold - 1:+.1%}); "
        + ("SimSiam has no source: it always collapses" if source is None else f"SimSiam's source is {source:.5f}")
        + f". At ρ = {last['rho']:g} and γ(0) = {format_numbers(GAMMAS, 3)} ψ(0)/ρ must be above "
        f"{format_numbers([(psi or np.nan) / last['rho'] for psi in last['smallest_psi']], 3)}: "
        f"1/(1 + γ(0)/2) to {largest_error:.2%}"
    )
    return threshold < STAR[0] and (source is None or STAR[0] < source), why, rows


def _border_row(version: Version, sigma2: float, rho: float) -> dict[str, Any] | None:
    """The smallest ψ(0) that escapes, for each γ(0), beside SimSiam's source; None where PhiNet always collapses.

    SimSiam's source is None where SimSiam always collapses.
    """
    system = PhiNet(version=version, sigma2=sigma2, rho=rho)
    saddle = lowest_saddle(system, 1)
    sources = [each.psi for each in equilibria(SimSiam(sigma2=sigma2, rho=rho)) if each.kind == "source"]
    if saddle is None:
        return None
    return {
        "rho": rho,
        "gamma": list(GAMMAS),
        "smallest_psi": [None if np.isnan(psi) else psi for psi in smallest_escaping_psi(system, saddle, GAMMAS)],
        "small_rho_formula": [rho / (1 + gamma / 2) for gamma in GAMMAS],
        "simsiam_source": sources[0] if sources else None,
    }


@claim(
    "Section 4, C2; Fig. vecfield (ρ = 0.0001)",
    needs="on the parabola ψ = 0 is never crossed, so a negative start ends at the negative sink or collapses",
)
def c2(version: Version, sigma2: float) -> Result:
    """C2: PhiNet-WEAK has a negative sink, which attracts negative initialization ψ(0) < 0."""
    psis = (-0.4, -0.2, -0.1, -0.05, -0.02, -0.005)
    system = PhiNet(version=version, sigma2=sigma2, rho=WEAK)
    negative = [(each.psi, each["gamma"]) for each in sinks_of(system) if each.psi < 0]
    saddle = lowest_saddle(system, -1)
    if not negative or saddle is None:
        return False, f"no sink with ψ < 0 at ρ = {WEAK:g}", {"sinks": []}
    lower, upper = stable_border(system, saddle, gamma_max=12.0)
    largest_gamma = [border_crossing(upper if psi < saddle.psi else lower, 0, psi) for psi in psis]
    why = (
        f"the sink is at ({negative[0][0]:.4g}, {negative[0][1]:.4g}); it takes γ(0) below "
        f"{format_numbers(largest_gamma, 3)} for ψ(0) = {format_numbers(psis, 3)}"
    ) + "; other negative starts collapse" * (len(negative) == 1)
    return max(largest_gamma) < 0, why, {"sink": list(negative[0]), "psi": list(psis), "largest_gamma": largest_gamma}


OFF_RHO, OFF_PSIS = 0.03, (-0.1, -1.0)


@claim(
    "Section 4, C2, before φ is eliminated (ρ = 0.03)",
    needs=f"φ(0) up to {LARGEST_PHI:g} was tried; at ψ = 0 ψ̇ is φ(1+γ), which is 0 on the parabola φ = ψ² alone",
)
def c2_off_parabola(version: Version, sigma2: float) -> Result:
    """C2: SimSiam-MEDIUM cannot reach the non-collapsed solution from a negative ψ(0), whatever φ(0)."""
    simsiam, system = _simsiam_windows(sigma2), PhiNetPhi(version=version, sigma2=sigma2, rho=OFF_RHO)
    table = {
        f"{gamma:g}": [escaping_phi(psi, partial(_ends_on_side, 1, system, psi, gamma)) for psi in OFF_PSIS]
        for gamma in (0.0, -1.5)
    }
    why = (
        f"from ψ(0) = {format_numbers(OFF_PSIS, 3)} SimSiam crosses ψ = 0 and escapes for φ(0) "
        f"{_format_windows(simsiam)}; "
        + "; ".join(f"PhiNet with γ(0) = {gamma}: {_format_windows(windows)}" for gamma, windows in table.items())
    )
    numbers = {"psi": list(OFF_PSIS), "phi_from_to": {"simsiam": simsiam, **table}}
    return not any(simsiam), why, numbers


@cache
def _simsiam_windows(sigma2: float) -> list[tuple[float, float | None] | None]:
    return [escaping_phi(psi, partial(_simsiam_escapes, sigma2, OFF_RHO, psi)) for psi in OFF_PSIS]


PHIS = np.geomspace(1e-4, 1.0, 81)


@claim(
    "Section 4, C2, before φ is eliminated (ρ = 0.0001)",
    needs=f"φ(0) from {PHIS[0]:g} to {PHIS[-1]:g} was tried, in equal ratios; the parabola has 0.01",
    in_paper=False,
)
def c2_sink_off_parabola(version: Version, sigma2: float) -> Result:
    """C2: the negative sink attracts negative starts off the parabola φ = ψ² as well (not in the paper)."""
    psi = -0.1
    system = PhiNetPhi(version=version, sigma2=sigma2, rho=WEAK)
    if not any(sink.psi < 0 for sink in sinks_of(system)):
        return False, f"no sink with ψ < 0 at ρ = {WEAK:g}", {"attracted_phi": {}}
    attracted = {f"{gamma:g}": PHIS[_ends_on_side(-1, system, psi, gamma, PHIS)] for gamma in (-2.0, -4.0)}
    ranges = "; ".join(f"γ(0) = {gamma}: {_format_range(values, PHIS)}" for gamma, values in attracted.items())
    numbers = {"psi": psi, "attracted_phi": {gamma: values.tolist() for gamma, values in attracted.items()}}
    holds = all(len(values) == len(PHIS) for values in attracted.values())
    return holds, f"from ψ(0) = {psi:g} it is reached with {ranges}", numbers


def _format_range(values: Floats, grid: Floats) -> str:
    if len(values) in (0, len(grid)):
        return f"{'every' if len(values) else 'no'} φ(0)"
    low = "" if values[0] == grid[0] else f" from {values[0]:.3g}"
    return f"φ(0){low}" + ("" if values[-1] == grid[-1] else f" up to {values[-1]:.3g}")


def escaping_phi(psi: float, escapes: Callable[[Floats], NDArray[np.bool_]]) -> tuple[float, float | None] | None:
    """The range of φ(0) from which a negative ψ(0) escapes, to 1 in 80; (low, None) if unbounded; None if empty.

    φ(0) = ψ(0)² itself never does. 48 starts in geometric sequence locate the ends, 16 more refine each.
    """
    grid = np.geomspace(psi**2, LARGEST_PHI, 49)
    good = np.flatnonzero(escapes(grid[1:])) + 1
    if not len(good):
        return None
    first, last = int(good[0]), int(good[-1])
    inner = np.geomspace(grid[first - 1], grid[first], 17)[1:]
    low = float(inner[np.flatnonzero(escapes(inner))[0]])
    if last == len(grid) - 1:
        return low, None
    outer = np.geomspace(grid[last], grid[last + 1], 17)[:-1]
    return low, float(outer[np.flatnonzero(escapes(outer))[-1]])


def _ends_on_side(side: int, system: PhiNetPhi, psi: float, gamma: float, phi: Floats) -> NDArray[np.bool_]:
    """Which φ(0) end in a sink whose ψ has this sign."""
    labels = [k for k, sink in enumerate(sinks_of(system)) if sink.psi * side > 0]
    return np.isin(destinations(system, np.stack([phi, np.full_like(phi, psi), np.full_like(phi, gamma)])), labels)


def _simsiam_escapes(sigma2: float, rho: float, psi: float, phi: Floats) -> NDArray[np.bool_]:
    """The same for SimSiam with φ = ψ² + ω²: ψ̇ = φ(1 − sψ) − ρψ and ω = ω(0)e^(−ρt), as d/dt (ψ² − φ) = −2ρ(ψ² − φ)."""
    s, omega2 = 1 + sigma2, phi - psi**2

    def rate(time: float, state: Floats) -> Floats:
        phi: Floats = state**2 + omega2 * np.exp(-2 * rho * time)
        return phi * (1 - s * state) - rho * state

    end = solve_ivp(rate, (0, 20 / rho), np.full_like(phi, psi), "LSODA", rtol=1e-8, atol=1e-12).y[:, -1]
    escapes: NDArray[np.bool_] = end > 0.1 / s
    return escapes


def _format_windows(windows: Sequence[tuple[float, float | None] | None]) -> str:
    return ", ".join(
        "never" if window is None else f"> {window[0]:.3g}" + (f" and < {window[1]:.3g}" if window[1] else "")
        for window in windows
    )


@claim(
    "Section 4, Eq. PhiNet-dynamics",
    needs="any σ² ≥ 0 and ρ > 0, by Bendixson and Dulac; with φ a cycle would lie on φ = ψ², so none there. "
    "Not proved for the matrix flow or for X-PhiNet",
    in_paper=False,
)
def cycles(version: Version, sigma2: float) -> Result:
    """The flows of (ψ, γ) and of (φ, ψ, γ) have no cycles (not in the paper, which shows none)."""
    psi, gamma = np.meshgrid(np.linspace(-2, 2, 401)[np.arange(401) != 200], np.linspace(-6, 6, 401))
    systems = [PhiNet(version=version, sigma2=sigma2, rho=rho) for rho in (0.5, 0.12, 0.03, 0.003, 0.0001)]
    largest = max(float(dulac(system, np.stack([psi, gamma])).max()) for system in systems)
    formula = "−s(1 + γ²)" if version == "published" else "−s(1 + γ² + ψ²)"
    axis = max(float(np.abs(system.flow(np.stack([0 * gamma, gamma]))[0]).max()) for system in systems)
    why = f"div(F/ψ²) = {formula}, at most {largest:.4g} on the grid; no orbit crosses ψ = 0, where |ψ̇| ≤ {axis:g}"
    return largest < 0 and axis == 0, why, {"largest_divergence": largest, "rate_on_axis": axis}


def dulac(system: PhiNet, state: Floats) -> Floats:
    """div(F/ψ²) from the flow and its Jacobian: (tr J − 2ψ̇/ψ)/ψ². Weight decay cancels: −ρ − ρ + 2ρ = 0."""
    psi, jacobian = state[0], system.jacobian(state)
    divergence: Floats = (jacobian[0, 0] + jacobian[1, 1] - 2 * system.flow(state)[0] / psi) / psi**2
    return divergence
