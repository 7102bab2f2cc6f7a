"""The main table on CIFAR-5m, and Split CIFAR-5m: by weight decay, two epochs a task, mixup replay."""

from phinets.config.continual import ContinualConfig
from phinets.paper import grids
from phinets.paper.grids import ACC, COMPARABLE, FG, READOUT_NOTE, X_PHINETS
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Claim, Comparable, Higher, HigherAt, Steadier
from phinets.paper.scales import Scale
from phinets.paper.targets.cifar5m import ONLINE_NOTE
from phinets.paper.targets.weight_decay import COSINE_WHERE, LIMITS

OTHERS = ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam")
METHODS = grids.online_learners(*OTHERS, *X_PHINETS)
DECAYS = (2e-5, 1e-4, 5e-4, 1e-3)
"""The figure's axis is not printed; these hold the two of the main table, and span those of the paper's streams."""
BEST = {"SimSiam": 1e-5}
"""The weight decay of tab:ablation_cifar5m_wd whose number the main table repeats; 2e-5 for all others."""


def _main(scale: Scale) -> tuple[Table, ...]:
    columns = {
        name: grids.chain(grids.weight_decay(scale, BEST.get(name, 2e-5)), change) for name, change in METHODS.items()
    }
    base = grids.batch(scale, 512)(scale.cifar5m)
    online = grids.grid_cells(scale, base, {"CIFAR-5m": grids.same}, columns, grids.probe_metric(scale.probe))
    streams = _rows(scale, "wd 5e-4", grids.weight_decay(scale, 5e-4)(scale.split_cifar5m))
    streams += _rows(scale, "wd 2e-5", grids.weight_decay(scale, 2e-5)(scale.split_cifar5m))
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
    return (grids.stream_table(TWO, "Split CIFAR-5m, 2 epochs a task: accuracy and forgetting", cells), _main(scale)[1])


def _mixup(scale: Scale) -> tuple[Table, ...]:
    once = grids.mixup(scale.split_cifar5m)
    cells = _rows(scale, "1 epoch", once) + _rows(scale, "2 epochs", grids.twice(once))
    return (grids.stream_table(MIXUP, "Split CIFAR-5m with mixup replay: accuracy and forgetting", cells),)


