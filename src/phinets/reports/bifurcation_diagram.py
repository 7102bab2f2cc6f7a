"""What weight decay does: every equilibrium over ρ, and how many sinks there are at each ρ and σ²."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from phinets.dynamics.bifurcations import Bifurcations, bifurcations, branches, interval_center, sink_map
from phinets.dynamics.equilibria import AnySystem
from phinets.dynamics.systems import SimSiam
from phinets.reports.palette import FAINT, INK, LEVELS, SYSTEM
from phinets.reports.phase_portrait import LETTERS, name, sinks

SOLID_STYLE: Mapping[str, Any] = {"linewidth": 2.2, "linestyle": "-"}
DASH_STYLE: Mapping[str, Any] = {"linewidth": 1.4, "linestyle": (0, (4, 3))}


def bifurcation_diagram(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5) -> Figure:
    """Where each equilibrium is as ρ changes, a panel for ψ and one for γ: sinks solid, the rest dashed.

    Beside PhiNet's ψ stands SimSiam's. Every bifurcation is marked with its ρ, every interval with its number of sinks.
    """
    variables = [variable for variable in ("psi", "gamma") if variable in system.variables]
    figure = Figure(figsize=(8, 1.2 + 2.7 * len(variables)), layout="constrained")
    panels: list[Axes] = list(figure.subplots(len(variables), 1, sharex=True, squeeze=False)[:, 0])
    diagram = bifurcations(system, rho_min, rho_max)
    for axes, variable in zip(panels, variables, strict=True):
        axes.set(xscale="log", xlim=(rho_min, rho_max))
        axes.set_ylabel(LETTERS[variable], rotation=0)
        axes.spines[["top", "right"]].set_visible(False)
        if variable == "psi" and not isinstance(system, SimSiam):
            other = SimSiam(sigma2=system.sigma2)
            _draw(axes, other, variable, bifurcations(other, rho_min, rho_max))
        _draw(axes, system, variable, diagram)
    panels[-1].set_xlabel("weight decay ρ")
    _intervals(panels, diagram)
    figure.suptitle(f"{name(system)}, σ² = {system.sigma2:g}", color=INK)
    return figure


def sink_diagram(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5, sigma2_max: float = 5.0) -> Figure:
    """How many sinks there are at each ρ and σ² ≤ sigma2_max; a dashed line is SimSiam's threshold 1/(4(1+σ²))."""
    rhos, sigma2s = np.geomspace(rho_min, rho_max, 400), np.linspace(0, sigma2_max, 101)
    counts = sink_map(system, rhos.tolist(), sigma2s.tolist())
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    colors = ListedColormap(LEVELS)
    axes.pcolormesh(rhos, sigma2s, counts, cmap=colors, vmin=0.5, vmax=len(LEVELS) + 0.5, rasterized=True)
    axes.plot(1 / (4 * (1 + sigma2s)), sigma2s, color=SYSTEM["simsiam"], linestyle="--", linewidth=1.8)
    axes.set(xscale="log", xlim=(rho_min, rho_max), ylim=(0, sigma2_max), xlabel="weight decay ρ")
    axes.set_ylabel("σ²", rotation=0)
    row = len(sigma2s) // 3
    for n in np.unique(counts[row]).tolist():
        here = np.flatnonzero(counts[row] == n)
        axes.text(rhos[here[len(here) // 2]], sigma2s[row], sinks(n), ha="center", color="white" if n > 2 else INK)
    axes.set_title(f"{name(system)} (dashed: SimSiam's threshold)", color=INK)
    return figure


def _draw(axes: Axes, system: AnySystem, variable: str, diagram: Bifurcations) -> None:
    """The branches of one variable, and the bifurcations that they meet in, each with its ρ."""
    simsiam = isinstance(system, SimSiam)
    color = SYSTEM["simsiam" if simsiam else "phinet"]
    for branch in branches(system, diagram.rho_min, diagram.rho_max):
        style = SOLID_STYLE if branch.stable else DASH_STYLE
        axes.plot(branch.rho, branch[variable], color=color, zorder=2 if simsiam else 3, **style)
    for k, each in enumerate(diagram.points):
        at = each.rho, each.at[variable]
        axes.plot(*at, marker="X", markersize=7, color=color, markeredgecolor="white", zorder=4)
        words = f"{name(system).split(',')[0]} " * (k == 0) + f"{each.rho:.4g}"
        axes.annotate(
            words, at, (7, -11 if simsiam else 5), textcoords="offset points", color=color, fontsize=9, zorder=5
        )


def _intervals(panels: Sequence[Axes], diagram: Bifurcations) -> None:
    """A thin line at each bifurcation; above, between them, the number of sinks with the paper's word for it."""
    for axes in panels:
        for each in diagram.points:
            axes.axvline(each.rho, color=FAINT, linewidth=0.8, linestyle=":", zorder=1)
    transform = blended_transform_factory(panels[0].transData, panels[0].transAxes)
    for (high, low), n, word in zip(diagram.intervals, diagram.sinks, diagram.regimes, strict=True):
        label = sinks(n) + f"\n{word}" * bool(word)
        place: dict[str, Any] = {"transform": transform, "ha": "center", "va": "bottom"}
        panels[0].text(interval_center(high, low), 1.03, label, fontsize=9, color=INK, **place)
