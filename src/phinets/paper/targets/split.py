"""Split CIFAR-10 and CIFAR-100: finetune, mixup replay, EMA β."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from phinets.config.continual import ContinualConfig
from phinets.paper.grids import Change, crossed, methods, read
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.scales import Scale

ACC, FG = "task-knn/fast/average", "task-knn/fast/forgetting_max"
METHODS = {
    "SimSiam": "simsiam",
    "RM-SimSiam": "rm-simsiam",
    "PhiNet (MSE)": "phinet",
    "X-PhiNet (g=I, MSE)": "x-phinet/identity-g",
    "X-PhiNet (MSE)": "x-phinet",
    "X-PhiNet (Cos)": "x-phinet/cosine",
}
BETAS = (0.999, 0.997, 0.99, 0.97, 0.9, 0.7)


def acc_and_fg(
    scale: Scale, of: str, base: ContinualConfig, columns: Mapping[str, Change[ContinualConfig]]
) -> tuple[Cell, ...]:
    """Two rows: average accuracy, and forgetting."""
    return tuple(
        cell
        for row, measure in ((f"{of} Acc", ACC), (f"{of} Fg", FG))
        for cell in crossed(scale, base, {row: lambda run: run}, columns, read(measure))
    )


def mixup(run: ContinualConfig) -> ContinualConfig:
    """The same with mixup replay."""
    return replace(run, memory=replace(run.memory, replay="mixup"))


def _split(base_of: Callable[[Scale], ContinualConfig], data: str) -> Callable[[Scale], tuple[Table, ...]]:
    def tables(scale: Scale) -> tuple[Table, ...]:
        base = base_of(scale)
        rows = {f"{data} (FineTune)": base, f"{data} (Mixup)": mixup(base)}
        cells = tuple(cell for of, run in rows.items() for cell in acc_and_fg(scale, of, run, methods(METHODS)))
        name = f"{data.lower().replace(' ', '-')}"
        return (Table(name=name, title=f"{data}: accuracy and forgetting", cells=cells, best_in="row"),)

    return tables


def _beta(value: float) -> Change[ContinualConfig]:
    return lambda run: replace(run, learner=replace(run.learner, beta=value))


def _ema(scale: Scale) -> tuple[Table, ...]:
    base = mixup(replace(scale.split_cifar100, method="x-phinet/cosine"))
    columns = {f"{beta:g}": _beta(beta) for beta in scale.some(BETAS)}
    cells = acc_and_fg(scale, "Split C100 (Mixup)", base, columns)
    return (
        Table(
            name="ema-beta", title="Split CIFAR-100 with mixup: EMA β", cells=cells, best_in="row", columns_are="EMA β"
        ),
    )


TARGETS = (
    Target(
        name="split-cifar10",
        place="table tab:split-cifar10",
        title="Split CIFAR-10, finetune and mixup replay",
        tables=_split(lambda scale: scale.split_cifar10, "Split C10"),
    ),
    Target(
        name="ema-beta",
        place="table tab:split-cifar100-mom",
        title="EMA β of X-PhiNet in a stream with mixup replay",
        tables=_ema,
    ),
)
