"""A contact sheet: some images, and those that are nearest to them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.reports.palette import INK, RIGHT, WRONG

LONGEST = 18
"""Letters of a name that a picture has room for."""
ROWS, PICTURES = 300, 1_000
"""What a sheet has room for: more rows would be more pixels than a picture file may have."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An image to look at."""

    name: str
    label: str
    """Its class, empty where nobody said."""
    picture: NDArray[np.uint8]
    """(height, width, 3)."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """An image, and its neighbors, the nearest first."""

    image: Seen
    near: Sequence[tuple[float, Seen]]
    """Cosine and image."""


def same_class(one: Seen, other: Seen) -> bool | None:
    """Whether two images are of one class; None where it is not known of both."""
    return one.label == other.label if one.label and other.label else None


def neighbors_lines(queries: Sequence[Query]) -> list[list[str]]:
    """The data behind the sheet: one line per pair."""
    head = ["query", "query_label", "rank", "neighbor", "neighbor_label", "cosine"]
    return [head] + [
        [query.image.name, query.image.label, str(rank), seen.name, seen.label, f"{cosine:.6f}"]
        for query in queries
        for rank, (cosine, seen) in enumerate(query.near, start=1)
    ]


def require_sheet(rows: int, columns: int) -> None:
    """Refuse a sheet that nobody could look at."""
    if rows > ROWS or rows * columns > PICTURES:
        raise UserError(
            f"a sheet of {rows} rows with {columns} pictures each is too large: it has room for {ROWS} rows and "
            f"{PICTURES:,} pictures. Ask for fewer --queries (or --query-images), or fewer neighbors with --near."
        )


def neighbors_sheet(queries: Sequence[Query], title: str) -> Figure:
    """One row per query: itself, then its neighbors with their cosine and class.

    The frame of a neighbor is green where it is of the query's class, red where it is of another one.
    """
    columns = 1 + max(len(query.near) for query in queries)
    figure = Figure(figsize=(1.25 * columns + 0.3, 1.5 * len(queries) + 0.7), layout="constrained")
    grid = figure.subplots(len(queries), columns, squeeze=False)
    for row, query in zip(grid, queries, strict=True):
        _show(row[0], query.image, _short(query.image.label or query.image.name.rsplit("/", 1)[-1]), None)
        for cell, (cosine, seen) in zip(row[1:], query.near, strict=False):
            color = {True: RIGHT, False: WRONG, None: None}[same_class(query.image, seen)]
            _show(cell, seen, f"{cosine:.2f} {_short(seen.label)}".strip(), color)
        for cell in row[1 + len(query.near) :]:
            cell.set_axis_off()
    grid[0, 0].set_title("query", color=INK, fontsize=9)
    figure.suptitle(title, color=INK, fontsize=9, wrap=True)
    return figure


def _show(cell: Axes, seen: Seen, caption: str, color: str | None) -> None:
    cell.imshow(seen.picture, interpolation="nearest")
    cell.set(xticks=[], yticks=[])
    cell.set_xlabel(caption, fontsize=7, color=INK, labelpad=2)
    for side in cell.spines.values():
        side.set(visible=color is not None, linewidth=3, color=color or INK)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
