"""CIFAR-10: the ablation of Sim-2, SG-2 and Pred-2, and the rank of g."""

from dataclasses import replace

from phinets.paper.claims import Claim
from phinets.paper.grids import batch, crossed, learners, pretrained, same, weight_decays
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Comparable, Drop, Higher, Lost, Steadier, Trend
from phinets.paper.scales import Scale
from phinets.paper.targets.weight_decay import ABOUT, DECAYS, LARGE, LOSS

MSE, MSE_FREE, COS, COS_FREE = (
    f"PhiNet {distance}, {stop}, g" for distance in ("MSE", "Cos") for stop in ("SG-2", "no SG-2")
)
ROWS = (
    "SimSiam",
    "SimSiam (Orig-In)",
    MSE,
    "PhiNet MSE, SG-2, g = I",
    MSE_FREE,
    "PhiNet MSE, SG-2, h",
    COS,
    "PhiNet Cos, SG-2, g = I",
    COS_FREE,
    "PhiNet Cos, SG-2, h",
)
LAYERS = {"g, layer 1": "stable_rank_g1", "g, layer 2": "stable_rank_g2"}


def _ablation(scale: Scale) -> tuple[Table, ...]:
    base = batch(scale, 512)(scale.cifar10)
    cells = crossed(scale, base, learners(*ROWS), weight_decays(scale, (0.0, 5e-4, 1e-3)), pretrained("knn"))
    return (
        Table(
            name="cifar10-ablation",
            title="CIFAR-10: kNN by Sim-2, SG-2, Pred-2 and weight decay",
            cells=cells,
            columns_are="weight decay",
        ),
    )


def _stable_rank(scale: Scale) -> tuple[Table, ...]:
    base = replace(batch(scale, 512)(scale.cifar10), method="phinet")
    cells = tuple(
        cell
        for row, measure in LAYERS.items()
        for cell in crossed(scale, base, {row: same}, weight_decays(scale, DECAYS), pretrained(measure))
    )
    return (
        Table(
            name="stable-rank",
            title="CIFAR-10, PhiNet: stable rank of the linear layers of g",
            cells=cells,
            unit="",
            better=None,
            columns_are="weight decay",
        ),
    )


TABLE, ORIGINAL, STOPPED = "cifar10-ablation", "Appendix, usage of original input", "Appendix, StopGradient-2"
SIGNIFICANTLY = 5.0
"""Points that the paper calls significant here; its own average is 12."""
CLAIMS = (
    Claim(
        name="original-input-hurts",
        says="SimSiam with the original image in place of a view is much worse than SimSiam",
        where=ORIGINAL,
        rule=Drop(table=TABLE, name="SimSiam (Orig-In)", other="SimSiam", by=SIGNIFICANTLY),
    ),
    Claim(
        name="phinet-above-simsiam",
        says="PhiNet with MSE and SG-2 is better than SimSiam",
        where=ORIGINAL,
        rule=Higher(table=TABLE, over=(MSE,), under=("SimSiam",)),
    ),
    Claim(
        name="stop-gradient-prevents-collapse",
        says="with SG-2 PhiNet does not collapse",
        where=STOPPED,
        rule=Lost(table=TABLE, names=tuple(row for row in ROWS if ", SG-2," in row), lost=False),
    ),
    Claim(
        name="mse-needs-no-stop-gradient",
        says="with MSE PhiNet does not collapse without SG-2 either",
        where=STOPPED,
        rule=Lost(table=TABLE, names=(MSE_FREE,), lost=False),
    ),
    Claim(
        name="mse-better-with-stop-gradient",
        says="with MSE PhiNet is better with SG-2 than without",
        where=STOPPED,
        rule=Higher(table=TABLE, over=(MSE,), under=(MSE_FREE,)),
    ),
    Claim(
        name="mse-steadier-with-stop-gradient",
        says="with MSE PhiNet changes less over weight decay with SG-2 than without",
        where=STOPPED,
        rule=Steadier(table=TABLE, one=MSE, other=(MSE_FREE,)),
    ),
    Claim(
        name="cosine-collapses-without-stop-gradient",
        says="with cosine PhiNet collapses without SG-2",
        where=STOPPED,
        rule=Lost(table=TABLE, names=(COS_FREE,)),
    ),
    Claim(
        name="cosine-as-good-without-decay",
        says="without weight decay cosine is about as good as MSE",
        where=LOSS,
        rule=Comparable(table=TABLE, one=COS, other=MSE, within=ABOUT, at=("0",)),
    ),
    Claim(
        name="cosine-worse-at-large-decays",
        says="at large weight decay cosine is worse than MSE",
        where=LOSS,
        rule=Higher(table=TABLE, over=(MSE,), under=(COS,), at=LARGE),
    ),
    Claim(
        name="shared-g-worse",
        says="g = h is worse than a g of its own",
        where="Appendix, ablation on ImageNet, which says so of CIFAR-10 too",
        rule=Higher(table=TABLE, over=(MSE,), under=("PhiNet MSE, SG-2, h",)),
    ),
)
RANK_CLAIMS = tuple(
    Claim(
        name=f"rank-falls-{number}",
        says=f"the stable rank of the {word} layer of g is the larger, the smaller weight decay is",
        where="caption of fig:stable-rank",
        rule=Trend(table="stable-rank", name=layer, rises=False),
    )
    for number, (word, layer) in enumerate(zip(("first", "second"), LAYERS, strict=True), start=1)
)

TARGETS = (
    Target(
        name="cifar10-ablation",
        place="table tab:ablation_cifar10",
        title="ablation on CIFAR-10: Sim-2, SG-2, Pred-2",
        tables=_ablation,
        claims=CLAIMS,
    ),
    Target(
        name="stable-rank",
        place="figure fig:stable-rank",
        title="stable rank of PhiNet's predictor g by weight decay",
        tables=_stable_rank,
        claims=RANK_CLAIMS,
        drawn="lines",
        notes="The paper does not say the batch size: 512, as wherever it is silent. Weight decays as in its figures.",
    ),
)
