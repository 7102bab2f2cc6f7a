"""CIFAR-5m, seen eight times or once: linear probe by weight decay; the augmented anchor."""

from phinets.config.run import PretrainConfig
from phinets.paper.claims import Claim
from phinets.paper.grids import batch, crossed, online, probed, weight_decays
from phinets.paper.learners import X_PHINETS
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Higher, Steadier
from phinets.paper.scales import Scale

DECAYS = (1e-4, 5e-5, 2e-5, 1e-5)
EIGHT = (
    "BYOL",
    "SimSiam",
    "PhiNet (MSE)",
    "RM-SimSiam",
    "X-PhiNet with Aug (MSE)",
    "X-PhiNet with Aug (Cos)",
    "X-PhiNet (MSE)",
    "X-PhiNet (Cos)",
    "X-PhiNet (Cos, g=I)",
)
ONE = ("BYOL", "SimSiam", "PhiNet (MSE)", "RM-SimSiam", "X-PhiNet (MSE)", "X-PhiNet (Cos)")
ANCHORS = ("SimSiam", "X-PhiNet with Aug (MSE)", "X-PhiNet with Aug (Cos)", "X-PhiNet (MSE)", "X-PhiNet (Cos)")


def _table(scale: Scale, name: str, title: str, run: PretrainConfig, names: tuple[str, ...]) -> tuple[Table, ...]:
    base = batch(scale, 512)(run)
    cells = crossed(scale, base, online(*names), weight_decays(scale, DECAYS), probed(scale.probe))
    return (Table(name=name, title=title, cells=cells, columns_are="weight decay"),)


def _eight(scale: Scale) -> tuple[Table, ...]:
    title = "CIFAR-5m, 8 epochs: linear probe by weight decay"
    return _table(scale, "cifar5m-weight-decay", title, scale.cifar5m, EIGHT)


def _one(scale: Scale) -> tuple[Table, ...]:
    title = "CIFAR-5m, 1 epoch: linear probe by weight decay"
    return _table(scale, "cifar5m-one-epoch", title, scale.cifar5m_once, ONE)


def _anchors(scale: Scale) -> tuple[Table, ...]:
    title = "CIFAR-5m, 8 epochs: x as it is or augmented, linear probe by weight decay"
    return _table(scale, "augmented-anchor", title, scale.cifar5m, ANCHORS)


BASELINES = ("BYOL", "SimSiam", "PhiNet (MSE)", "RM-SimSiam")
WITH_AUG = ("X-PhiNet with Aug (MSE)", "X-PhiNet with Aug (Cos)")
APPENDIX, ON_AUG = "Appendix, CIFAR-5m (online learning)", "Appendix, on the augmentation for x"


def _high(table: str, where: str) -> Claim:
    return Claim(
        name="x-phinet-highest",
        says="X-PhiNet is better than every other method at every weight decay",
        where=where,
        rule=Higher(table=table, over=X_PHINETS, under=BASELINES, by="worst"),
    )


def _steady(table: str, one: str, other: tuple[str, ...], where: str) -> Claim:
    return Claim(
        name=f"steady-{_word(one)}",
        says=f"{one} changes less over weight decay than {', '.join(other)}",
        where=where,
        rule=Steadier(table=table, one=one, other=other),
    )


def _word(name: str) -> str:
    return "mse" if name.endswith("(MSE)") else "cosine"


def _worse_with_aug(table: str, where: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            name=f"with-aug-worse-{_word(one)}",
            says=f"{augmented} is worse than {one}",
            where=where,
            rule=Higher(table=table, over=(one,), under=(augmented,)),
        )
        for one, augmented in zip(X_PHINETS, WITH_AUG, strict=True)
    )


EIGHT_CLAIMS = (
    _high("cifar5m-weight-decay", APPENDIX),
    *(
        _steady("cifar5m-weight-decay", one, ("BYOL", "SimSiam", "RM-SimSiam"), "caption of tab:ablation_cifar5m_wd")
        for one in X_PHINETS
    ),
    Claim(
        name="with-aug-above-baselines",
        says="X-PhiNet with an augmented x is better than SimSiam and RM-SimSiam",
        where=APPENDIX,
        rule=Higher(table="cifar5m-weight-decay", over=WITH_AUG, under=("SimSiam", "RM-SimSiam")),
    ),
    *_worse_with_aug("cifar5m-weight-decay", APPENDIX),
    Claim(
        name="identity-g-worse",
        says="X-PhiNet (Cos) is worse with g = I than with a g of its own",
        where=APPENDIX,
        rule=Higher(table="cifar5m-weight-decay", over=("X-PhiNet (Cos)",), under=("X-PhiNet (Cos, g=I)",)),
    ),
    Claim(
        name="cosine-better",
        says="online, X-PhiNet is better with cosine than with MSE",
        where="Appendix, limitations",
        rule=Higher(table="cifar5m-weight-decay", over=("X-PhiNet (Cos)",), under=("X-PhiNet (MSE)",)),
    ),
)
ONE_CLAIMS = (
    Claim(
        name="x-phinet-above-simsiam",
        says="after one epoch X-PhiNet is better than SimSiam",
        where=APPENDIX,
        rule=Higher(table="cifar5m-one-epoch", over=X_PHINETS, under=("SimSiam",)),
    ),
    _high("cifar5m-one-epoch", "caption of tab:ablation_cifar5m_wd_one"),
)
ANCHOR_CLAIMS = (
    Claim(
        name="with-aug-above-simsiam",
        says="X-PhiNet with an augmented x is better than SimSiam",
        where="caption of table:robust-c5m-aug",
        rule=Higher(table="augmented-anchor", over=WITH_AUG, under=("SimSiam",)),
    ),
    *_worse_with_aug("augmented-anchor", ON_AUG),
    *(_steady("augmented-anchor", one, ("SimSiam",), ON_AUG) for one in WITH_AUG),
)

TARGETS = (
    Target(
        name="cifar5m-weight-decay",
        place="table tab:ablation_cifar5m_wd",
        title="CIFAR-5m, eight epochs, by weight decay",
        tables=_eight,
        claims=EIGHT_CLAIMS,
    ),
    Target(
        name="cifar5m-one-epoch",
        place="table tab:ablation_cifar5m_wd_one",
        title="CIFAR-5m, one epoch, by weight decay",
        tables=_one,
        claims=ONE_CLAIMS,
    ),
    Target(
        name="augmented-anchor",
        place="table table:robust-c5m-aug",
        title="an augmented anchor x on CIFAR-5m",
        tables=_anchors,
        claims=ANCHOR_CLAIMS,
    ),
)
