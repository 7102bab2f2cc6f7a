"""How tables are made: a run that all cells share, a change of it for each row, another for each column."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from phinets.config.continual import ContinualConfig
from phinets.config.run import RunConfig, Training
from phinets.config.work import Pretraining, Probing, Streaming, Work
from phinets.paper.plan import Cell
from phinets.paper.scales import Scale

T = TypeVar("T", bound=Training)
Change = Callable[[T], T]
BARLOW_LR = 0.1
"""Barlow Twins does not converge at the others' learning rate of .03 on CIFAR-5m; the paper takes .003."""


def method(name: str) -> Change[T]:
    """Another learner."""
    return lambda run: replace(run, method=name)


def methods(rows: Mapping[str, str]) -> dict[str, Change[T]]:
    """Another learner for each row or column."""
    return {row: method(name) for row, name in rows.items()}


def weight_decay(value: float) -> Change[T]:
    """Another weight decay."""
    return lambda run: replace(run, optimisation=replace(run.optimisation, weight_decay=value))


def weight_decays(scale: Scale, values: tuple[float, ...]) -> dict[str, Change[T]]:
    """The weight decays of a row that the scale runs, by how they are written."""
    return {written(value): weight_decay(value) for value in scale.some(values)}


def gentler(change: Change[T], share: float = BARLOW_LR) -> Change[T]:
    """The same at a share of the learning rate."""

    def changed(run: T) -> T:
        made = change(run)
        return replace(made, optimisation=replace(made.optimisation, lr=made.optimisation.lr * share))

    return changed


def crossed(
    scale: Scale, base: T, rows: Mapping[str, Change[T]], columns: Mapping[str, Change[T]], asked: "Asked[T]"
) -> tuple[Cell, ...]:
    """A cell for each row and column: the base changed by both, by each seed."""
    return tuple(
        Cell(
            row=row,
            column=column,
            measure=asked[1],
            works=tuple(asked[0](replace(of_column(of_row(base)), seed=seed)) for seed in range(scale.seeds)),
        )
        for row, of_row in rows.items()
        for column, of_column in columns.items()
    )


Asked = tuple[Callable[[T], Work], str]
"""From a run to the work that answers, and which of its numbers is the answer."""


def knn() -> Asked[RunConfig]:
    """Percent right by kNN."""
    return (lambda run: Pretraining(run=run)), "knn"


def probed(scale: Scale) -> Asked[RunConfig]:
    """Percent right by the paper's linear probe."""
    return (lambda run: Probing(run=run, probe=scale.probe)), "probe"


def read(measure: str) -> Asked[ContinualConfig]:
    """A number of a stream's readout: task-knn/fast/average."""
    return (lambda run: Streaming(run=run)), measure


def written(value: float) -> str:
    """A weight decay as the tables have it: 0, 1e-05, 0.0001."""
    return f"{value:g}"
