"""Phase portraits and basin maps: PhiNet's plane, the paper's four regimes, SimSiam's line, and both together."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from phinets.dynamics import phase_plane
from phinets.dynamics.basins import Basins
from phinets.dynamics.equilibria import AnySystem, Equilibrium, equilibria
from phinets.dynamics.phase_plane import Window, sample_starts, trajectory, window_around
from phinets.dynamics.systems import Floats, PhiNet, PhiNetPhi, SimSiam, Version
from phinets.reports import palette
from phinets.reports.figures import new_figure

REGIMES: Mapping[str, float] = {"strong": 0.12, "medium": 0.03, "light": 0.003, "weak": 0.0001}
"""The paper's four levels of weight decay."""
STAR = (0.08, 0.5)
"""The start of the paper's comparison: ψ(0), γ(0)."""
COMPARED_RHO = 0.08
"""The weight decay of the comparison, at which both can learn."""
NEAR_THRESHOLD = (1.08, 0.8)
"""The paper's weight decays for SimSiam, in shares of its threshold τ²/4s."""


def portrait(system: PhiNet, window: Window | None = None, starts: Sequence[Sequence[float]] = ()) -> Figure:
    """PhiNet's phase portrait under one weight decay, by default from six starts."""
    figure, ((axes,),) = new_figure(7, 5)
    region = window or window_around([system], starts)
    plane(axes, system, region, starts or sample_starts(region))
    axes.set_title(f"{title(system)}: {sink_count_of(system)}", color=palette.INK)
    legend(figure)
    return figure


def regimes(version: Version, sigma2: float) -> Figure:
    """The paper's figure of four levels of weight decay; each panel has the box of its own equilibria."""
    figure, grid = new_figure(11, 7.6, 2, 2)
    for axes, (level, rho) in zip(grid.flat, REGIMES.items(), strict=True):
        system = PhiNet(sigma2=sigma2, rho=rho, version=version)
        region = window_around([system])
        plane(axes, system, region, sample_starts(region))
        axes.set_title(f"{level.upper()}, ρ = {rho:g}: {sink_count_of(system)}", color=palette.INK)
    figure.suptitle(f"PhiNet, {version}, σ² = {sigma2:g}", color=palette.INK)
    legend(figure)
    return figure


def line(systems: Sequence[SimSiam], window: Window | None = None, starts: Sequence[float] = ()) -> Figure:
    """SimSiam's rate over ψ, one panel per system."""
    figure, grid = new_figure(5.5 * len(systems), 3.4, columns=len(systems))
    region = window or window_around(systems, [[start] for start in starts])
    for axes, system in zip(grid[0], systems, strict=True):
        rate(axes, system, region)
        for start in starts:
            run(axes, system, start)
        axes.set_title(f"{title(system)}: {sink_count_of(system)}", color=palette.INK)
    return figure


def around_threshold(system: SimSiam) -> list[SimSiam]:
    """The system under the paper's two weight decays, above and below its threshold."""
    return [system.with_rho(share * system.tau**2 / (4 * system.s)) for share in NEAR_THRESHOLD]


def simsiam_of(system: PhiNet) -> SimSiam:
    """SimSiam with the same σ² and ρ."""
    return SimSiam(sigma2=system.sigma2, rho=system.rho)


def comparison(system: PhiNet, window: Window | None = None, starts: Sequence[Sequence[float]] = (STAR,)) -> Figure:
    """PhiNet above SimSiam on the same ψ axis, from the same starts."""
    simsiam = simsiam_of(system)
    region = window or window_around([system, simsiam], starts)
    figure, ((above,), (below,)) = new_figure(7, 6, 2, height_ratios=[4, 1], sharex=True)
    plane(above, system, region, starts)
    above.set(xlabel="")
    above.set_title(title(system), color=palette.INK)
    below.set(yticks=[], ylim=(-1, 1))
    axis(below, simsiam, region)
    for start in starts:
        run(below, simsiam, start[0])
    below.set_title(title(simsiam), color=palette.INK)
    legend(figure)
    return figure


ASPECT = np.array([[1.5], [1.0]])
"""Approximate aspect ratio of the axes."""
DASHES = (0, (5, 3))
HEAD: Mapping[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 14}
MARKS = {
    "sink": ("o", palette.SINK), "saddle": ("D", palette.SADDLE), "source": ("o", palette.SOURCE),
    "degenerate": ("X", palette.INK),
}  # fmt: skip
"""Shape and color of each kind; only sinks are filled."""
DIRECTIONS = np.stack([[np.cos(a), np.sin(a)] for a in np.arange(0, 2 * np.pi, np.pi / 8)])
"""Directions from a point to its label, preferred ones first."""


