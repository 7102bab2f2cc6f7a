"""ImageNet: linear probe by weight decay, and by the choice of g."""

from phinets.paper.claims import Claim
from phinets.paper.grids import batch, crossed, learners, printed_once, probed, same, weight_decay, weight_decays
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Comparable, Drop, Higher
from phinets.paper.scales import Scale

DECAYS = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4)
SMALL, LARGE = ("0", "1e-05", "2e-05", "5e-05"), ("0.0001", "0.0002")


def _by_decay(scale: Scale) -> tuple[Table, ...]:
    base, rows = batch(scale, 512)(scale.imagenet), learners("SimSiam", "PhiNet (MSE)")
    cells = crossed(scale, base, rows, weight_decays(scale, DECAYS), probed(scale.imagenet_probe))
    title = "ImageNet: linear probe by weight decay"
    return (Table(name="imagenet-weight-decay", title=title, cells=cells, columns_are="weight decay"),)


def _g(scale: Scale) -> tuple[Table, ...]:
    base = weight_decay(1e-3)(batch(scale, 512)(scale.imagenet))
    columns = learners("SimSiam", "PhiNet (MSE)", "PhiNet (g=I)", "PhiNet (g=h)")
    asked = probed(scale.short_imagenet_probe)
    cells = crossed(printed_once(scale), base, {"linear probe": same}, columns, asked)
    title = "ImageNet, weight decay 0.001: linear probe by the choice of g"
    return (Table(name="imagenet-g", title=title, cells=cells, best_in="row"),)


TABLE, CAPTION = "imagenet-weight-decay", "caption of tab:ablation_inet"
DECAY_CLAIMS = (
    Claim(
        name="comparable",
        says="PhiNet is about as good as SimSiam at the usual weight decays",
        where=CAPTION,
        # A point: in the paper they are .4 apart there on average, with spreads of .2.
        rule=Comparable(table=TABLE, one="PhiNet (MSE)", other="SimSiam", within=1.0, at=LARGE),
    ),
    *(
        Claim(
            name=f"{name.split()[0].lower()}-suffers-at-small-decays",
            says=f"{name} is worse at small weight decays",
            where=CAPTION,
            rule=Higher(table=TABLE, over=LARGE, under=SMALL, along="columns", at=(name,)),
        )
        for name in ("SimSiam", "PhiNet (MSE)")
    ),
    Claim(
        name="phinet-ahead-at-small-decays",
        says="at small weight decays PhiNet is better than SimSiam",
        where=CAPTION,
        rule=Higher(table=TABLE, over=("PhiNet (MSE)",), under=("SimSiam",), at=SMALL),
    ),
)
LOW = 5.0
"""Points by which g = h must be lower to be called low; in the paper by 11."""
G_CLAIMS = tuple(
    Claim(
        name=f"shared-g-below-{word}",
        says=f"PhiNet with g = h is much worse than {name}",
        where="caption of tab:imagenet-ablation",
        rule=Drop(table="imagenet-g", name="PhiNet (g=h)", other=name, by=LOW, along="columns"),
    )
    for word, name in (("simsiam", "SimSiam"), ("own-g", "PhiNet (MSE)"), ("identity-g", "PhiNet (g=I)"))
)

TARGETS = (
    Target(
        name="imagenet-weight-decay",
        place="table tab:ablation_inet",
        title="ImageNet, linear probe by weight decay",
        tables=_by_decay,
        claims=DECAY_CLAIMS,
    ),
    Target(
        name="imagenet-g",
        place="table tab:imagenet-ablation",
        title="ImageNet, the choice of g",
        tables=_g,
        claims=G_CLAIMS,
        notes="The paper prints no spread, so its scale has one seed: no claim can be decided there without more.",
    ),
)
