"""Which sink each start ends in, as a picture: PhiNet beside SimSiam on the same box."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from phinets.dynamics.basins import Basins
from phinets.reports.palette import BASINS, COLLAPSED, INK
from phinets.reports.phase_plane import mark
from phinets.reports.words import title


def basin_map(maps: Sequence[Basins]) -> Figure:
    """A panel for each map: every basin in its color, its sink and its share of the starts.

    Gray is collapse, blue the sink of the greatest ψ, white a start whose end was not seen.
    """
    figure = Figure(figsize=(5.6 * len(maps), 4.6), layout="constrained")
    for axes, shown in zip(figure.subplots(1, len(maps), sharey=True, squeeze=False)[0], maps, strict=True):
        _panel(axes, shown)
    figure.axes[0].set_ylabel("γ(0)", rotation=0)
    return figure


def _panel(axes: Axes, shown: Basins) -> None:
    falling = sorted((sink.psi for sink in shown.sinks if not sink.collapsed), reverse=True)
    colors = [COLLAPSED if sink.collapsed else BASINS[falling.index(sink.psi)] for sink in shown.sinks]
    psi, gamma, cmap = shown.psi, shown.gamma, ListedColormap(colors)
    labels = np.ma.masked_less(shown.labels, 0)
    axes.pcolormesh(
        psi, gamma, labels, cmap=cmap, vmin=-0.5, vmax=len(colors) - 0.5, rasterized=True, shading="nearest"
    )
    if len(colors) > 1:
        axes.contour(psi, gamma, labels, np.arange(len(colors) - 1) + 0.5, colors="white", linewidths=1)
    axes.set(xlim=(psi[0], psi[-1]), ylim=(gamma[0], gamma[-1]), xlabel="ψ(0)")
    for sink, share in zip(shown.sinks, shown.shares, strict=True):
        if sink.gamma is None:
            axes.axvline(sink.psi, color=INK, linewidth=0.8, linestyle=":")
        _sink(axes, (sink.psi, sink.gamma or 0.0), f"{100 * share:.1f} %", (psi, gamma))
    axes.set_title(
        f"{title(shown.system)}\n{100 * shown.kept:.1f} % of the starts do not collapse", color=INK, fontsize=11
    )


def _sink(axes: Axes, at: tuple[float, float], word: str, reach: tuple[np.ndarray, np.ndarray]) -> None:
    """A sink and the share of its basin, where it lies in the box."""
    if all(values[0] <= x <= values[-1] for x, values in zip(at, reach, strict=True)):
        mark(axes, at, "sink")
        axes.annotate(word, at, (7, 6), textcoords="offset points", color=INK, fontsize=9, zorder=9)
