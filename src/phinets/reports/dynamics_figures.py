"""What weight decay does to equilibria and their number, and a matrix flow over time beside the reduced equations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory

from phinets.dynamics.bifurcations import Bifurcations, bifurcations, branches, interval_center, sink_map
from phinets.dynamics.equilibria import AnySystem
from phinets.dynamics.matrix_trajectories import FlowComparison
from phinets.dynamics.systems import SimSiam
from phinets.reports.figures import label_ends, new_figure
from phinets.reports.palette import CA1, CA3, FAINT, FAST, INK, LEVELS, SLOW, SYSTEM, TERMS
from phinets.reports.phase_portrait import LETTERS, sinks, system_name

SOLID_STYLE: Mapping[str, Any] = {"linewidth": 2.2, "linestyle": "-"}
DASH_STYLE: Mapping[str, Any] = {"linewidth": 1.4, "linestyle": (0, (4, 3))}


def bifurcation_diagram(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5) -> Figure:
    """Where each equilibrium is as ρ changes, a panel for ψ and one for γ: sinks solid, the rest dashed.

    Beside PhiNet's ψ stands SimSiam's. Every bifurcation is marked with its ρ, every interval with its number of sinks.
    """
    variables = [variable for variable in ("psi", "gamma") if variable in system.variables]
    figure, grid = new_figure(8, 1.2 + 2.7 * len(variables), len(variables), sharex=True)
    panels: list[Axes] = list(grid[:, 0])
    diagram = bifurcations(system, rho_min, rho_max)
    for axes, variable in zip(panels, variables, strict=True):
        axes.set(xscale="log", xlim=(rho_min, rho_max))
        axes.set_ylabel(LETTERS[variable], rotation=0)
        if variable == "psi" and not isinstance(system, SimSiam):
            other = SimSiam(sigma2=system.sigma2)
            _draw(axes, other, variable, bifurcations(other, rho_min, rho_max))
        _draw(axes, system, variable, diagram)
    panels[-1].set_xlabel("weight decay ρ")
    _intervals(panels, diagram)
    figure.suptitle(f"{system_name(system)}, σ² = {system.sigma2:g}", color=INK)
    return figure


def sink_diagram(system: AnySystem, rho_min: float = 1e-5, rho_max: float = 0.5, sigma2_max: float = 5.0) -> Figure:
    """How many sinks there are at each ρ and σ² ≤ sigma2_max; a dashed line is SimSiam's threshold 1/(4(1+σ²))."""
    rhos, sigma2s = np.geomspace(rho_min, rho_max, 400), np.linspace(0, sigma2_max, 101)
    counts = sink_map(system, rhos.tolist(), sigma2s.tolist())
    figure, ((axes,),) = new_figure(7, 4.6)
    colors = ListedColormap(LEVELS)
    axes.pcolormesh(rhos, sigma2s, counts, cmap=colors, vmin=0.5, vmax=len(LEVELS) + 0.5, rasterized=True)
    axes.plot(1 / (4 * (1 + sigma2s)), sigma2s, color=SYSTEM["simsiam"], linestyle="--", linewidth=1.8)
    axes.set(xscale="log", xlim=(rho_min, rho_max), ylim=(0, sigma2_max), xlabel="weight decay ρ")
    axes.set_ylabel("σ²", rotation=0)
    row = len(sigma2s) // 3
    for n in np.unique(counts[row]).tolist():
        here = np.flatnonzero(counts[row] == n)
        axes.text(rhos[here[len(here) // 2]], sigma2s[row], sinks(n), ha="center", color="white" if n > 2 else INK)
    axes.set_title(f"{system_name(system)} (dashed: SimSiam's threshold)", color=INK)
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
        words = f"{system_name(system).split(',')[0]} " * (k == 0) + f"{each.rho:.4g}"
        offset = 7, -11 if simsiam else 5
        axes.annotate(words, at, offset, textcoords="offset points", color=color, fontsize=9, zorder=5)


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


NORMS: Mapping[str, tuple[str, str]] = {
    "C1": ("[Φ, W$_g$]", CA1),
    "C2": ("[Φ, W$_h$]", CA3),
    "C3": ("[W$_g$, W$_h$]", FAST),
    "balance": ("W$_h^⊤$W$_h$ − Φ", SLOW),
    "asymmetry_g": ("W$_g$ − W$_g^⊤$", TERMS["decorrelation"]),
    "asymmetry_h": ("W$_h$ − W$_h^⊤$", TERMS["info_nce"]),
}
VARIABLES = {"psi": ("ψ, eigenvalues of W$_h$", CA3), "gamma": ("γ, eigenvalues of W$_g$", CA1)}
BOTTOM = 1e-8
"""Norms below this are not drawn: they are within the integrator's error."""


def flow_figure(comparison: FlowComparison, title: str) -> Figure:
    """Left the norms on a logarithmic scale, then the eigenvalues: the matrix flow's solid, the reduced ones dashed."""
    variables = [name for name in VARIABLES if name in comparison.eigenvalues]
    figure, ((first, *others),) = new_figure(4.4 + 3.4 * len(variables), 3.6, columns=1 + len(variables), kind=Figure)
    _norms(first, comparison)
    for axes, variable in zip(others, variables, strict=True):
        _eigenvalues(axes, comparison, variable)
    figure.suptitle(title, color=INK, fontsize=11)
    return figure


def _norms(axes: Axes, comparison: FlowComparison) -> None:
    times = comparison.trajectory.times
    lines = [(*style, comparison.norms[name]) for name, style in NORMS.items() if name in comparison.norms]
    for _, color, norms in lines:
        axes.semilogy(times, np.where(norms > BOTTOM, norms, np.nan), color=color, lw=1.6)
    axes.set_ylim(BOTTOM / 2, None)
    label_ends(axes, float(times[-1]), [(label, color, np.maximum(norms, BOTTOM)) for label, color, norms in lines])
    _plain(axes, "norms")


def _eigenvalues(axes: Axes, comparison: FlowComparison, name: str) -> None:
    label, color = VARIABLES[name]
    times = comparison.trajectory.times
    axes.axhline(0, color=FAINT, lw=0.6)
    axes.plot(times, comparison.predicted[name], color=INK, lw=1.1, ls=(0, (4, 3)))
    axes.plot(times, comparison.eigenvalues[name], color=color, lw=1.8, alpha=0.8)
    axes.annotate("matrix flow", (0.97, 0.97), xycoords="axes fraction", color=color, fontsize=8, ha="right", va="top")
    axes.annotate("reduced, dashed", (0.97, 0.9), xycoords="axes fraction", color=INK, fontsize=8, ha="right", va="top")
    axes.margins(y=0.16)
    _plain(axes, label)


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, color=INK, fontsize=10, loc="left")
    axes.set_xlabel("time", color=INK, fontsize=9)
    axes.tick_params(colors=INK, labelsize=8)
