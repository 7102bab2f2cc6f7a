"""The main table on CIFAR-5m, and Split CIFAR-5m: by weight decay, two epochs a task, mixup replay."""

from phinets.config.continual import ContinualConfig
from phinets.paper.grids import batch, crossed, online, probed, read, same, weight_decay, weight_decays
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.scales import Scale
from phinets.paper.targets.streams import ACC, FG, READ_OUT, mixup, stream_table, twice, two_rows

METHODS = ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam", "X-PhiNet (MSE)", "X-PhiNet (Cos)")
DECAYS = (2e-5, 1e-4, 5e-4, 1e-3)
"""The figure's axis is not printed; these hold the two of the main table, and span those of the paper's streams."""
BEST = {"SimSiam": 1e-5}
"""The weight decay of tab:ablation_cifar5m_wd whose number the main table repeats; 2e-5 for all others."""


def _online(scale: Scale) -> Table:
    base = batch(scale, 512)(scale.cifar5m)
    cells = tuple(
        cell
        for name, change in online(*METHODS).items()
        for cell in crossed(
            scale,
            weight_decay(BEST.get(name, 2e-5))(base),
            {"CIFAR-5m": same},
            {name: change},
            probed(scale.probe),
        )
    )
    return Table(name="cifar5m", title="CIFAR-5m, 8 epochs: linear probe", cells=cells, best_in="row")


def _rows(scale: Scale, of: str, base: ContinualConfig) -> tuple[Cell, ...]:
    return two_rows(scale, of, base, online(*METHODS))


def _main(scale: Scale) -> tuple[Table, ...]:
    cells = tuple(
        cell
        for of, value in (("wd 5e-4", 5e-4), ("wd 2e-5", 2e-5))
        for cell in _rows(scale, of, weight_decay(value)(scale.split_cifar5m))
    )
    title = "Split CIFAR-5m, 1 epoch a task: accuracy and forgetting"
    return (_online(scale), stream_table("split-cifar5m", title, cells))


def _by_decay(scale: Scale) -> tuple[Table, ...]:
    rows, columns = online(*METHODS), weight_decays(scale, DECAYS)
    accuracy = crossed(scale, scale.split_cifar5m, rows, columns, read(ACC))
    forgetting = crossed(scale, scale.split_cifar5m, rows, columns, read(FG))
    title = "Split CIFAR-5m by weight decay"
    return (
        Table(
            name="split-cifar5m-weight-decay-accuracy",
            title=f"{title}: average accuracy",
            cells=accuracy,
            columns_are="weight decay",
        ),
        Table(
            name="split-cifar5m-weight-decay-forgetting",
            title=f"{title}: forgetting",
            cells=forgetting,
            better="lower",
            columns_are="weight decay",
        ),
    )


def _two_epochs(scale: Scale) -> tuple[Table, ...]:
    cells = _rows(scale, "2 epochs", twice(scale.split_cifar5m))
    title = "Split CIFAR-5m, 2 epochs a task: accuracy and forgetting"
    return (stream_table("split-cifar5m-two-epochs", title, cells),)


def _mixup(scale: Scale) -> tuple[Table, ...]:
    once = mixup(scale.split_cifar5m)
    cells = _rows(scale, "1 epoch", once) + _rows(scale, "2 epochs", twice(once))
    title = "Split CIFAR-5m with mixup replay: accuracy and forgetting"
    return (stream_table("split-cifar5m-mixup", title, cells),)


TARGETS = (
    Target(
        name="cifar5m",
        place="table tab:online-continual",
        title="CIFAR-5m and Split CIFAR-5m, the main table",
        tables=_main,
        notes=(
            "The row CIFAR-5m takes each method at its best weight decay of tab:ablation_cifar5m_wd, whose number it "
            "repeats: 1e-5 for SimSiam, 2e-5 for BYOL, RM-SimSiam and X-PhiNet. Barlow Twins is not in that table, "
            f"and PhiNet's 76.74 neither: 2e-5 is taken. {READ_OUT}"
        ),
    ),
    Target(
        name="split-cifar5m-weight-decay",
        place="figure fig:sp-c5m-weight-decay",
        title="Split CIFAR-5m by weight decay",
        tables=_by_decay,
        drawn="lines",
        notes=f"The figure's axis and methods are not printed: the methods are those of the main table. {READ_OUT}",
    ),
    Target(
        name="split-cifar5m-two-epochs",
        place="table tab:online-continual-two-epochs",
        title="Split CIFAR-5m, two epochs a task",
        tables=_two_epochs,
        notes=READ_OUT,
    ),
    Target(
        name="split-cifar5m-mixup",
        place="table tab:online-continual-mixup",
        title="Split CIFAR-5m with mixup replay, one and two epochs a task",
        tables=_mixup,
        notes=READ_OUT,
    ),
)
