"""A matrix flow over time, drawn: what decays, and the eigenvalues beside their prediction."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from phinets.reports.palette import CA1, CA3, FAINT, FAST, INK, SLOW, TERMS

if TYPE_CHECKING:
    from phinets.dynamics.matrix_trajectories import Following

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
"""Norms are not drawn below: there the integrator's own error begins."""


def flow_figure(found: "Following", title: str) -> Figure:
    """Left the norms on a logarithmic scale, then the eigenvalues: the matrix flow's solid, the reduced ones dashed."""
    shown = [name for name in VARIABLES if name in found.eigenvalues]
    figure = Figure(figsize=(4.4 + 3.4 * len(shown), 3.6), layout="constrained")
    axes = figure.subplots(1, 1 + len(shown), squeeze=False)[0]
    _norms(axes[0], found)
    for place, name in zip(axes[1:], shown, strict=True):
        _eigenvalues(place, found, name)
    figure.suptitle(title, color=INK, fontsize=11)
    return figure


def _norms(axes: Axes, found: "Following") -> None:
    times = found.path.times
    ends: list[tuple[float, str, str]] = []
    for name, (label, color) in NORMS.items():
        if name in found.norms:
            values = np.where(found.norms[name] > BOTTOM, found.norms[name], np.nan)
            axes.semilogy(times, values, color=color, lw=1.6)
            seen = np.flatnonzero(np.isfinite(values))
            ends.append((float(values[seen[-1]]) if len(seen) else BOTTOM, label, color))
    axes.set_ylim(BOTTOM / 2, None)
    low, high = np.log10(axes.get_ylim())
    for height, (_, label, color) in zip(_apart([np.log10(e[0]) for e in ends], (high - low) / 14), ends, strict=True):
        axes.annotate(
            label,
            (1.02, (height - low) / (high - low)),
            xycoords="axes fraction",
            color=color,
            fontsize=8,
            va="center",
        )
    _plain(axes, "norms")


def _eigenvalues(axes: Axes, found: "Following", name: str) -> None:
    label, color = VARIABLES[name]
    times = found.path.times
    axes.axhline(0, color=FAINT, lw=0.6)
    axes.plot(times, found.predicted[name], color=INK, lw=1.1, ls=(0, (4, 3)))
    axes.plot(times, found.eigenvalues[name], color=color, lw=1.8, alpha=0.8)
    axes.annotate("matrix flow", (0.97, 0.97), xycoords="axes fraction", color=color, fontsize=8, ha="right", va="top")
    axes.annotate("reduced, dashed", (0.97, 0.9), xycoords="axes fraction", color=INK, fontsize=8, ha="right", va="top")
    axes.margins(y=0.16)
    _plain(axes, label)


def _apart(heights: list[float], gap: float) -> list[float]:
    """Heights in the same order, moved up where two would be nearer than the gap."""
    placed = list(heights)
    order = np.argsort(heights)
    for below, above in pairwise(order):
        placed[above] = max(placed[above], placed[below] + gap)
    return placed


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, color=INK, fontsize=10, loc="left")
    axes.set_xlabel("time", color=INK, fontsize=9)
    axes.tick_params(colors=INK, labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