def plane(axes: Axes, system: PhiNet, window: Window, starts: Sequence[Sequence[float]] = ()) -> None:
    """A phase portrait with labels on sinks and nullclines."""
    axes.set(xlim=(window.psi_min, window.psi_max), ylim=(window.gamma_min, window.gamma_max))
    axes.set_xlabel("ψ")
    axes.set_ylabel("γ", rotation=0)
    points = equilibria(system)
    _field(axes, system, window)
    curves = _nullclines(axes, system, window)
    for saddle in (point for point in points if point.kind == "saddle"):
        for arm in phase_plane.stable_manifold(system, saddle, window):
            axes.plot(*arm, color=palette.BORDER, linewidth=1.4, linestyle=DASHES, zorder=3)
            curves.append(arm)
    curves += [path(axes, system, start) for start in starts]
    for point in points:
        mark(axes, (point.psi, point.gamma or 0.0), point.kind)
    whole = axes.get_figure(root=True)
    if whole is not None and (layout := whole.get_layout_engine()) is not None:
        layout.execute(whole)  # the axes have no size before
    _name(axes, window, points, curves)


def path(axes: Axes, system: PhiNet, start: Sequence[float]) -> Floats:
    """The trajectory of a start with a ★, and an arrow head halfway on the screen: blue if it learns, gray if not."""
    states, sink = trajectory(system, start)
    color = color_of(sink)
    axes.plot(*states, color=color, linewidth=1.8, zorder=4)
    axes.plot(*start, marker="*", markersize=10, color=color, zorder=6)
    lengths = np.linalg.norm(np.diff(axes.transData.transform(states.T), axis=0), axis=1)
    along = np.concatenate([[0], np.cumsum(lengths)])
    (x, y), further = ([np.interp(along[-1] * share, along, v) for v in states] for share in (0.5, 0.53))
    axes.annotate("", (further[0], further[1]), (x, y), arrowprops={**HEAD, "color": color}, zorder=5)
    return states


def color_of(sink: Equilibrium | None) -> str:
    """The color of a trajectory that ends in this sink, or in none."""
    if sink is None:
        return palette.INK
    return palette.COLLAPSE if sink.collapsed else palette.ALIVE


def mark(axes: Axes, at: tuple[float, float], kind: str) -> None:
    """The marker of an equilibrium; sinks are on top."""
    axes.plot(*at, **_sign(kind), zorder=8 if kind == "sink" else 7)


def _sign(kind: str) -> dict[str, Any]:
    shape, color = MARKS[kind]
    fill = color if kind == "sink" else "white"
    size = 7 if kind == "saddle" else 8
    return {"marker": shape, "color": color, "markerfacecolor": fill, "markeredgewidth": 1.8, "markersize": size}


def _field(axes: Axes, system: PhiNet, window: Window) -> None:
    """Arrows of one length on a regular grid: direction, not speed."""
    shares = np.stack(np.meshgrid((np.arange(22) + 0.5) / 22, (np.arange(15) + 0.5) / 15)).reshape(2, -1)
    points = window.corner[:, None] + shares * window.size[:, None]
    rate = system.flow(points) / window.size[:, None] * ASPECT
    direction = rate / np.maximum(np.linalg.norm(rate, axis=0), 1e-300)
    axes.quiver(
        *points, *direction, angles="uv", pivot="mid", scale=38, width=0.0022, color=palette.FAINT, alpha=0.7, zorder=1
    )


def _nullclines(axes: Axes, system: PhiNet, window: Window) -> list[Floats]:
    """ψ̇ = 0 (the line ψ = 0 and a curve) solid, γ̇ = 0 dotted; returns the two curves."""
    psi = np.linspace(window.psi_min, window.psi_max, 1000)
    of_psi, of_gamma = phase_plane.psi_nullcline(system), np.stack([psi, phase_plane.gamma_nullcline(system, psi)])
    axes.axvline(0, color=palette.NULLCLINE, linewidth=1.8, zorder=2)
    axes.plot(*of_psi, color=palette.NULLCLINE, linewidth=1.8, zorder=2, gid="psi-nullcline")
    axes.plot(*of_gamma, color=palette.NULLCLINE, linewidth=2, linestyle=(0, (1, 1.5)), zorder=2, gid="gamma-nullcline")
    return [of_psi, of_gamma]


def legend(figure: Figure) -> None:
    """The legend, in one line below the panels."""
    signs = [
        *(Line2D([], [], linestyle="", label=kind, **_sign(kind)) for kind in ("sink", "saddle")),
        Line2D([], [], color=palette.BORDER, linestyle=DASHES, label="border of basins"),
        Line2D([], [], color=palette.ALIVE, marker="*", label="learns"),
        Line2D([], [], color=palette.COLLAPSE, marker="*", label="collapses"),
    ]
    figure.legend(handles=signs, loc="outside lower center", ncols=len(signs), frameon=False, fontsize=9)


