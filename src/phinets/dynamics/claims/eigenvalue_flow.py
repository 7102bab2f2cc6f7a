"""Statements on the eigenvalue dynamics: regimes, thresholds, SimSiam beside PhiNet, C1 and C2, cycles.

The docstring of each check is the statement, true or not. Where `statement` is given it holds the paper's own words, in
quotation marks, and `needs` says what is tested.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from phinets.dynamics.basins import FARTHEST, Box, basins, destinations, simsiam_basins, sinks_of
from phinets.dynamics.bifurcations import bifurcations
from phinets.dynamics.claims.check import Result, claim, format_numbers
from phinets.dynamics.equilibria import Equilibrium, equilibria
from phinets.dynamics.phase_plane import (
    border_crossing,
    escape_windows,
    gamma_nullcline,
    smallest_escaping_psi,
    stable_border,
)
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
    in_paper=False,
)
def same_threshold(version: Version, sigma2: float) -> Result:
    """PhiNet leaves STRONG at the weight decay at which SimSiam does (not in the paper)."""
    simsiam = bifurcations(SimSiam(sigma2=sigma2)).points[0].rho
    phinet = bifurcations(PhiNet(version=version, sigma2=sigma2)).points[0].rho
    why = f"PhiNet's is {phinet:.6g}, {phinet / simsiam:.4g} times SimSiam's {simsiam:.6g}"
    why += "; between the two SimSiam must collapse and PhiNet need not" * (phinet > simsiam)
    return abs(phinet - simsiam) < 1e-9, why, {"phinet": phinet, "simsiam": simsiam}


@claim(
    "Fig. comparison, caption (ρ = 0.08)",
    statement="“The SimSiam-MEDIUM flow is conjugate with the flow on the nullcline ψ̇ = 0 (green real line) in "
    "PhiNet-MEDIUM”",
    needs="tested: whether the flow stays on the line drawn, and whether ψ̇ along it has the signs of SimSiam's; a line "
    "that the flow crosses has no flow of its own",
)
def conjugate(version: Version, sigma2: float) -> Result:
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
RHOS = (STAR_RHO, 0.03, 0.003, 0.0001)
WEAK = 0.0001
LARGEST_PHI = 100.0


def lowest_saddle(system: PhiNet, sign: int) -> Equilibrium | None:
    """The saddle nearest to the collapse on one side of ψ = 0: its stable manifold is the border of the collapse."""
    saddles = [each for each in equilibria(system) if each.kind == "saddle" and each.psi * sign > 0]
    return min(saddles, key=lambda each: abs(each.psi), default=None)


@claim(
    "Section 4, C1",
    statement="C1: “PhiNet avoids collapse even if ψ(0) is close to zero, as long as γ(0) is sufficiently large”",
    needs="tested: for ρ of Fig. comparison (0.08) and Fig. vecfield, whether from every ψ(0) > 0 all γ(0) above some "
    f"bound escape, up to {FARTHEST:g}. They do for ρ < 1/8(1+σ²), and no longer above: for large γ, u = γψ obeys "
    "u̇ = {1 − (1+σ²)u}u² − 2ρu. For small ρ and γ(0) > −2 the border is ψ(0) = ρ/(1 + γ(0)/2); from γ(0) ≤ −2 every "
    "small ψ(0) collapses",
)
def c1(version: Version, sigma2: float) -> Result:
    rows = [_window_row(version, sigma2, rho) for rho in RHOS]
    limited = [row["rho"] for row in rows if row["smallest_psi"] != 0]
    why = "; ".join(f"ρ = {row['rho']:g}: {_format_row(row)}" for row in rows)
    return not limited, f"not at ρ = {format_numbers(limited)}. {why}" if limited else why, rows


def _window_row(version: Version, sigma2: float, rho: float) -> dict[str, Any]:
    """The window of γ(0) for ψ(0) = ρ, ρ/2 and ρ/4, and the smallest ψ(0); None where PhiNet always collapses.

    SimSiam collapses from ψ(0) ≤ ρ: its source is above ρ.
    """
    system, psis = PhiNet(version=version, sigma2=sigma2, rho=rho), [rho, rho / 2, rho / 4]
    saddle = lowest_saddle(system, 1)
    if saddle is None:
        return {"rho": rho, "psi": psis, "smallest_psi": None, "gamma_from_to": [None] * 3}
    border = escape_windows(system, saddle, psis)
    return {"rho": rho, "psi": psis, "smallest_psi": border.smallest_psi, "gamma_from_to": list(border.windows)}


def _format_row(row: dict[str, Any]) -> str:
    if row["smallest_psi"] is None:
        return "every start collapses"
    pairs = zip(row["psi"], row["gamma_from_to"], strict=True)
    words = ", ".join(f"ψ(0) = {psi:.4g} escapes for γ(0) {_format_windows([window])}" for psi, window in pairs)
    if not row["smallest_psi"]:
        return words
    return f"only inside a window, {words}, and below ψ(0) = {row['smallest_psi']:.4g} no γ(0) escapes"


@claim(
    "Section 4, C1, headline",
    statement="C1: “The retraction basin to non-collapsed solutions is wider”",
    needs="tested: at ρ = 0.08, the share that learns of the starts −0.2 ≤ ψ(0) ≤ 0.6, −1.5 ≤ γ(0) ≤ 1.5 (ψ in units "
    "of 2.5/(1+σ²)), on a grid of 101 × 101; the paper names no box, and a random W_g has eigenvalues of both signs",
)
def c1_basin(version: Version, sigma2: float) -> Result:
    system, unit = PhiNet(version=version, sigma2=sigma2, rho=STAR_RHO), 2.5 / (1 + sigma2)
    boxes = {low: Box(psi_min=-0.2 * unit, psi_max=0.6 * unit, gamma_min=low, gamma_max=1.5) for low in (-1.5, 0.0)}
    phinet = {low: basins(system, box, 101).non_collapsed for low, box in boxes.items()}
    simsiam = simsiam_basins(system, boxes[0.0], 101).non_collapsed
    why = (
        f"{phinet[-1.5]:.1%} of PhiNet's starts learn and {simsiam:.1%} of SimSiam's; of those with γ(0) ≥ 0 "
        f"{phinet[0.0]:.1%} of PhiNet's"
    )
    numbers = {"phinet": phinet[-1.5], "phinet_gamma_above_0": phinet[0.0], "simsiam": simsiam}
    return phinet[-1.5] > simsiam, why, numbers


@claim(
    "Section 4, C1; Fig. comparison (ρ = 0.08)",
    statement="C1: “see the initial point ★ in Figure 5”: PhiNet escapes from it, SimSiam does not",
    needs="tested: the one start ψ(0) = 0.08, γ(0) = 0.5",
)
def c1_star(version: Version, sigma2: float) -> Result:
    system = PhiNet(version=version, sigma2=sigma2, rho=STAR_RHO)
    saddle = lowest_saddle(system, 1)
    threshold = smallest_escaping_psi(system, saddle, STAR[1:])[0] if saddle else np.nan
    source = max((each.psi for each in equilibria(SimSiam(sigma2=sigma2, rho=STAR_RHO)) if each.kind == "source"),
                 default=None)  # fmt: skip
    phinet = f"from γ(0) = {STAR[1]} no ψ(0) escapes"
    if not np.isnan(threshold):
        phinet = f"from γ(0) = {STAR[1]} ψ(0) must be above {threshold:.5f}; ★ is at {STAR[0] / threshold - 1:+.1%}"
    simsiam = "SimSiam has no source: it always collapses" if source is None else f"SimSiam's source is {source:.5f}"
    numbers = {"smallest_psi": None if np.isnan(threshold) else threshold, "simsiam_source": source}
    return threshold < STAR[0] and (source is None or STAR[0] < source), f"{phinet}; {simsiam}", numbers


@claim(
    "Section 4, C2; Fig. vecfield (ρ = 0.0001)",
    statement="C2: “PhiNet-WEAK has a negative sink (at the bottom left in Figure 3), which attracts negative "
    "initialization ψ(0) < 0”",
    needs="tested: whether there is a sink with ψ < 0, and whether from each of six ψ(0) < 0 some γ(0) reaches it; on "
    "the parabola ψ = 0 is never crossed, so a negative start ends there or collapses",
)
def c2(version: Version, sigma2: float) -> Result:
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
    "Section 4, C2",
    statement="C2: “In SimSiam-MEDIUM, ψ cannot be attracted to the non-collapsed solution if ψ(0) is initialized to "
    "negative”",
    needs="tested on Eq. SimSiam-dynamics, whose one variable is ψ: at ρ = 0.03, ψ(0) from −1000 to −0.000001; SimSiam "
    "has no γ, so both versions are the same",
)
def c2_simsiam(version: Version, sigma2: float) -> Result:
    system, psi = SimSiam(sigma2=sigma2, rho=OFF_RHO), -np.geomspace(1e-6, 1e3, 181)
    ends = np.array([sink.psi for sink in sinks_of(system)])[destinations(system, psi[None])]
    collapsed, lowest = int((ends == 0).sum()), float(system.flow(psi[None]).min())
    why = f"{collapsed} of {len(psi)} negative starts collapse: ψ̇ > 0 for ψ < 0 (at least {lowest:.2g}), and ψ̇ = 0 at 0"
    return (
        collapsed == len(psi) and lowest > 0,
        why,
        {"starts": len(psi), "collapsed": collapsed, "lowest_rate": lowest},
    )


@claim(
    "Section 4, C2, before φ is eliminated (ρ = 0.03)",
    needs=f"φ(0) up to {LARGEST_PHI:g} was tried; at ψ = 0 ψ̇ is φ(1+γ), which is 0 on the parabola φ = ψ² alone",
    in_paper=False,
)
def c2_off_parabola(version: Version, sigma2: float) -> Result:
    """C2: off the parabola φ = ψ² SimSiam-MEDIUM cannot escape from a negative ψ(0) either (not in the paper)."""
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


DRAWN_TO = 0.005
"""Half of the last digit of the coordinates in the figures."""


def _markers(version: Version) -> dict[str, tuple[SimSiam | PhiNet, str, tuple[float, ...]]]:
    """The dots and triangles of the figures' TikZ source, but those at the origin: system, kind, ψ (and γ)."""
    alone, beside = SimSiam(sigma2=0.5, rho=0.8 / 6), SimSiam(sigma2=1.5, rho=STAR_RHO)
    phinet = PhiNet(version=version, sigma2=1.5, rho=STAR_RHO)
    return {
        "Fig. simsiam ●": (alone, "sink", (0.48,)),
        "Fig. simsiam, border of the basin": (alone, "source", (0.2,)),
        "Fig. comparison, PhiNet ●": (phinet, "sink", (0.33, 0.066)),
        "Fig. comparison, PhiNet ▲": (phinet, "saddle", (0.105, 0.02)),
        "Fig. comparison, SimSiam ●": (beside, "sink", (0.33,)),
        "Fig. comparison, SimSiam ▲": (beside, "source", (0.105,)),
    }


@claim(
    "Fig. simsiam (σ² = 0.5, ρ = 0.8/6) and Fig. comparison (σ² = 1.5, ρ = 0.08), TikZ source",
    needs=f"tested: the coordinates are those of an equilibrium to {DRAWN_TO}; σ² is the figure's; the markers at the "
    "origin are right, and Fig. vecfield has no coordinates",
)
def markers(version: Version, sigma2: float) -> Result:
    """The markers ● and ▲ of the figures lie at equilibria of their systems."""
    rows: dict[str, dict[str, Any]] = {}
    for name, (system, kind, drawn) in _markers(version).items():
        (place,) = [each.state for each in equilibria(system) if each.kind == kind and not each.collapsed]
        off = max(abs(a - b) for a, b in zip(drawn, place, strict=True))
        rows[name] = {"drawn": list(drawn), "is": list(place), "off": off}
    wrong = {name: row for name, row in rows.items() if row["off"] > DRAWN_TO}
    words = [
        f"{name} at ({format_numbers(row['drawn'])}), is ({format_numbers(row['is'])})" for name, row in wrong.items()
    ]
    return not wrong, f"{len(wrong)} of {len(rows)} are off: {'; '.join(words)}", rows


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
