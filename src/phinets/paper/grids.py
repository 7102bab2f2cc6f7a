"""How tables are built: a run that all cells share, a change of it for each row, another for each column."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from phinets.config.continual import ContinualConfig
from phinets.config.evaluation import PaperProbe
from phinets.config.jobs import ContinualJob, Job, PretrainJob, ProbeJob
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.paper.measures import chance
from phinets.paper.plan import Cell, Table
from phinets.paper.scales import SCALES, Scale

LEARNERS: Mapping[str, str] = {
    "BYOL": "byol",
    "SimSiam": "simsiam",
    "SimSiam (Orig-In)": "simsiam/original-input",
    "Barlow Twins": "barlow-twins",
    "RM-SimSiam": "rm-simsiam",
    "MoCo": "moco-v2",
    "MoCo v2": "moco-v2",
    "PhiNet": "phinet",
    "PhiNet (MSE)": "phinet",
    "PhiNet (MSE, g=I)": "phinet/identity-g",
    "PhiNet (MSE, g=h)": "phinet/shared-g",
    "PhiNet (Cos)": "phinet/cosine",
    "PhiNet (g=I)": "phinet/identity-g",
    "PhiNet (g=h)": "phinet/shared-g",
    "PhiNet MSE, SG-2, g": "phinet",
    "PhiNet MSE, SG-2, g = I": "phinet/identity-g",
    "PhiNet MSE, no SG-2, g": "phinet/no-stop-gradient",
    "PhiNet MSE, SG-2, h": "phinet/shared-g",
    "PhiNet Cos, SG-2, g": "phinet/cosine",
    "PhiNet Cos, SG-2, g = I": "phinet/cosine-identity-g",
    "PhiNet Cos, no SG-2, g": "phinet/cosine-no-stop-gradient",
    "PhiNet Cos, SG-2, h": "phinet/cosine-shared-g",
    "PhiNet with Aug (MSE)": "phinet/augmented-anchor",
    "X-PhiNet": "x-phinet",
    "X-PhiNet (MSE)": "x-phinet",
    "X-PhiNet (Cos)": "x-phinet/cosine",
    "X-PhiNet (g=I, MSE)": "x-phinet/identity-g",
    "X-PhiNet (Cos, g=I)": "x-phinet/cosine-identity-g",
    "X-PhiNet with Aug (MSE)": "x-phinet/augmented-anchor",
    "X-PhiNet with Aug (Cos)": "x-phinet/cosine-augmented-anchor",
}
"""The learners by their names in the paper's tables, which have several names for some."""
X_PHINETS = ("X-PhiNet (MSE)", "X-PhiNet (Cos)")
"""Where the paper's text says X-PhiNet without its loss: both."""
COMPARABLE = 1.0
"""Points within which two accuracies are comparable, wherever the paper says so: one margin for all claims."""
BARLOW_LR_FACTOR = 0.1
"""Barlow Twins does not converge at the others' learning rate of .03 on CIFAR-5m; the paper takes .003."""
MOCO_CODE = 128
"""The width of the codes of MoCo v2's head."""
ACC, FG = "task-knn/fast/average", "task-knn/fast/forgetting_max"
"""The paper's forgetting is from the highest accuracy on the way to the last."""
READOUT_NOTE = (
    "The paper does not say by which readout its streams are evaluated: kNN within each task, as in UCL's code, on "
    "which its own is built."
)

T = TypeVar("T", bound=TrainConfig)


class Change(Protocol):
    """From a run, or a stream, to another of the same kind."""

    def __call__(self, run: T, /) -> T:
        """The changed one."""


Measurement = tuple[Callable[[T], Job], str | Mapping[str, str]]
"""From a run to the job that measures it, and the name of the number: one for all cells, or by row or by column."""


def same(run: T) -> T:
    """No change."""
    return run


