"""The main table on CIFAR-5m, and Split CIFAR-5m: by weight decay, two epochs a task, mixup replay."""

from phinets.config.continual import ContinualConfig
from phinets.paper.claims import Claim
from phinets.paper.grids import batch, crossed, online, probed, read, same, weight_decay, weight_decays
from phinets.paper.learners import X_PHINETS
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Comparable, Higher, Steadier
from phinets.paper.scales import Scale
from phinets.paper.targets.streams import ACC, FG, READ_OUT, mixup, stream_table, twice, two_rows

OTHERS = ("BYOL", "SimSiam", "Barlow Twins", "PhiNet (MSE)", "RM-SimSiam")
METHODS = (*OTHERS, *X_PHINETS)
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


SECTION = "Section 5.2"
ACCURACIES, FORGETTINGS = ("wd 5e-4 Acc", "wd 2e-5 Acc"), ("wd 5e-4 Fg", "wd 2e-5 Fg")
MINIMAL = 1.0
"""Points of forgetting beyond SimSiam's that still are minimal: the paper's X-PhiNet (MSE) has 1.0 more."""
MAIN_CLAIMS = (
    Claim(
        name="x-phinet-above-simsiam-and-phinet",
        says="on CIFAR-5m X-PhiNet is better than SimSiam and PhiNet",
        where=SECTION,
        rule=Higher(table="cifar5m", over=X_PHINETS, under=("SimSiam", "PhiNet (MSE)"), along="columns"),
    ),
    Claim(
        name="x-phinet-highest",
        says="on CIFAR-5m X-PhiNet is better than every other method",
        where="caption of tab:online-continual",
        rule=Higher(table="cifar5m", over=X_PHINETS, under=OTHERS, along="columns"),
    ),
    Claim(
        name="memory-helps",
        says="on CIFAR-5m the slow encoder helps: X-PhiNet (MSE) is better than PhiNet (MSE)",
        where=SECTION,
        rule=Higher(table="cifar5m", over=("X-PhiNet (MSE)",), under=("PhiNet (MSE)",), along="columns"),
    ),
    Claim(
        name="x-phinet-above-simsiam-in-a-stream",
        says="on Split CIFAR-5m X-PhiNet is better than SimSiam, at both weight decays",
        where=SECTION,
        rule=Higher(
            table="split-cifar5m", over=X_PHINETS, under=("SimSiam",), along="columns", at=ACCURACIES, by="worst"
        ),
    ),
    Claim(
        name="minimal-forgetting",
        says="on Split CIFAR-5m X-PhiNet forgets hardly more than SimSiam",
        where=SECTION,
        rule=Higher(
            table="split-cifar5m",
            over=X_PHINETS,
            under=("SimSiam",),
            along="columns",
            at=FORGETTINGS,
            better="lower",
            margin=-MINIMAL,
        ),
    ),
    Claim(
        name="cosine-better-in-a-stream",
        says="in a stream X-PhiNet is better with cosine than with MSE",
        where="Appendix, limitations",
        rule=Higher(
            table="split-cifar5m", over=("X-PhiNet (Cos)",), under=("X-PhiNet (MSE)",), along="columns", at=ACCURACIES
        ),
    ),
)
DECAY_CLAIMS = (
    Claim(
        name="x-phinet-highest",
        says="in a stream X-PhiNet is better than every other method at every weight decay",
        where=SECTION,
        rule=Higher(table="split-cifar5m-weight-decay-accuracy", over=X_PHINETS, under=OTHERS, by="worst"),
    ),
    *(
        Claim(
            name=f"steady-{word}",
            says=f"in a stream {name} changes less over weight decay than SimSiam",
            where="caption of fig:sp-c5m-weight-decay",
            rule=Steadier(table="split-cifar5m-weight-decay-accuracy", one=name, other=("SimSiam",)),
        )
        for word, name in zip(("mse", "cosine"), X_PHINETS, strict=True)
    ),
)
TWO_CLAIMS = (
    Claim(
        name="x-phinet-highest",
        says="with two epochs a task X-PhiNet is still better than every other method",
        where="Appendix, epochs per task",
        rule=Higher(
            table="split-cifar5m-two-epochs", over=X_PHINETS, under=OTHERS, along="columns", at=("2 epochs Acc",)
        ),
    ),
)
REPLAY = "Appendix, replay with Mixup"
CONSIDERABLY = 0.5
"""Points ahead that are considerable: more than the spreads of the paper's row, most of which are below."""
ABOUT = 1.0
"""Points that still are comparable: more than the largest spread of the row of two epochs that is below 1, .7."""
RISEN = ("BYOL", "Barlow Twins", "RM-SimSiam")
MIXUP_CLAIMS = (
    Claim(
        name="x-phinet-considerably-higher",
        says="with replay and one epoch a task X-PhiNet is clearly better than every other method",
        where=REPLAY,
        rule=Higher(
            table="split-cifar5m-mixup",
            over=X_PHINETS,
            under=OTHERS,
            along="columns",
            at=("1 epoch Acc",),
            margin=CONSIDERABLY,
        ),
    ),
    Claim(
        name="others-rise",
        says="with replay BYOL, Barlow Twins and RM-SimSiam are better with two epochs a task than with one",
        where=REPLAY,
        rule=Higher(table="split-cifar5m-mixup", over=("2 epochs Acc",), under=("1 epoch Acc",), at=RISEN),
    ),
    Claim(
        name="x-phinet-high-or-comparable",
        says="with replay X-PhiNet is better than every other method or about as good, for one and two epochs a task",
        where="caption of tab:online-continual-mixup",
        rule=Higher(
            table="split-cifar5m-mixup",
            over=X_PHINETS,
            under=OTHERS,
            along="columns",
            at=("1 epoch Acc", "2 epochs Acc"),
            by="worst",
            margin=-ABOUT,
        ),
    ),
    *(
        Claim(
            name=f"comparable-{other.lower().replace(' ', '-')}",
            says=f"with replay and two epochs a task {other} is about as good as X-PhiNet (Cos)",
            where=REPLAY,
            rule=Comparable(
                table="split-cifar5m-mixup",
                one="X-PhiNet (Cos)",
                other=other,
                within=ABOUT,
                along="columns",
                at=("2 epochs Acc",),
            ),
        )
        for other in RISEN
    ),
)

TARGETS = (
    Target(
        name="cifar5m",
        place="table tab:online-continual",
        title="CIFAR-5m and Split CIFAR-5m, the main table",
        tables=_main,
        claims=MAIN_CLAIMS,
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
        claims=DECAY_CLAIMS,
        drawn="lines",
        notes=f"The figure's axis and methods are not printed: the methods are those of the main table. {READ_OUT}",
    ),
    Target(
        name="split-cifar5m-two-epochs",
        place="table tab:online-continual-two-epochs",
        title="Split CIFAR-5m, two epochs a task",
        tables=_two_epochs,
        claims=TWO_CLAIMS,
        notes=READ_OUT,
    ),
    Target(
        name="split-cifar5m-mixup",
        place="table tab:online-continual-mixup",
        title="Split CIFAR-5m with mixup replay, one and two epochs a task",
        tables=_mixup,
        claims=MIXUP_CLAIMS,
        notes=READ_OUT,
    ),
)
