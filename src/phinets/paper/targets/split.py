"""Split CIFAR-10 and CIFAR-100: finetune, mixup replay, EMA β, the fast and the slow encoder."""

from collections.abc import Mapping
from dataclasses import replace

from phinets.config.continual import ContinualConfig
from phinets.paper import grids
from phinets.paper.grids import READOUT_NOTE, X_PHINETS, Change, Measurement, T
from phinets.paper.plan import Table, Target
from phinets.paper.rules import AnyOf, Claim, Higher, Peaks
from phinets.paper.scales import Scale

METHODS = ("SimSiam", "RM-SimSiam", "PhiNet (MSE)", "X-PhiNet (g=I, MSE)", *X_PHINETS)
BETAS = (0.999, 0.997, 0.99, 0.97, 0.9, 0.7)
RATES: dict[str, float] = {"lr/3": 1 / 3, "lr": 1.0, "3lr": 3.0}
ONLINE_RATES: dict[str, float] = {"lr/10": 0.1, "lr/3": 1 / 3, "lr": 1.0}
"""The learning rates that the paper tried on CIFAR-5m: .003, .01 and .03."""
ENCODERS = {f"{name} {encoder}": (name, encoder) for name in X_PHINETS for encoder in ("fast", "slow")}
LINEAR = {"fast": "linear", "slow": "linear_slow"}


def _split(scale: Scale) -> tuple[Table, ...]:
    def table(name: str, title: str, base: ContinualConfig) -> Table:
        runs, columns = {"FineTune": base, "Mixup": grids.mixup(base)}, grids.learners(*METHODS)
        cells = tuple(cell for row, run in runs.items() for cell in grids.stream_cells(scale, row, run, columns))
        return grids.stream_table(name, f"{title}: accuracy and forgetting", cells)

    return (
        table("split-cifar10", "Split CIFAR-10", scale.split_cifar10),
        table("split-cifar100", "Split CIFAR-100", scale.split_cifar100),
    )


def _beta(value: float) -> Change:
    return lambda run: replace(run, learner=replace(run.learner, beta=value))


def _ema(scale: Scale) -> tuple[Table, ...]:
    base = grids.mixup(replace(scale.split_cifar100, method="x-phinet/cosine"))
    columns = {f"{beta:g}": _beta(beta) for beta in scale.some(BETAS)}
    title = "Split CIFAR-100 with mixup, X-PhiNet (Cos): EMA β"
    return (grids.stream_table("ema-beta", title, grids.stream_cells(scale, "", base, columns), "EMA β"),)


def _fast_slow(scale: Scale) -> tuple[Table, ...]:
    rows = {row: grids.learner(name) for row, (name, _) in ENCODERS.items()}
    online = grids.batch(scale, 512)(grids.weight_decay(scale, 2e-5)(replace(scale.cifar5m, method="x-phinet")))
    online = replace(online, evaluation=replace(online.evaluation, encoder="both"))

    def table(name: str, title: str, base: T, rates: Mapping[str, float], metric: Measurement[T]) -> Table:
        columns = {rate: grids.lr_factor(rates[rate]) for rate in scale.some(tuple(rates))}
        cells = grids.grid_cells(scale, base, rows, columns, metric)
        title = f"{title} of the fast and the slow encoder"
        return Table(name=name, title=title, cells=cells, columns_are="learning rate")

    by_task = grids.stream_metric({row: f"task-linear/{encoder}/average" for row, (_, encoder) in ENCODERS.items()})
    at_end = grids.run_metric({row: LINEAR[encoder] for row, (_, encoder) in ENCODERS.items()})
    return (
        table("fast-slow", "Split CIFAR-10, finetune: average accuracy", scale.split_cifar10, RATES, by_task),
        table("fast-slow-cifar5m", "CIFAR-5m, 8 epochs: accuracy", online, ONLINE_RATES, at_end),
    )