def _name(axes: Axes, window: Window, points: Sequence[Equilibrium], curves: Sequence[Floats]) -> None:
    """Labels of the sinks and nullclines, each where it covers the least."""
    lines = [_even((c - window.corner[:, None]) / window.size[:, None]) for c in curves]
    collapsed = np.stack(np.broadcast_arrays(-window.corner[0] / window.size[0], np.linspace(0, 1, 100)), axis=1)
    spots = (np.array([[p.psi, p.gamma or 0.0] for p in points]) - window.corner) / window.size
    ink = np.concatenate([collapsed, spots, *lines])
    for spot, point in zip(spots, points, strict=True):
        if point.kind == "sink" and (np.abs(spot - 0.5) < 0.5).all():
            ink = _put(axes, f"({_short(point.psi)}, {_short(point.gamma or 0.0)})", spot, ink, palette.SINK)
    for line, other, word in ((lines[0], lines[1], "ψ̇ = 0"), (lines[1], lines[0], "γ̇ = 0")):
        inner = line[((line > 0.08) & (line < 0.92)).all(axis=1)]
        if len(inner):
            rest = np.concatenate([spots, collapsed, other])
            free = np.linalg.norm(inner[:, None] - rest[None], axis=-1).min(axis=1)
            ink = _put(axes, word, inner[int(free.argmax())], ink, palette.NULLCLINE)


def _even(line: Floats) -> Floats:
    """Points (n, 2), about a hundredth of the axes apart, along the visible pieces of a line."""
    start, end = line[:, :-1].T, line[:, 1:].T
    near = (np.abs(np.stack([start, end]) - 0.5) < 0.7).all(axis=(0, 2))
    far = near & (np.linalg.norm(end - start, axis=1) > 0.01)
    filled = [np.linspace(a, b, 100) for a, b in zip(start[far], end[far], strict=True)]
    points = np.concatenate([start[near], *filled])
    return np.unique(points[(np.abs(points - 0.5) < 0.5).all(axis=1)].round(2), axis=0)


def _short(value: float) -> str:
    return (f"{value:.2g}" if abs(value) < 0.01 else f"{value:.2f}").replace("-", "−")


def _put(axes: Axes, word: str, spot: Floats, ink: Floats, color: str) -> Floats:
    """Write a label near a spot, in shares of the axes, where it covers nothing; returns the ink with its box."""
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


def rate(axes: Axes, system: SimSiam, window: Window) -> None:
    """ψ̇ over ψ, with equilibria and directions on the line ψ̇ = 0."""
    psi = np.linspace(window.psi_min, window.psi_max, 600)
    highest = 4 * system.tau**3 / (27 * system.s**2)  # of {τ − sψ}ψ², at ψ = 2τ/3s
    axes.set_ylim(-0.9 * highest, 1.5 * highest)
    axes.plot(psi, system.flow(psi[None])[0], color=palette.SYSTEM["simsiam"], linewidth=2, zorder=3)
    axes.set_ylabel("ψ̇", rotation=0)
    axis(axes, system, window)
    _kinds(axes, system, window)
    _basins(axes, system, window)


def axis(axes: Axes, system: SimSiam, window: Window) -> None:
    """The line ψ̇ = 0: its equilibria, and an arrow between each two."""
    axes.set(xlim=(window.psi_min, window.psi_max), xlabel="ψ")
    axes.axhline(0, color=palette.FAINT, linewidth=1, zorder=1)
    points = equilibria(system)
    wide = window.psi_max - window.psi_min
    ends = [window.psi_min, *(point.psi for point in points), window.psi_max]
    for low, high in pairwise(ends):
        if high - low > 0.04 * wide:
            middle, reach = (low + high) / 2, min(0.07 * wide, (high - low) / 2 - 0.012 * wide)
            way = float(np.sign(system.flow(np.array([middle]))[0]))
            style = {**HEAD, "color": palette.INK, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (middle + way * reach, 0), (middle - way * reach, 0), arrowprops=style, zorder=4)
    for point in points:
        mark(axes, (point.psi, 0.0), point.kind)


def run(axes: Axes, system: SimSiam, start: float) -> None:
    """The trajectory of a start along the line, slightly above it, with a ★, clipped to the axes."""
    states, sink = trajectory(system, [start])
    color = color_of(sink)
    level = 0.25 * axes.get_ylim()[1]
    first, last = (float(np.clip(psi, *axes.get_xlim())) for psi in (start, states[0, -1]))
    axes.plot(start, level, marker="*", markersize=12, color=color, zorder=6, clip_on=first != start)
    if first != last:
        style = {**HEAD, "color": color, "linewidth": 1.8}
        axes.annotate("", (last, level), (first, level), arrowprops=style, zorder=5)


