"""Images beside the views that a method trains on."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from phinets.reports.palette import INK


def samples(columns: Mapping[str, NDArray[np.uint8]], captions: Sequence[str], title: str = "") -> Figure:
    """One row per image, one column per way of seeing it.

    columns: what stands above each column, and its pictures, uint8 (n, height, width, 3); captions: n words.
    """
    n = len(captions)
    figure = Figure(figsize=(1.3 * len(columns) + 1.2, 1.3 * n + 0.7), layout="constrained")
    grid = figure.subplots(n, len(columns), squeeze=False)
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
