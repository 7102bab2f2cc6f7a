"""The figure of a matrix flow over time: norms, and eigenvalues beside the reduced equations."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from phinets.dynamics.matrix_trajectories import FlowComparison
from phinets.reports.figures import label_ends
from phinets.reports.palette import CA1, CA3, FAINT, FAST, INK, SLOW, TERMS

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
    figure = Figure(figsize=(4.4 + 3.4 * len(variables), 3.6), layout="constrained")
    axes = figure.subplots(1, 1 + len(variables), squeeze=False)[0]
    _norms(axes[0], comparison)
    for panel, name in zip(axes[1:], variables, strict=True):
        _eigenvalues(panel, comparison, name)
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
    axes.spines[["top", "right"]].set_visible(False)