def _kinds(axes: Axes, system: SimSiam, window: Window) -> None:
    """The kind of each equilibrium below its marker, where there is room."""
    room = 0.12 * (window.psi_max - window.psi_min)
    labeled_psis: list[float] = []
    for point in sorted(equilibria(system), key=lambda point: point.kind != "sink"):
        if all(abs(point.psi - other) > room for other in labeled_psis):
            labeled_psis.append(point.psi)
            axes.annotate(point.kind, (point.psi, 0), (0, -16), textcoords="offset points", fontsize=9, ha="center")


def _basins(axes: Axes, system: SimSiam, window: Window) -> None:
    """Above the curve: the basins of collapse and of learning, separated by the source."""
    sources = [point.psi for point in equilibria(system) if point.kind == "source"]
    top = axes.get_ylim()[1]
    border = sources[0] if sources else window.psi_max
    spans = [(window.psi_min, border, palette.COLLAPSE, "collapses"), (border, window.psi_max, palette.ALIVE, "learns")]
    for low, high, color, word in spans[: 1 + len(sources)]:
        axes.axvspan(low, high, ymin=0.93, ymax=1.0, color=color, alpha=0.25, linewidth=0)
        axes.text((low + high) / 2, 0.88 * top, word, color=color, fontsize=9, ha="center", va="top")
    if sources:
        axes.plot([border, border], [0, top], color=palette.FAINT, linestyle=":", linewidth=1.2, zorder=1)


def basin_figure(maps: Sequence[Basins]) -> Figure:
    """One panel per map: every basin with its color, sink and share of the starts.

    Gray is collapse, blue the sink with the largest ψ, white an undecided start.
    """
    figure, grid = new_figure(5.6 * len(maps), 4.6, columns=len(maps), sharey=True)
    for axes, basin_map in zip(grid[0], maps, strict=True):
        _panel(axes, basin_map)
    figure.axes[0].set_ylabel("γ(0)", rotation=0)
    return figure


def _panel(axes: Axes, basin_map: Basins) -> None:
    falling = sorted((sink.psi for sink in basin_map.sinks if not sink.collapsed), reverse=True)
    colors = [
        palette.COLLAPSE_BASIN if sink.collapsed else palette.BASINS[falling.index(sink.psi)]
        for sink in basin_map.sinks
    ]
    psi, gamma, cmap = basin_map.psi, basin_map.gamma, ListedColormap(colors)
    labels = np.ma.masked_less(basin_map.labels, 0)
    axes.pcolormesh(
        psi, gamma, labels, cmap=cmap, vmin=-0.5, vmax=len(colors) - 0.5, rasterized=True, shading="nearest"
    )
    if len(colors) > 1:
        axes.contour(psi, gamma, labels, np.arange(len(colors) - 1) + 0.5, colors="white", linewidths=1)
    axes.set(xlim=(psi[0], psi[-1]), ylim=(gamma[0], gamma[-1]), xlabel="ψ(0)")
    for sink, of_starts in zip(basin_map.sinks, basin_map.shares, strict=True):
        if sink.gamma is None:
            axes.axvline(sink.psi, color=palette.INK, linewidth=0.8, linestyle=":")
        at = sink.psi, sink.gamma or 0.0
        if psi[0] <= at[0] <= psi[-1] and gamma[0] <= at[1] <= gamma[-1]:
            mark(axes, at, "sink")
            word = f"{100 * of_starts:.1f} %"
            axes.annotate(word, at, (7, 6), textcoords="offset points", color=palette.INK, fontsize=9, zorder=9)
    share = f"{100 * basin_map.non_collapsed:.1f} % of the starts do not collapse"
    axes.set_title(f"{title(basin_map.system)}\n{share}", color=palette.INK, fontsize=11)


LETTERS = {"phi": "φ", "psi": "ψ", "gamma": "γ", "slow": "slow encoder"}


def system_name(system: AnySystem) -> str:
    """The name of a system, without σ² and ρ."""
    if isinstance(system, SimSiam):
        return "SimSiam" if system.tau == 1 else f"SimSiam with τ = {system.tau:g}"
    if isinstance(system, PhiNetPhi):
        return f"PhiNet with φ, {system.version}"
    return f"PhiNet, {system.version}" if isinstance(system, PhiNet) else f"X-PhiNet, {system.version}"


def title(system: AnySystem) -> str:
    """The name of a system with σ² and ρ."""
    return f"{system_name(system)}, ρ = {system.rho:g}, σ² = {system.sigma2:g}"


def sink_count_of(system: AnySystem) -> str:
    """The number of its sinks, in words."""
    return sinks(sum(point.kind == "sink" for point in equilibria(system)))


def sinks(n: int) -> str:
    """A number of sinks, in words."""
    return f"{n} sink" + "s" * (n != 1)
