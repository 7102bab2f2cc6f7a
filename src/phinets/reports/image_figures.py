"""Figures of images: beside their views, as points of a map of features, and beside their nearest neighbors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib.patheffects as effects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.reports.figures import new_figure, short
from phinets.reports.palette import FAINT, FAST, INK, RIGHT, WRONG, class_color


def samples(columns: Mapping[str, NDArray[np.uint8]], captions: Sequence[str], title: str = "") -> Figure:
    """One row per image, one column per way of seeing it.

    columns: what stands above each column, and its pictures, uint8 (n, height, width, 3); captions: n words.
    """
    n = len(captions)
    figure, grid = new_figure(1.3 * len(columns) + 1.2, 1.3 * n + 0.7, n, len(columns))
    for axes, (name, pictures) in zip(grid.T, columns.items(), strict=True):
        axes[0].set_title(name, color=INK, fontsize=10)
        for cell, picture in zip(axes, pictures, strict=True):
            cell.imshow(picture, interpolation="nearest")
            cell.set(xticks=[], yticks=[])
            cell.spines[:].set_visible(False)
    for cell, caption in zip(grid[:, 0], captions, strict=True):
        cell.set_ylabel(caption, color=INK, fontsize=8, rotation=0, ha="right", va="center")
    figure.suptitle(title, color=INK, fontsize=11)
    return figure


MAX_NAMES = 60
"""Classes that are named in the picture, the largest first."""


class FeatureMap(NamedTuple):
    """Points of images on a plane."""

    points: NDArray[np.floating]
    """(n, 2)."""
    names: Sequence[str]
    """Which images they are."""
    labels: Sequence[str]
    """Their classes, empty where unknown."""
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
    figure, ((axes,),) = new_figure(8, 7)
    labels = np.array(data.labels)
    size = float(np.clip(6_000 / max(1, len(labels)), 2, 30))
    classes = np.unique(labels[labels != ""])
    colors = {name: class_color(number) for number, name in enumerate(classes.tolist())}
    for name, color in ({"": FAINT if classes.size else FAST} | colors).items():
        x, y = data.points[labels == name].T
        axes.scatter(x, y, s=size, color=color, linewidths=0, alpha=0.7)
    for row, picture in data.thumbnails:
        axes.add_artist(AnnotationBbox(OffsetImage(picture, zoom=28 / picture.shape[0]), data.points[row], pad=0.1))
    for name, _ in Counter(labels[labels != ""].tolist()).most_common(MAX_NAMES):
        _name(axes, data.points[labels == name], name, colors[name])
    axes.set(xlabel=data.axes[0], ylabel=data.axes[1])
    axes.set_title(data.title, color=INK, fontsize=9, wrap=True)
    axes.tick_params(labelsize=8, colors=INK)
    return figure


def _name(axes: Axes, points: NDArray[np.floating], name: str, color: str) -> None:
    """A class's name where half of its points lie on either side."""
    x, y = np.median(points, axis=0)
    text = axes.text(x, y, name, color=color, fontsize=9, fontweight="bold", ha="center", va="center", zorder=5)
    text.set_path_effects([effects.withStroke(linewidth=3, foreground="white")])


ROWS, PICTURES = 300, 1_000
"""What a sheet has room for: more rows would be more pixels than a picture file may have."""


class LabeledImage(NamedTuple):
    """An image of a sheet."""

    name: str
    label: str
    """Its class, empty where unknown."""
    picture: NDArray[np.uint8]
    """(height, width, 3)."""


class Query(NamedTuple):
    """An image, and its neighbors, the nearest first."""

    image: LabeledImage
    near: Sequence[tuple[float, LabeledImage]]
    """Cosine and image."""


def same_class(one: LabeledImage, other: LabeledImage) -> bool | None:
    """Whether two images are of one class; None where one is unknown."""
    return one.label == other.label if one.label and other.label else None


def neighbor_rows(queries: Sequence[Query]) -> list[list[str]]:
    """The data behind the sheet: one line per pair."""
    head = ["query", "query_label", "rank", "neighbor", "neighbor_label", "cosine"]
    return [head] + [
        [query.image.name, query.image.label, str(rank), seen.name, seen.label, f"{cosine:.6f}"]
        for query in queries
        for rank, (cosine, seen) in enumerate(query.near, start=1)
    ]


def require_sheet_size(rows: int, columns: int) -> None:
    """Refuse a sheet that is too large."""
    if rows > ROWS or rows * columns > PICTURES:
        raise UserError(
            f"a sheet of {rows} rows with {columns} pictures each is too large: it has room for {ROWS} rows and "
            f"{PICTURES:,} pictures. Ask for fewer --queries (or --query-images), or fewer neighbors with --near."
        )


def neighbor_sheet(queries: Sequence[Query], title: str) -> Figure:
    """One row per query: itself, then its neighbors with their cosine and class.

    The frame of a neighbor is green where it is of the query's class, red where it is of another one.
    """
    columns = 1 + max(len(query.near) for query in queries)
    figure, grid = new_figure(1.25 * columns + 0.3, 1.5 * len(queries) + 0.7, len(queries), columns)
    for row, query in zip(grid, queries, strict=True):
        _show(row[0], query.image, short(query.image.label or query.image.name.rsplit("/", 1)[-1], 18), None)
        for cell, (cosine, seen) in zip(row[1:], query.near, strict=False):
            color = {True: RIGHT, False: WRONG, None: None}[same_class(query.image, seen)]
            _show(cell, seen, f"{cosine:.2f} {short(seen.label, 18)}".strip(), color)
        for cell in row[1 + len(query.near) :]:
            cell.set_axis_off()
    grid[0, 0].set_title("query", color=INK, fontsize=9)
    figure.suptitle(title, color=INK, fontsize=9, wrap=True)
    return figure


def _show(cell: Axes, seen: LabeledImage, caption: str, color: str | None) -> None:
    cell.imshow(seen.picture, interpolation="nearest")
    cell.set(xticks=[], yticks=[])
    cell.set_xlabel(caption, fontsize=7, color=INK, labelpad=2)
    for side in cell.spines.values():
        side.set(visible=color is not None, linewidth=3, color=color or INK)
