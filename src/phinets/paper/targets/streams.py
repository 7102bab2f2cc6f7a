"""What all tables on streams of tasks are made of: two rows, average accuracy and forgetting."""

from collections.abc import Mapping
from dataclasses import replace

from phinets.config.continual import ContinualConfig
from phinets.paper.grids import Change, crossed, read, same
from phinets.paper.plan import Cell, Table
from phinets.paper.scales import Scale

ACC, FG = "task-knn/fast/average", "task-knn/fast/forgetting_max"
"""The paper's forgetting is from the highest accuracy on the way to the last."""
READ_OUT = (
    "The paper does not say by which readout its streams are judged: kNN within each task, as in UCL's code, on which "
    "its own is built."
)

Columns = Mapping[str, Change]


def two_rows(scale: Scale, of: str, base: ContinualConfig, columns: Columns) -> tuple[Cell, ...]:
    """Average accuracy, and forgetting, as `of Acc` and `of Fg`."""
    return tuple(
        cell
        for row, measure in ((f"{of} Acc".strip(), ACC), (f"{of} Fg".strip(), FG))
        for cell in crossed(scale, base, {row: same}, columns, read(measure))
    )


def stream_table(name: str, title: str, cells: tuple[Cell, ...], columns_are: str = "") -> Table:
    """A table of such rows; the best of a row are the highest accuracy and the lowest forgetting."""
    fg = tuple(dict.fromkeys(cell.row for cell in cells if cell.measure == FG))
    return Table(name=name, title=title, cells=cells, lower_rows=fg, best_in="row", columns_are=columns_are)


def mixup(run: ContinualConfig) -> ContinualConfig:
    """The same with mixup replay."""
    return replace(run, memory=replace(run.memory, replay="mixup"))


def twice(run: ContinualConfig) -> ContinualConfig:
    """The same with twice the epochs of each task."""
    return replace(run, epochs_per_task=2 * run.epochs_per_task)
