"""Split CIFAR-10 and CIFAR-100: finetune, mixup replay, EMA β, the fast and the slow encoder."""

from dataclasses import replace

from phinets.config.continual import ContinualConfig
from phinets.paper.grids import Change, crossed, learners, paced, read, same
from phinets.paper.plan import Table, Target
from phinets.paper.scales import Scale
from phinets.paper.targets.streams import READ_OUT, mixup, stream_table, two_rows

METHODS = (
    "SimSiam",
    "RM-SimSiam",
    "PhiNet (MSE)",
    "X-PhiNet (g=I, MSE)",
    "X-PhiNet (MSE)",
    "X-PhiNet (Cos)",
)
BETAS = (0.999, 0.997, 0.99, 0.97, 0.9, 0.7)
WITH_SLOW = ("X-PhiNet (MSE)", "X-PhiNet (Cos)")
RATES: dict[str, float] = {"lr/3": 1 / 3, "lr": 1.0, "3lr": 3.0}


def _split_table(scale: Scale, name: str, title: str, base: ContinualConfig) -> Table:
    strategies = {"FineTune": base, "Mixup": mixup(base)}
    cells = tuple(cell for of, run in strategies.items() for cell in two_rows(scale, of, run, learners(*METHODS)))
    return stream_table(name, f"{title}: accuracy and forgetting", cells)


def _split(scale: Scale) -> tuple[Table, ...]:
    return (
        _split_table(scale, "split-cifar10", "Split CIFAR-10", scale.split_cifar10),
        _split_table(scale, "split-cifar100", "Split CIFAR-100", scale.split_cifar100),
    )


def _beta(value: float) -> Change:
    return lambda run: replace(run, learner=replace(run.learner, beta=value))


def _ema(scale: Scale) -> tuple[Table, ...]:
    base = mixup(replace(scale.split_cifar100, method="x-phinet/cosine"))
    columns = {f"{beta:g}": _beta(beta) for beta in scale.some(BETAS)}
    title = "Split CIFAR-100 with mixup, X-PhiNet (Cos): EMA β"
    return (stream_table("ema-beta", title, two_rows(scale, "", base, columns), "EMA β"),)


def _fast_and_slow(scale: Scale, name: str, readout: str) -> Table:
    columns: dict[str, Change] = {rate: paced(same, RATES[rate]) for rate in scale.some(tuple(RATES))}
    cells = tuple(
        cell
        for method, change in learners(*WITH_SLOW).items()
        for clock in ("fast", "slow")
        for cell in crossed(
            scale, scale.split_cifar10, {f"{method} {clock}": change}, columns, read(f"{readout}/{clock}/average")
        )
    )
    return Table(
        name=name,
        title=f"Split CIFAR-10, finetune: average accuracy of the fast and the slow encoder ({readout})",
        cells=cells,
        columns_are="learning rate",
    )


def _fast_slow(scale: Scale) -> tuple[Table, ...]:
    return (
        _fast_and_slow(scale, "fast-slow", "task-linear"),
        _fast_and_slow(scale, "fast-slow-knn", "task-knn"),
    )


TARGETS = (
    Target(
        name="split-cifar",
        place="table tab:split-cifar10",
        title="Split CIFAR-10 and CIFAR-100, finetune and mixup replay",
        tables=_split,
        notes=READ_OUT,
    ),
    Target(
        name="ema-beta",
        place="table tab:split-cifar100-mom",
        title="EMA β of X-PhiNet in a stream with mixup replay",
        tables=_ema,
        notes=f"The learner is X-PhiNet (Cos), whose number for β = .99 in tab:split-cifar10 is repeated. {READ_OUT}",
    ),
    Target(
        name="fast-slow",
        place="figure table: robust-lr",
        title="the fast and the slow encoder in a stream",
        tables=_fast_slow,
        drawn="lines",
        notes=(
            "The figure's axis is not printed; its label speaks of the learning rate, so that is changed: a third of "
            "the usual one, the usual one, three times it. The text speaks of linear probing: the first table; kNN "
            "stands beside it."
        ),
    ),
)
