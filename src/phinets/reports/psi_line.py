"""SimSiam's one variable, drawn into axes: its rate over ψ, arrows along the line, equilibria and their basins."""

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes

from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.paths import Window, trajectory
from phinets.dynamics.systems import SimSiam
from phinets.reports.palette import ALIVE, FAINT, INK, LOST, SYSTEM
from phinets.reports.phase_plane import color_of, mark


def rate(axes: Axes, system: SimSiam, window: Window) -> None:
    """ψ̇ over ψ, with the line below it where it rests and which way it goes between."""
    psi = np.linspace(window.psi_min, window.psi_max, 600)
    highest = 4 * system.tau**3 / (27 * system.s**2)  # of {τ − sψ}ψ², at ψ = 2τ/3s
    axes.set_ylim(-0.9 * highest, 1.5 * highest)
    axes.plot(psi, system.flow(psi[None])[0], color=SYSTEM["simsiam"], linewidth=2, zorder=3)
    axes.set_ylabel("ψ̇", rotation=0)
    axis(axes, system, window)
    _kinds(axes, system, window)
    _basins(axes, system, window)


def axis(axes: Axes, system: SimSiam, window: Window) -> None:
    """The line ψ̇ = 0: its equilibria, and an arrow in every piece between them."""
    axes.set(xlim=(window.psi_min, window.psi_max), xlabel="ψ")
    axes.spines[["top", "right"]].set_visible(False)
    axes.axhline(0, color=FAINT, linewidth=1, zorder=1)
    points = equilibria(system)
    wide = window.psi_max - window.psi_min
    ends = [window.psi_min, *(point.psi for point in points), window.psi_max]
    for low, high in pairwise(ends):
        if high - low > 0.04 * wide:
            middle, reach = (low + high) / 2, min(0.07 * wide, (high - low) / 2 - 0.012 * wide)
            way = float(np.sign(system.flow(np.array([middle]))[0]))
            _arrow(axes, middle - way * reach, middle + way * reach)
    for point in points:
        mark(axes, (point.psi, 0.0), point.kind)


def run(axes: Axes, system: SimSiam, start: float) -> None:
    """The way of a start along the line, a little above it, with its ★; what lies outside the axes is left out."""
    states, sink = trajectory(system, [start])
    color = color_of(sink)
    level = 0.25 * axes.get_ylim()[1]
    first, last = (float(np.clip(psi, *axes.get_xlim())) for psi in (start, states[0, -1]))
    axes.plot(start, level, marker="*", markersize=12, color=color, zorder=6, clip_on=first != start)
    if first != last:
        looks = {"arrowstyle": "-|>", "color": color, "linewidth": 1.8, "mutation_scale": 14}
        axes.annotate("", (last, level), (first, level), arrowprops=looks, zorder=5)


def _arrow(axes: Axes, start: float, end: float) -> None:
    looks = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.4, "mutation_scale": 13, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (end, 0), (start, 0), arrowprops=looks, zorder=4)


def _kinds(axes: Axes, system: SimSiam, window: Window) -> None:
    """What each sign means, below it, where it has room; nothing beside a sink that has none."""
    points = sorted(equilibria(system), key=lambda point: point.kind != "sink")
    room = 0.12 * (window.psi_max - window.psi_min)
    named: list[float] = []
    for point in points:
        if all(abs(point.psi - other) > room for other in named):
            named.append(point.psi)
            axes.annotate(point.kind, (point.psi, 0), (0, -16), textcoords="offset points", fontsize=9, ha="center")


def _basins(axes: Axes, system: SimSiam, window: Window) -> None:
    """Above the curve: from where it collapses and from where it learns, parted by the source."""
    points = equilibria(system)
    sources = [point.psi for point in points if point.kind == "source"]
    top = axes.get_ylim()[1]
    border = sources[0] if sources else window.psi_max
    spans = [(window.psi_min, border, LOST, "collapses"), (border, window.psi_max, ALIVE, "learns")]
    for low, high, color, word in spans[: 1 + len(sources)]:
        axes.axvspan(low, high, ymin=0.93, ymax=1.0, color=color, alpha=0.25, linewidth=0)
        axes.text((low + high) / 2, 0.88 * top, word, color=color, fontsize=9, ha="center", va="top")
    if sources:
        axes.plot([border, border], [0, top], color=FAINT, linestyle=":", linewidth=1.2, zorder=1)
