"""Split CIFAR-10 and CIFAR-100: finetune, mixup replay, EMA β, the fast and the slow encoder."""

from dataclasses import replace

from phinets.config.continual import ContinualConfig
from phinets.paper.claims import Claim
from phinets.paper.grids import Change, crossed, learners, paced, read, same
from phinets.paper.learners import X_PHINETS
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Higher, Peaks
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
        for method, change in learners(*X_PHINETS).items()
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


WHERE = "Appendix, Split CIFAR10 and Split CIFAR100"


def _split_claims(table: str, data: str) -> tuple[Claim, ...]:
    def ahead(over: tuple[str, ...], under: tuple[str, ...], row: str) -> Higher:
        return Higher(table=table, over=over, under=under, along="columns", at=(row,))

    name = table.removeprefix("split-")
    return (
        Claim(
            name=f"x-phinet-above-simsiam-{name}",
            says=f"X-PhiNet is better than SimSiam on {data}",
            where=WHERE,
            rule=ahead(X_PHINETS, ("SimSiam",), "FineTune Acc"),
        ),
        Claim(
            name=f"phinet-above-x-phinet-{name}",
            says=f"PhiNet is sometimes better than X-PhiNet: here on {data}",
            where=WHERE,
            rule=ahead(("PhiNet (MSE)",), X_PHINETS, "FineTune Acc"),
        ),
        Claim(
            name=f"x-phinet-highest-with-mixup-{name}",
            says=f"with mixup replay X-PhiNet is better than the other methods on {data}",
            where=WHERE,
            rule=ahead(X_PHINETS, ("SimSiam", "RM-SimSiam", "PhiNet (MSE)"), "Mixup Acc"),
        ),
    )


EMA_CLAIMS = (
    Claim(
        name="best-in-the-middle",
        says="accuracy rises with β, and falls again from some β on",
        where="Appendix, effect of exponential moving average",
        rule=Peaks(table="ema-beta", name="Acc"),
    ),
)
SLOW_CLAIMS = tuple(
    Claim(
        name=f"slow-below-fast-{word}",
        says=f"the slow encoder of {name} is worse than the fast one throughout",
        where="caption of table: robust-lr",
        rule=Higher(table="fast-slow", over=(f"{name} fast",), under=(f"{name} slow",), by="worst"),
    )
    for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)
)

TARGETS = (
    Target(
        name="split-cifar",
        place="table tab:split-cifar10",
        title="Split CIFAR-10 and CIFAR-100, finetune and mixup replay",
        tables=_split,
        claims=(
            *_split_claims("split-cifar10", "Split CIFAR-10"),
            *_split_claims("split-cifar100", "Split CIFAR-100"),
        ),
        notes=READ_OUT,
    ),
    Target(
        name="ema-beta",
        place="table tab:split-cifar100-mom",
        title="EMA β of X-PhiNet in a stream with mixup replay",
        tables=_ema,
        claims=EMA_CLAIMS,
        notes=f"The learner is X-PhiNet (Cos), whose number for β = .99 in tab:split-cifar10 is repeated. {READ_OUT}",
    ),
    Target(
        name="fast-slow",
        place="figure table: robust-lr",
        title="the fast and the slow encoder in a stream",
        tables=_fast_slow,
        claims=SLOW_CLAIMS,
        drawn="lines",
        notes=(
            "The figure's axis is not printed; its label speaks of the learning rate, so that is changed: a third of "
            "the usual one, the usual one, three times it. The text speaks of linear probing: the first table; kNN "
            "stands beside it."
        ),
    ),
)
