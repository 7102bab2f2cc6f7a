"""The main table on CIFAR-5m, and Split CIFAR-5m: by weight decay, two epochs a task, mixup replay."""

from phinets.config.continual import ContinualConfig
from phinets.paper import grids
from phinets.paper.grids import ACC, FG, READOUT_NOTE, X_PHINETS
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Claim, Comparable, Higher, Steadier
from phinets.paper.scales import Scale
from phinets.paper.targets.cifar5m import ONLINE_NOTE

OTHERS = ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam")
METHODS = grids.online_learners(*OTHERS, *X_PHINETS)
DECAYS = (2e-5, 1e-4, 5e-4, 1e-3)
"""The figure's axis is not printed; these hold the two of the main table, and span those of the paper's streams."""
BEST = {"SimSiam": 1e-5}
"""The weight decay of tab:ablation_cifar5m_wd whose number the main table repeats; 2e-5 for all others."""


def _main(scale: Scale) -> tuple[Table, ...]:
    columns = {name: grids.chain(grids.weight_decay(BEST.get(name, 2e-5)), change) for name, change in METHODS.items()}
    base = grids.batch(scale, 512)(scale.cifar5m)
    online = grids.grid_cells(scale, base, {"CIFAR-5m": grids.same}, columns, grids.probe_metric(scale.probe))
    streams = _rows(scale, "wd 5e-4", grids.weight_decay(5e-4)(scale.split_cifar5m))
    streams += _rows(scale, "wd 2e-5", grids.weight_decay(2e-5)(scale.split_cifar5m))
    return (
        Table(name="cifar5m", title="CIFAR-5m, 8 epochs: linear probe", cells=online, best_in="row"),
        grids.stream_table("split-cifar5m", "Split CIFAR-5m, 1 epoch a task: accuracy and forgetting", streams),
    )


def _rows(scale: Scale, prefix: str, base: ContinualConfig) -> tuple[Cell, ...]:
    return grids.stream_cells(scale, prefix, base, METHODS)


def _by_decay(scale: Scale) -> tuple[Table, ...]:
    def table(kind: str, metric: str, title: str, better: str) -> Table:
        name, title = f"split-cifar5m-weight-decay-{kind}", f"Split CIFAR-5m by weight decay: {title}"
        base, measurement = scale.split_cifar5m, grids.stream_metric(metric)
        return grids.decay_table(scale, base, METHODS, DECAYS, measurement, name=name, title=title, better=better)

    return table("accuracy", ACC, "average accuracy", "higher"), table("forgetting", FG, "forgetting", "lower")


def _two_epochs(scale: Scale) -> tuple[Table, ...]:
    cells = _rows(scale, "2 epochs", grids.twice(scale.split_cifar5m))
    return (grids.stream_table(TWO, "Split CIFAR-5m, 2 epochs a task: accuracy and forgetting", cells),)


def _mixup(scale: Scale) -> tuple[Table, ...]:
    once = grids.mixup(scale.split_cifar5m)
    cells = _rows(scale, "1 epoch", once) + _rows(scale, "2 epochs", grids.twice(once))
    return (grids.stream_table(MIXUP, "Split CIFAR-5m with mixup replay: accuracy and forgetting", cells),)


