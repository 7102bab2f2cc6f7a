"""Phase portraits: PhiNet's plane, the paper's four regimes, SimSiam's line, and the two beside each other."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from phinets.dynamics.paths import Window, sample_starts, window_around
from phinets.dynamics.systems import PhiNet, SimSiam, Version
from phinets.reports.palette import INK
from phinets.reports.phase_plane import legend, plane
from phinets.reports.psi_line import axis, rate, run
from phinets.reports.words import sinks_of, title

REGIMES: Mapping[str, float] = {"strong": 0.12, "medium": 0.03, "light": 0.003, "weak": 0.0001}
"""The paper's four levels of weight decay."""
STAR = (0.08, 0.5)
"""The start of the paper's comparison: ψ(0), γ(0)."""
COMPARED_RHO = 0.08
"""The weight decay of our comparison, at which both can learn."""
NEAR_THRESHOLD = (1.08, 0.8)
"""Where the paper draws SimSiam: weight decays in shares of its threshold τ²/4s."""


def portrait(system: PhiNet, window: Window | None = None, starts: Sequence[Sequence[float]] = ()) -> Figure:
    """The state space of PhiNet under one weight decay; without starts, a few are chosen."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    seen = window or window_around([system], starts)
    plane(axes, system, seen, starts or sample_starts(seen))
    axes.set_title(f"{title(system)}: {sinks_of(system)}", color=INK)
    legend(figure)
    return figure


def regimes(version: Version, sigma2: float) -> Figure:
    """The paper's figure of four levels of weight decay; each panel has the box of its own equilibria."""
    figure = Figure(figsize=(11, 7.6), layout="constrained")
    for axes, (name, rho) in zip(figure.subplots(2, 2).flat, REGIMES.items(), strict=True):
        system = PhiNet(sigma2=sigma2, rho=rho, version=version)
        seen = window_around([system])
        plane(axes, system, seen, sample_starts(seen))
        axes.set_title(f"{name.upper()}, ρ = {rho:g}: {sinks_of(system)}", color=INK)
    figure.suptitle(f"PhiNet, {version}, σ² = {sigma2:g}", color=INK)
    legend(figure)
    return figure


def line(systems: Sequence[SimSiam], window: Window | None = None, starts: Sequence[float] = ()) -> Figure:
    """SimSiam's rate over ψ, a panel for each system: where it grows, where it shrinks, where it rests."""
    figure = Figure(figsize=(5.5 * len(systems), 3.4), layout="constrained")
    seen = window or window_around(systems, [[start] for start in starts])
    for axes, system in zip(figure.subplots(1, len(systems), squeeze=False).flat, systems, strict=True):
        rate(axes, system, seen)
        for start in starts:
            run(axes, system, start)
        axes.set_title(f"{title(system)}: {sinks_of(system)}", color=INK)
    return figure


def around_threshold(system: SimSiam) -> list[SimSiam]:
    """The system under the paper's two weight decays, above and below its threshold."""
    return [system.with_rho(share * system.tau**2 / (4 * system.s)) for share in NEAR_THRESHOLD]


def comparison(system: PhiNet, window: Window | None = None, starts: Sequence[Sequence[float]] = (STAR,)) -> Figure:
    """PhiNet above SimSiam on the same ψ axis, from the same starts: what the second predictor saves."""
    simsiam = SimSiam(sigma2=system.sigma2, rho=system.rho)
    seen = window or window_around([system, simsiam], starts)
    figure = Figure(figsize=(7, 6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[4, 1], sharex=True)
    plane(above, system, seen, starts)
    above.set(xlabel="")
    above.set_title(title(system), color=INK)
    below.set(yticks=[], ylim=(-1, 1))
    axis(below, simsiam, seen)
    for start in starts:
        run(below, simsiam, start[0])
    below.set_title(title(simsiam), color=INK)
    legend(figure)
    return figure