SECTION, STREAM, ACCURACY = "Section 5.2", "split-cifar5m", "split-cifar5m-weight-decay-accuracy"
TWO, MIXUP = "split-cifar5m-two-epochs", "split-cifar5m-mixup"
ACCURACIES, FORGETTINGS = ("wd 5e-4 Acc", "wd 2e-5 Acc"), ("wd 5e-4 Fg", "wd 2e-5 Fg")
MAIN_CLAIMS = (
    Claim("x-phinet-above-simsiam-and-phinet", SECTION, "X-PhiNet has higher accuracy than SimSiam and PhiNet.",
          "on CIFAR-5m both losses of X-PhiNet are above SimSiam and PhiNet (MSE)",
          Higher(table="cifar5m", over=X_PHINETS, under=("SimSiam", "PhiNet (MSE)"), along="columns")),
    Claim("x-phinet-good", "caption of tab:online-continual",
          "X-PhiNet performs good results when memorization is important.",
          f"on CIFAR-5m X-PhiNet (Cos) is at most {COMPARABLE:g} point below every other method",
          Higher(table="cifar5m", over=("X-PhiNet (Cos)",), under=OTHERS, along="columns", margin=-COMPARABLE)),
    Claim("memory-helps", SECTION,
          "The superior performance of X-PhiNet compared to PhiNet suggests that long-term memory with EMA is "
          "important in online learning.",
          "on CIFAR-5m X-PhiNet (MSE) is above PhiNet (MSE)",
          Higher(table="cifar5m", over=("X-PhiNet (MSE)",), under=("PhiNet (MSE)",), along="columns")),
    Claim("x-phinet-above-simsiam-in-a-stream", SECTION,
          "X-PhiNet has higher performance than SimSiam while maintaining minimal forgetting.",
          "on Split CIFAR-5m both losses of X-PhiNet are above SimSiam on average over both weight decays",
          Higher(table=STREAM, over=X_PHINETS, under=("SimSiam",), along="columns", at=ACCURACIES)),
    Claim("minimal-forgetting", SECTION,
          "X-PhiNet has higher performance than SimSiam while maintaining minimal forgetting.",
          f"on Split CIFAR-5m both losses of X-PhiNet forget at most {COMPARABLE:g} point more than SimSiam on average "
          "over both weight decays",
          Higher(table=STREAM, over=X_PHINETS, under=("SimSiam",), along="columns", at=FORGETTINGS, better="lower",
                 margin=-COMPARABLE)),
    Claim("cosine-better-in-a-stream", LIMITS, COSINE_WHERE,
          "on Split CIFAR-5m X-PhiNet is better with cosine than with MSE on average over both weight decays",
          Higher(table=STREAM, over=("X-PhiNet (Cos)",), under=("X-PhiNet (MSE)",), along="columns", at=ACCURACIES)),
)  # fmt: skip
DECAY_CLAIMS = (
    *(Claim(f"x-phinet-{word}-above-others", SECTION,
            "X-PhiNet consistently outperforms other methods like SimSiam in continual learning, regardless of weight "
            "decay.",
            f"on Split CIFAR-5m {name} is above every other method at every weight decay",
            Higher(table=ACCURACY, over=(name,), under=OTHERS, by="every"))
      for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)),
    *(Claim(f"steady-{word}", "caption of fig:sp-c5m-weight-decay",
            "X-PhiNet is also robust to weight decay in continual learning.",
            f"on Split CIFAR-5m {name} changes less over weight decay than SimSiam",
            Steadier(table=ACCURACY, one=name, other=("SimSiam",)))
      for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)),
)  # fmt: skip
TWO_CLAIMS = (
    Claim("x-phinet-still-high", "Appendix, epochs per task",
          "The performance of X-PhiNet is still high even when the number of epochs per task is set to 2 epochs.",
          f"with two epochs a task X-PhiNet (Cos) is at most {COMPARABLE:g} point below every other method",
          Higher(table=TWO, over=("X-PhiNet (Cos)",), under=OTHERS, along="columns", at=("2 epochs Acc",),
                 margin=-COMPARABLE)),
    *(Claim(f"x-phinet-{word}-improves", "caption of tab:online-continual-two-epochs",
            "X-PhiNet shows higher accuracy when the number of epochs per task is increased.",
            f"{name} is better with two epochs a task than with one, at weight decay 5e-4",
            HigherAt(pairs=(((TWO, "2 epochs Acc", name), (STREAM, "wd 5e-4 Acc", name)),)))
      for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)),
)  # fmt: skip
REPLAY = "Appendix, replay with Mixup"
TWO_EPOCHS = (
    "when we train two epochs for each task, the accuracy of other methods such as BYOL, BarlowTwins and RM-SimSiam "
    "also increases, showing an accuracy comparable to that of X-PhiNet"
)
IMPROVE = ("BYOL", "Barlow Twins", "RM-SimSiam")
MIXUP_CLAIMS = (
    Claim("x-phinet-considerably-higher", REPLAY,
          "when only one epoch is trained for each task, X-PhiNet shows considerably higher accuracy than the other "
          "methods",
          "with replay and one epoch a task X-PhiNet (Cos) is above every other method",
          Higher(table=MIXUP, over=("X-PhiNet (Cos)",), under=OTHERS, along="columns", at=("1 epoch Acc",))),
    Claim("others-rise", REPLAY, TWO_EPOCHS,
          "with replay BYOL, Barlow Twins and RM-SimSiam are better with two epochs a task than with one on average",
          Higher(table=MIXUP, over=("2 epochs Acc",), under=("1 epoch Acc",), at=IMPROVE)),
    Claim("x-phinet-higher-or-comparable", "caption of tab:online-continual-mixup",
          "X-PhiNet performs higher or comparable results for Split-CIFAR5m even with Mixup.",
          f"with replay, for one and for two epochs a task, X-PhiNet (Cos) is at most {COMPARABLE:g} point below every "
          "other method",
          Higher(table=MIXUP, over=("X-PhiNet (Cos)",), under=OTHERS, along="columns",
                 at=("1 epoch Acc", "2 epochs Acc"), by="every", margin=-COMPARABLE)),
    *(Claim(f"comparable-{other.lower().replace(' ', '-')}", REPLAY, TWO_EPOCHS,
            f"with replay and two epochs a task {other} is about as good as X-PhiNet (Cos)",
            Comparable(table=MIXUP, one="X-PhiNet (Cos)", other=other, within=COMPARABLE, along="columns",
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
