"""How tables are made: a run that all cells share, a change of it for each row, another for each column."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from phinets.config.continual import ContinualConfig
from phinets.config.evaluation import PaperProbe
from phinets.config.jobs import ContinualJob, Job, PretrainJob, ProbeJob
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.paper.learners import LEARNERS
from phinets.paper.plan import Cell
from phinets.paper.scales import SCALES, Scale

T = TypeVar("T", bound=TrainConfig)


class Change(Protocol):
    """From a run, or a stream, to another of the same kind."""

    def __call__(self, run: T, /) -> T:
        """The changed one."""


Asked = tuple[Callable[[T], Job], str]
"""From a run to the work that answers, and which of its numbers is the answer."""
BARLOW_SHARE = 0.1
"""Barlow Twins does not converge at the others' learning rate of .03 on CIFAR-5m; the paper takes .003."""
MOCO_CODE = 128
"""MoCo v2's head gives codes of so many numbers."""


def same(run: T) -> T:
    """No change."""
    return run


def learner(name: str) -> Change:
    """Another learner, by its name in the paper's tables; MoCo v2 with its own narrow head."""

    def changed(run: T) -> T:
        method, widths = LEARNERS[name], run.learner.projector
        if method == "moco-v2" and widths is not None:
            return replace(run, method=method, learner=replace(run.learner, projector=moco_head(widths)))
        return replace(run, method=method)

    return changed


def moco_head(widths: tuple[int, ...]) -> tuple[int, ...]:
    """A hidden layer as wide as the other learners' first, and a code of 128, or as wide as theirs if that is less."""
    return widths[0], min(MOCO_CODE, widths[-1])


def learners(*names: str) -> dict[str, Change]:
    """Another learner for each row or column."""
    return {name: learner(name) for name in names}


def online(*names: str) -> dict[str, Change]:
    """The same on CIFAR-5m, where Barlow Twins learns at a tenth of the others' rate."""
    slower = {"Barlow Twins": paced(learner("Barlow Twins"), BARLOW_SHARE)}
    return {name: slower.get(name, learner(name)) for name in names}


def weight_decay(value: float) -> Change:
    """Another weight decay."""
    return lambda run: replace(run, optimization=replace(run.optimization, weight_decay=value))


def weight_decays(scale: Scale, values: tuple[float, ...]) -> dict[str, Change]:
    """The weight decays of a row that the scale runs, by how they are written."""
    return {written(value): weight_decay(value) for value in scale.some(values)}


def batches(scale: Scale, values: tuple[int, ...]) -> dict[str, Change]:
    """The batch sizes of a row that the scale runs, by the paper's; a small scale's own are smaller."""
    return {str(value): batch(scale, value) for value in scale.some(values)}


def batch(scale: Scale, value: int) -> Change:
    """The batch size that stands for one of the paper's."""
    return lambda run: replace(run, batch=scale.batch(value))


def paced(change: Change, share: float) -> Change:
    """A change, at a multiple of the learning rate."""

    def changed(run: T) -> T:
        made = change(run)
        return replace(made, optimization=replace(made.optimization, lr=made.optimization.lr * share))

    return changed


def crossed(
    scale: Scale, base: T, rows: Mapping[str, Change], columns: Mapping[str, Change], asked: Asked[T]
) -> tuple[Cell, ...]:
    """A cell for each row and column: the base changed by both, by each seed."""
    return tuple(
        Cell(
            row=row,
            column=column,
            measure=asked[1],
            jobs=tuple(asked[0](replace(of_column(of_row(base)), seed=seed)) for seed in range(scale.seeds)),
        )
        for row, of_row in rows.items()
        for column, of_column in columns.items()
    )


def pretrained(measure: str) -> Asked[PretrainConfig]:
    """A number of the run itself: knn, stable_rank_g1, …"""
    return (lambda run: PretrainJob(run=run)), measure


def probed(probe: PaperProbe) -> Asked[PretrainConfig]:
    """Percent right by the paper's linear probe."""
    return (lambda run: ProbeJob(run=run, probe=probe)), "probe"


def read(measure: str) -> Asked[ContinualConfig]:
    """A number of a stream's readout: task-knn/fast/average."""
    return (lambda run: ContinualJob(run=run)), measure


def printed_once(scale: Scale) -> Scale:
    """For what the paper prints without a spread: one seed at its scale, unless another number was asked for."""
    return replace(scale, seeds=1) if scale == SCALES["paper"] else scale


def written(value: float) -> str:
    """A weight decay as the tables have it: 0, 1e-05, 0.0001."""
    return f"{value:g}"
