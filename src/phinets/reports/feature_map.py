"""Features as points on a plane, colored by class."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.patheffects as effects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from numpy.typing import NDArray

from phinets.reports.palette import FAINT, FAST, INK, class_color

NAMED = 60
"""Classes that are named in the picture, the largest first."""


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """Points of images on a plane."""

    points: NDArray[np.floating]
    """(n, 2)."""
    names: Sequence[str]
    """Which images they are."""
    labels: Sequence[str]
    """Their classes, empty where nobody said."""
    axes: tuple[str, str]
    title: str
    thumbnails: Sequence[tuple[int, NDArray[np.uint8]]] = ()
    """Pictures (height, width, 3) that stand in for some of the points, by their numbers."""

    def lines(self) -> list[list[str]]:
        """The data behind the picture: image, class and place, one line each."""
        rows = zip(self.names, self.labels, self.points.tolist(), strict=True)
        return [["path", "label", "x", "y"], *([name, label, f"{x:.6g}", f"{y:.6g}"] for name, label, (x, y) in rows)]


def feature_map(data: FeatureMap) -> Figure:
    """The map: a point per image, each class in its color and named at its median."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    axes: Axes = figure.subplots()
    labels = np.array(data.labels)
    size = float(np.clip(6_000 / max(1, len(labels)), 2, 30))
    classes = np.unique(labels[labels != ""])
    colors = {name: class_color(number) for number, name in enumerate(classes.tolist())}
    for name, color in ({"": FAINT if classes.size else FAST} | colors).items():
        x, y = data.points[labels == name].T
        axes.scatter(x, y, s=size, color=color, linewidths=0, alpha=0.7)
    for row, picture in data.thumbnails:
        axes.add_artist(AnnotationBbox(OffsetImage(picture, zoom=28 / picture.shape[0]), data.points[row], pad=0.1))
    for name, _ in Counter(labels[labels != ""].tolist()).most_common(NAMED):
        _name(axes, data.points[labels == name], name, colors[name])
    axes.set(xlabel=data.axes[0], ylabel=data.axes[1])
    axes.set_title(data.title, color=INK, fontsize=9, wrap=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    return figure


def _name(axes: Axes, points: NDArray[np.floating], name: str, color: str) -> None:
    """A class's name where half of its points lie on either side."""
    x, y = np.median(points, axis=0)
    text = axes.text(x, y, name, color=color, fontsize=9, fontweight="bold", ha="center", va="center", zorder=5)
    text.set_path_effects([effects.withStroke(linewidth=3, foreground="white")])