SECTION, STREAM, ACCURACY = "Section 5.2", "split-cifar5m", "split-cifar5m-weight-decay-accuracy"
TWO, MIXUP = "split-cifar5m-two-epochs", "split-cifar5m-mixup"
ACCURACIES, FORGETTINGS = ("wd 5e-4 Acc", "wd 2e-5 Acc"), ("wd 5e-4 Fg", "wd 2e-5 Fg")
MINIMAL = 1.0
"""Points of forgetting beyond SimSiam's that still are minimal: the paper's X-PhiNet (MSE) has 1.0 more."""
MAIN_CLAIMS = (
    Claim("x-phinet-above-simsiam-and-phinet", SECTION, "on CIFAR-5m X-PhiNet is better than SimSiam and PhiNet",
          Higher(table="cifar5m", over=X_PHINETS, under=("SimSiam", "PhiNet (MSE)"), along="columns")),
    Claim("x-phinet-highest", "caption of tab:online-continual",
          "on CIFAR-5m X-PhiNet is better than every other method",
          Higher(table="cifar5m", over=X_PHINETS, under=OTHERS, along="columns")),
    Claim("memory-helps", SECTION,
          "on CIFAR-5m the slow encoder helps: X-PhiNet (MSE) is better than PhiNet (MSE)",
          Higher(table="cifar5m", over=("X-PhiNet (MSE)",), under=("PhiNet (MSE)",), along="columns")),
    Claim("x-phinet-above-simsiam-in-a-stream", SECTION,
          "on Split CIFAR-5m X-PhiNet is better than SimSiam, at both weight decays",
          Higher(table=STREAM, over=X_PHINETS, under=("SimSiam",), along="columns", at=ACCURACIES, by="worst")),
    Claim("minimal-forgetting", SECTION, "on Split CIFAR-5m X-PhiNet forgets hardly more than SimSiam",
          Higher(table=STREAM, over=X_PHINETS, under=("SimSiam",), along="columns", at=FORGETTINGS, better="lower",
                 margin=-MINIMAL)),
    Claim("cosine-better-in-a-stream", "Appendix, limitations",
          "in a stream X-PhiNet is better with cosine than with MSE",
          Higher(table=STREAM, over=("X-PhiNet (Cos)",), under=("X-PhiNet (MSE)",), along="columns", at=ACCURACIES)),
)  # fmt: skip
DECAY_CLAIMS = (
    Claim("x-phinet-highest", SECTION,
          "in a stream X-PhiNet is better than every other method at every weight decay",
          Higher(table=ACCURACY, over=X_PHINETS, under=OTHERS, by="worst")),
    *(Claim(f"steady-{word}", "caption of fig:sp-c5m-weight-decay",
            f"in a stream {name} changes less over weight decay than SimSiam",
            Steadier(table=ACCURACY, one=name, other=("SimSiam",)))
      for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)),
)  # fmt: skip
TWO_CLAIMS = (
    Claim("x-phinet-highest", "Appendix, epochs per task",
          "with two epochs a task X-PhiNet is still better than every other method",
          Higher(table=TWO, over=X_PHINETS, under=OTHERS, along="columns", at=("2 epochs Acc",))),
)  # fmt: skip
REPLAY = "Appendix, replay with Mixup"
CONSIDERABLY = 0.5
"""Points ahead that are considerable: more than the spreads of the paper's row, most of which are below."""
ABOUT = 1.0
"""Points that still are comparable: more than the largest spread of the row of two epochs that is below 1, .7."""
IMPROVE = ("BYOL", "Barlow Twins", "RM-SimSiam")
MIXUP_CLAIMS = (
    Claim("x-phinet-considerably-higher", REPLAY,
          "with replay and one epoch a task X-PhiNet is clearly better than every other method",
          Higher(table=MIXUP, over=X_PHINETS, under=OTHERS, along="columns", at=("1 epoch Acc",), margin=CONSIDERABLY)),
    Claim("others-rise", REPLAY,
          "with replay BYOL, Barlow Twins and RM-SimSiam are better with two epochs a task than with one",
          Higher(table=MIXUP, over=("2 epochs Acc",), under=("1 epoch Acc",), at=IMPROVE)),
    Claim("x-phinet-high-or-comparable", "caption of tab:online-continual-mixup",
          "with replay X-PhiNet is better than every other method or about as good, for one and two epochs a task",
          Higher(table=MIXUP, over=X_PHINETS, under=OTHERS, along="columns", at=("1 epoch Acc", "2 epochs Acc"),
                 by="worst", margin=-ABOUT)),
    *(Claim(f"comparable-{other.lower().replace(' ', '-')}", REPLAY,
            f"with replay and two epochs a task {other} is about as good as X-PhiNet (Cos)",
            Comparable(table=MIXUP, one="X-PhiNet (Cos)", other=other, within=ABOUT, along="columns",
                       at=("2 epochs Acc",)))
      for other in IMPROVE),
)  # fmt: skip

TARGETS = (
    Target("cifar5m", "table tab:online-continual", "CIFAR-5m and Split CIFAR-5m, the main table",
           tables=_main, claims=MAIN_CLAIMS,
           notes="The row CIFAR-5m takes each method at its best weight decay of tab:ablation_cifar5m_wd, whose "
                 "number it repeats: 1e-5 for SimSiam, 2e-5 for BYOL, RM-SimSiam and X-PhiNet. Barlow Twins is not "
                 f"in that table, and PhiNet's 76.74 neither: 2e-5 is taken. {ONLINE_NOTE} {READOUT_NOTE}"),
    Target("split-cifar5m-weight-decay", "figure fig:sp-c5m-weight-decay", "Split CIFAR-5m by weight decay",
           tables=_by_decay, claims=DECAY_CLAIMS, figure="lines",
           notes="The figure's axis and methods are not printed: the methods are those of the main table. "
                 f"{READOUT_NOTE}"),
    Target("split-cifar5m-two-epochs", "table tab:online-continual-two-epochs", "Split CIFAR-5m, two epochs a task",
           tables=_two_epochs, claims=TWO_CLAIMS, notes=READOUT_NOTE),
    Target("split-cifar5m-mixup", "table tab:online-continual-mixup",
           "Split CIFAR-5m with mixup replay, one and two epochs a task",
           tables=_mixup, claims=MIXUP_CLAIMS, notes=READOUT_NOTE),
)  # fmt: skip