WHERE = "Appendix, Split CIFAR10 and Split CIFAR100"
DATA = {"split-cifar10": "Split CIFAR-10", "split-cifar100": "Split CIFAR-100"}


def _ahead(table: str, over: tuple[str, ...], under: tuple[str, ...], *rows: str) -> Higher:
    return Higher(table=table, over=over, under=under, along="columns", at=rows)


SPLIT_CLAIMS = (
    *(Claim(f"x-phinet-above-simsiam-{table.removeprefix('split-')}", WHERE,
            "in both Split CIFAR10 and Split CIFAR100, X-PhiNet outperforms SimSiam",
            f"on {data} both losses of X-PhiNet are above SimSiam on average over finetune and mixup",
            _ahead(table, X_PHINETS, ("SimSiam",), "FineTune Acc", "Mixup Acc"))
      for table, data in DATA.items()),
    Claim("phinet-sometimes-above-x-phinet", WHERE, "However, PhiNet sometimes shows higher accuracy than X-PhiNet.",
          "on one of the data sets, finetuned or with mixup, PhiNet (MSE) is above both losses of X-PhiNet",
          AnyOf(rules=tuple(_ahead(table, ("PhiNet (MSE)",), X_PHINETS, row)
                            for table in DATA for row in ("FineTune Acc", "Mixup Acc")))),
    *(Claim(f"x-phinet-highest-with-mixup-{table.removeprefix('split-')}", WHERE,
            "When using mixup for replay, X-PhiNet shows significantly higher accuracy compared to other methods.",
            f"on {data} with mixup X-PhiNet (Cos) is above SimSiam, RM-SimSiam and PhiNet (MSE)",
            _ahead(table, ("X-PhiNet (Cos)",), ("SimSiam", "RM-SimSiam", "PhiNet (MSE)"), "Mixup Acc"))
      for table, data in DATA.items()),
)  # fmt: skip
EMA_CLAIMS = (
    Claim("best-in-the-middle", "Appendix, effect of exponential moving average",
          "accuracy increases as β increases and then decreases again from a certain point",
          "at some β between the largest and the smallest, accuracy is above that at both",
          Peaks(table="ema-beta", name="Acc")),
)  # fmt: skip
SLOW_CLAIMS = tuple(
    Claim(f"slow-below-fast-{word}", "Appendix, comparison of fast learner with slow learner",
          "linear probing of the EMA encoder (dashed lines) performs consistently worse than the encoder without EMA "
          "(solid lines)",
          f"the slow encoder of {name} is below the fast one at every learning rate",
          Higher(table="fast-slow", over=(f"{name} fast",), under=(f"{name} slow",), by="every"))
    for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)
)  # fmt: skip

TARGETS = (
    Target("split-cifar", "table tab:split-cifar10", "Split CIFAR-10 and CIFAR-100, finetune and mixup replay",
           tables=_split,
           claims=SPLIT_CLAIMS,
           notes=READOUT_NOTE),
    Target("ema-beta", "table tab:split-cifar100-mom", "EMA β of X-PhiNet in a stream with mixup replay",
           tables=_ema, claims=EMA_CLAIMS,
           notes=f"It is X-PhiNet (Cos), whose number for β = .99 in tab:split-cifar10 is repeated. {READOUT_NOTE}"),
    Target("fast-slow", "figure table: robust-lr", "the fast and the slow encoder in a stream",
           tables=_fast_slow, claims=SLOW_CLAIMS, figure="lines",
           notes="The figure's axis is not printed; its label speaks of the learning rate, so that is changed: a "
                 "third of the usual one, the usual one, three times it. The text speaks of linear probing. The panels "
                 "are not named. The caption singles out Split CIFAR-10, so there is other data: CIFAR-5m "
                 "is taken, where the authors' code probes the slow encoder too, with the three learning rates that "
                 "the paper tried there. Every linear classifier here is the "
                 "package's own, on features computed once."),
)  # fmt: skip