def chain(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def apply(run: T) -> T:
        for change in changes:
            run = change(run)
        return run

    return apply


def learner(name: str) -> Change:
    """Another learner, by its name in the paper's tables.

    MoCo v2 has its own narrow head: a hidden layer as wide as the others' first, and a code of at most 128.
    """

    def apply(run: T) -> T:
        method, widths = LEARNERS[name], run.learner.projector
        if method == "moco-v2" and widths is not None:
            head = widths[0], min(MOCO_CODE, widths[-1])
            return replace(run, method=method, learner=replace(run.learner, projector=head))
        return replace(run, method=method)

    return apply


def learners(*names: str) -> dict[str, Change]:
    """Another learner for each row or column."""
    return {name: learner(name) for name in names}


def online_learners(*names: str) -> dict[str, Change]:
    """The same on CIFAR-5m, where Barlow Twins learns at a tenth of the others' rate."""
    slower = {"Barlow Twins": chain(learner("Barlow Twins"), lr_factor(BARLOW_LR_FACTOR))}
    return {name: slower.get(name, learner(name)) for name in names}


def lr_factor(factor: float) -> Change:
    """A multiple of the learning rate."""
    return lambda run: replace(run, optimization=replace(run.optimization, lr=run.optimization.lr * factor))


def weight_decay(scale: Scale, value: float) -> Change:
    """The weight decay that stands for one of the paper's."""

    def apply(run: T) -> T:
        return replace(run, optimization=replace(run.optimization, weight_decay=scale.weight_decay(run, value)))

    return apply


def batch(scale: Scale, value: int) -> Change:
    """The paper's batch size, or the scale's usual one."""
    return lambda run: replace(run, batch=scale.usual_batch or scale.batch(value))


def compared_batch(scale: Scale, value: int) -> Change:
    """The batch size that stands for one of the paper's where several are compared."""
    return lambda run: replace(run, batch=scale.batch(value))


def mixup(run: ContinualConfig) -> ContinualConfig:
    """The same with mixup replay."""
    return replace(run, memory=replace(run.memory, replay="mixup"))


def twice(run: ContinualConfig) -> ContinualConfig:
    """The same with twice the epochs of each task."""
    return replace(run, epochs_per_task=2 * run.epochs_per_task)


def run_metric(name: str | Mapping[str, str]) -> Measurement[PretrainConfig]:
    """A number of the run itself: knn, stable_rank_g1, …"""
    return (lambda run: PretrainJob(run=run)), name


def probe_metric(probe: PaperProbe | None) -> Measurement[PretrainConfig]:
    """Accuracy in percent by the paper's linear probe, or by the run's own cached one."""
    return run_metric("linear") if probe is None else ((lambda run: ProbeJob(run=run, probe=probe)), "probe")


def stream_metric(name: str | Mapping[str, str]) -> Measurement[ContinualConfig]:
    """A number of a stream's readout: task-knn/fast/average."""
    return (lambda run: ContinualJob(run=run)), name


def grid_cells(
    scale: Scale, base: T, rows: Mapping[str, Change], columns: Mapping[str, Change], measurement: Measurement[T]
) -> tuple[Cell, ...]:
    """A cell for each row and column: the base changed by both, for each seed."""
    job, measure = measurement
    return tuple(
        Cell(
            row=row,
            column=column,
            measure=(name := measure if isinstance(measure, str) else measure.get(row) or measure[column]),
            jobs=tuple(job(replace(of_column(of_row(base)), seed=seed)) for seed in range(scale.seeds)),
            chance=chance(base, name),
        )
        for row, of_row in rows.items()
        for column, of_column in columns.items()
    )


def decay_table(
    scale: Scale,
    base: T,
    rows: Mapping[str, Change],
    decays: tuple[float, ...],
    measurement: Measurement[T],
    **table: Any,
) -> Table:
    """A table with a column for each weight decay that the scale runs."""
    columns = {decay_name(value): weight_decay(scale, value) for value in scale.some_decays(decays)}
    return Table(cells=grid_cells(scale, base, rows, columns, measurement), columns_are="weight decay", **table)


def stream_cells(scale: Scale, prefix: str, base: ContinualConfig, columns: Mapping[str, Change]) -> tuple[Cell, ...]:
    """Two rows, average accuracy and forgetting: `PREFIX Acc` and `PREFIX Fg`."""
    measures = {f"{prefix} Acc".strip(): ACC, f"{prefix} Fg".strip(): FG}
    return grid_cells(scale, base, dict.fromkeys(measures, same), columns, stream_metric(measures))


def stream_table(name: str, title: str, cells: tuple[Cell, ...], columns_are: str = "") -> Table:
    """A table of such rows; the best of a row are the highest accuracy and the lowest forgetting."""
    fg = tuple(dict.fromkeys(cell.row for cell in cells if cell.measure == FG))
    return Table(name=name, title=title, cells=cells, lower_rows=fg, best_in="row", columns_are=columns_are)


def one_seed_in_paper(scale: Scale) -> Scale:
    """For what the paper prints without a spread: one seed at its scale, unless another number is set."""
    return replace(scale, seeds=1) if scale == SCALES["paper"] else scale


def decay_name(value: float) -> str:
    """A weight decay as the tables have it: 0, 1e-05, 0.0001."""
    return f"{value:g}"
