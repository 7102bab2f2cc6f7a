"""The parts of a phase portrait, drawn into axes: stream lines, nullclines, borders, trajectories, marks and labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from phinets.dynamics.equilibria import Equilibrium, equilibria
from phinets.dynamics.paths import Window, gamma_nullcline, psi_nullcline, stable_manifold, trajectory
from phinets.dynamics.systems import Floats, PhiNet
from phinets.reports.palette import ALIVE, BORDER, FAINT, INK, LOST, NULLCLINE, SADDLE, SINK, SOURCE

ASPECT = np.array([[1.5], [1.0]])
"""Width and height of axes, roughly: what is even on the paper is not in shares of each."""
DASHES = (0, (5, 3))
MARKS = {"sink": ("o", SINK), "saddle": ("D", SADDLE), "source": ("o", SOURCE), "degenerate": ("X", INK)}
"""Shape and color of each kind; only sinks are filled."""
DIRECTIONS = np.stack([[np.cos(a), np.sin(a)] for a in np.arange(0, 2 * np.pi, np.pi / 8)])
"""Ways from a point to its label, the best first where they are equally free."""


def plane(axes: Axes, system: PhiNet, window: Window, starts: Sequence[Sequence[float]] = ()) -> None:
    """A whole portrait; every equilibrium and every curve is named where there is room."""
    axes.set(xlim=(window.psi_min, window.psi_max), ylim=(window.gamma_min, window.gamma_max))
    axes.set_xlabel("ψ")
    axes.set_ylabel("γ", rotation=0)
    axes.spines[["top", "right"]].set_visible(False)
    points = equilibria(system)
    _field(axes, system, window)
    curves = _nullclines(axes, system, window)
    for saddle in (point for point in points if point.kind == "saddle"):
        for arm in stable_manifold(system, saddle, window):
            axes.plot(*arm, color=BORDER, linewidth=1.4, linestyle=DASHES, zorder=3)
            curves.append(arm)
    for start in starts:
        curves.append(path(axes, system, start))
    for point in points:
        mark(axes, (point.psi, point.gamma or 0.0), point.kind)
    whole = axes.get_figure(root=True)
    if whole is not None and (layout := whole.get_layout_engine()) is not None:
        layout.execute(whole)  # only now have the axes their size
    _name(axes, window, points, curves)


def path(axes: Axes, system: PhiNet, start: Sequence[float]) -> Floats:
    """The trajectory of a start with its ★: blue where it learns, gray where it collapses."""
    states, sink = trajectory(system, start)
    color = color_of(sink)
    axes.plot(*states, color=color, linewidth=1.8, zorder=4)
    axes.plot(*start, marker="*", markersize=10, color=color, zorder=6)
    arrow_on(axes, states, color)
    return states


def color_of(sink: Equilibrium | None) -> str:
    """Of a trajectory that ends there; one that ends at no sink neither learns nor collapses."""
    if sink is None:
        return INK
    return LOST if sink.collapsed else ALIVE


def arrow_on(axes: Axes, line: Floats, color: str) -> None:
    """A head halfway along a line, as the axes show it."""
    seen = axes.transData.transform(line.T)
    along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(seen, axis=0), axis=1))])
    (x, y), (next_x, next_y) = ([np.interp(along[-1] * share, along, v) for v in line] for share in (0.5, 0.53))
    looks = {"arrowstyle": "-|>", "color": color, "mutation_scale": 14}
    axes.annotate("", (next_x, next_y), (x, y), arrowprops=looks, zorder=5)


def mark(axes: Axes, at: tuple[float, float], kind: str) -> None:
    """The sign of an equilibrium; a sink lies above all others."""
    axes.plot(*at, **_sign(kind), zorder=8 if kind == "sink" else 7)


def _sign(kind: str) -> dict[str, Any]:
    shape, color = MARKS[kind]
    fill = color if kind == "sink" else "white"
    size = 7 if kind == "saddle" else 8
    return {"marker": shape, "color": color, "markerfacecolor": fill, "markeredgewidth": 1.8, "markersize": size}


def _field(axes: Axes, system: PhiNet, window: Window) -> None:
    """Short pieces of stream lines on an even grid, each with a head: which way, not how fast."""
    shares = np.stack(np.meshgrid((np.arange(22) + 0.5) / 22, (np.arange(15) + 0.5) / 15)).reshape(2, -1)
    steps = [shares]
    for _ in range(12):
        rate = system.flow(window.corner[:, None] + steps[-1] * window.size[:, None]) / window.size[:, None]
        rate *= ASPECT
        steps.append(steps[-1] + 0.0022 * rate / np.maximum(np.linalg.norm(rate, axis=0), 1e-300) / ASPECT)
    points = window.corner + np.stack(steps, axis=-1).transpose(1, 2, 0) * window.size
    axes.add_collection(LineCollection(list(points), colors=FAINT, linewidths=0.9, alpha=0.6, zorder=1))
    ahead = (steps[-1] - steps[-2]) * ASPECT / 0.0022
    aside = np.stack([-ahead[1], ahead[0]])
    corners = [steps[-1] + 0.007 * (a * ahead + b * aside) / ASPECT for a, b in ((1, 0), (-0.6, 0.6), (-0.6, -0.6))]
    heads = window.corner + np.stack(corners).transpose(2, 0, 1) * window.size
    axes.add_collection(PolyCollection(list(heads), facecolors=FAINT, alpha=0.75, linewidths=0, zorder=1))


def _nullclines(axes: Axes, system: PhiNet, window: Window) -> list[Floats]:
    """ψ̇ = 0 (its line ψ = 0 and its curve) drawn through, γ̇ = 0 dotted; the two curves."""
    psi = np.linspace(window.psi_min, window.psi_max, 1000)
    of_psi, of_gamma = psi_nullcline(system), np.stack([psi, gamma_nullcline(system, psi)])
    axes.axvline(0, color=NULLCLINE, linewidth=1.8, zorder=2)
    axes.plot(*of_psi, color=NULLCLINE, linewidth=1.8, zorder=2, gid="psi-nullcline")
    axes.plot(*of_gamma, color=NULLCLINE, linewidth=2, linestyle=(0, (1, 1.5)), zorder=2, gid="gamma-nullcline")
    return [of_psi, of_gamma]


def legend(figure: Figure) -> None:
    """What the signs mean, in a line below the panels."""
    signs = [
        *(Line2D([], [], linestyle="", label=kind, **_sign(kind)) for kind in ("sink", "saddle")),
        Line2D([], [], color=BORDER, linestyle=DASHES, label="border of basins"),
        Line2D([], [], color=ALIVE, marker="*", label="learns"),
        Line2D([], [], color=LOST, marker="*", label="collapses"),
    ]
    figure.legend(handles=signs, loc="outside lower center", ncols=len(signs), frameon=False, fontsize=9)


def _name(axes: Axes, window: Window, points: Sequence[Equilibrium], curves: Sequence[Floats]) -> None:
    """Words beside the sinks and the nullclines, each where it is furthest from everything else."""
    lines = [_even((c - window.corner[:, None]) / window.size[:, None]) for c in curves]
    collapsed = np.stack(np.broadcast_arrays(-window.corner[0] / window.size[0], np.linspace(0, 1, 100)), axis=1)
    spots = (np.array([[p.psi, p.gamma or 0.0] for p in points]) - window.corner) / window.size
    ink = np.concatenate([collapsed, spots, *lines])
    for spot, point in zip(spots, points, strict=True):
        if point.kind == "sink" and (np.abs(spot - 0.5) < 0.5).all():
            ink = _put(axes, f"({_short(point.psi)}, {_short(point.gamma or 0.0)})", spot, ink, SINK)
    for line, other, word in ((lines[0], lines[1], "ψ̇ = 0"), (lines[1], lines[0], "γ̇ = 0")):
        inner = line[((line > 0.08) & (line < 0.92)).all(axis=1)]
        if len(inner):
            rest = np.concatenate([spots, collapsed, other])
            free = np.linalg.norm(inner[:, None] - rest[None], axis=-1).min(axis=1)
            ink = _put(axes, word, inner[int(free.argmax())], ink, NULLCLINE)


def _even(line: Floats) -> Floats:
    """Points (n, 2), about a hundredth of the axes apart, along what is seen of a line."""
    start, end = line[:, :-1].T, line[:, 1:].T
    near = (np.abs(np.stack([start, end]) - 0.5) < 0.7).all(axis=(0, 2))
    far = near & (np.linalg.norm(end - start, axis=1) > 0.01)
    filled = [np.linspace(a, b, 100) for a, b in zip(start[far], end[far], strict=True)]
    points = np.concatenate([start[near], *filled])
    return np.unique(points[(np.abs(points - 0.5) < 0.5).all(axis=1)].round(2), axis=0)


def _short(value: float) -> str:
    return (f"{value:.2g}" if abs(value) < 0.01 else f"{value:.2f}").replace("-", "−")


def _put(axes: Axes, word: str, spot: Floats, ink: Floats, color: str) -> Floats:
    """Write a word near a spot, in shares of the axes, where it covers nothing; its place joins the ink."""
    box = axes.get_window_extent()
    size = np.array([5.8 * len(word), 12]) * axes.figure.dpi / 72 / np.array([box.width, box.height])

    def merit(center: Floats) -> float:
        free = np.linalg.norm(np.maximum(np.abs(ink - center) - size / 2, 0), axis=1).min()
        outside = np.abs(center - 0.5) + size / 2 > 0.52
        return float(min(free, 0.02) - np.linalg.norm(center - spot) / 20 - outside.any())

    ways = [(away, way) for away in (0.02, 0.04, 0.07, 0.11, 0.16) for way in DIRECTIONS]
    best = max((spot + away * way + np.sign(way.round(6)) * size / 2 for away, way in ways), key=merit)
    axes.text(
        best[0], best[1], word, transform=axes.transAxes, color=color, fontsize=9, ha="center", va="center", zorder=9
    )
    grid = np.stack(np.meshgrid(np.linspace(-0.5, 0.5, 7), [-0.5, 0, 0.5]), -1).reshape(-1, 2)
    return np.concatenate([ink, best + grid * size])
