"""The pictures and tables of a run over a stream."""

from collections.abc import Callable, Mapping
from io import BytesIO

from matplotlib.figure import Figure

from phinets.config.record import ContinualRecord
from phinets.reports.accuracy_matrix import matrix_figure, matrix_table
from phinets.reports.continual_curves import fast_and_slow_figure, tasks_figure
from phinets.reports.forgetting import forgetting_figure

__all__ = [
    "FIGURES",
    "fast_and_slow_figure",
    "forgetting_figure",
    "matrix_figure",
    "matrix_table",
    "pictures_of",
    "tasks_figure",
]

FIGURES: Mapping[str, Callable[[ContinualRecord], Figure]] = {
    "matrix": matrix_figure,
    "tasks": tasks_figure,
    "fast-slow": fast_and_slow_figure,
}
"""The pictures of one run, by name."""


def pictures_of(record: ContinualRecord) -> dict[str, bytes]:
    """The pictures that a run leaves behind, by their files' names; fast beside slow where both were read out."""
    both = len({reading.encoder for reading in record.summary.readings}) > 1
    return {f"{name}.png": _png(figure(record)) for name, figure in FIGURES.items() if both or name != "fast-slow"}


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, dpi=120, format="png")
    return file.getvalue()
