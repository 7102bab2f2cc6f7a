"""CIFAR-10: the ablation of Sim-2, SG-2 and Pred-2, and the rank of g."""

from dataclasses import replace

from phinets.paper.grids import batch, decay_table, learners, run_metric, same
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Collapse, Comparable, Drop, Higher, Steadier, Trend
from phinets.paper.scales import Scale
from phinets.paper.targets.weight_decay import ABOUT, DECAYS, LARGE, LOSS

MSE, MSE_FREE, COS, COS_FREE = (
    f"PhiNet {distance}, {stop}, g" for distance in ("MSE", "Cos") for stop in ("SG-2", "no SG-2")
)
SHARED = "PhiNet MSE, SG-2, h"
ROWS = (
    "SimSiam", "SimSiam (Orig-In)", MSE, "PhiNet MSE, SG-2, g = I", MSE_FREE, SHARED,
    COS, "PhiNet Cos, SG-2, g = I", COS_FREE, "PhiNet Cos, SG-2, h",
)  # fmt: skip
LAYERS = {"g, layer 1": "stable_rank_g1", "g, layer 2": "stable_rank_g2"}


def _ablation(scale: Scale) -> tuple[Table, ...]:
    base, title = batch(scale, 512)(scale.cifar10), "CIFAR-10: kNN by Sim-2, SG-2, Pred-2 and weight decay"
    return (decay_table(scale, base, learners(*ROWS), (0.0, 5e-4, 1e-3), run_metric("knn"), name=TABLE, title=title),)


def _stable_rank(scale: Scale) -> tuple[Table, ...]:
    base = replace(batch(scale, 512)(scale.cifar10), method="phinet")
    title = "CIFAR-10, PhiNet: stable rank of the linear layers of g"
    rows, look = dict.fromkeys(LAYERS, same), {"unit": "", "better": None}
    return (decay_table(scale, base, rows, DECAYS, run_metric(LAYERS), name="stable-rank", title=title, **look),)


TABLE, ORIGINAL, STOP = "cifar10-ablation", "Appendix, usage of original input", "Appendix, StopGradient-2"
SIGNIFICANTLY = 5.0
"""Points that the paper calls significant here; its own average is 12."""
CLAIMS = (
    Claim("original-input-hurts", ORIGINAL,
          "SimSiam with the original image in place of a view is much worse than SimSiam",
          Drop(table=TABLE, name="SimSiam (Orig-In)", other="SimSiam", by=SIGNIFICANTLY)),
    Claim("phinet-above-simsiam", ORIGINAL, "PhiNet with MSE and SG-2 is better than SimSiam",
          Higher(table=TABLE, over=(MSE,), under=("SimSiam",))),
    Claim("stop-gradient-prevents-collapse", STOP, "with SG-2 PhiNet does not collapse",
          Collapse(table=TABLE, names=tuple(row for row in ROWS if ", SG-2," in row), lost=False)),
    Claim("mse-needs-no-stop-gradient", STOP, "with MSE PhiNet does not collapse without SG-2 either",
          Collapse(table=TABLE, names=(MSE_FREE,), lost=False)),
    Claim("mse-better-with-stop-gradient", STOP, "with MSE PhiNet is better with SG-2 than without",
          Higher(table=TABLE, over=(MSE,), under=(MSE_FREE,))),
    Claim("mse-steadier-with-stop-gradient", STOP,
          "with MSE PhiNet changes less over weight decay with SG-2 than without",
          Steadier(table=TABLE, one=MSE, other=(MSE_FREE,))),
    Claim("cosine-collapses-without-stop-gradient", STOP, "with cosine PhiNet collapses without SG-2",
          Collapse(table=TABLE, names=(COS_FREE,))),
    Claim("cosine-as-good-without-decay", LOSS, "without weight decay cosine is about as good as MSE",
          Comparable(table=TABLE, one=COS, other=MSE, within=ABOUT, at=("0",))),
    Claim("cosine-worse-at-large-decays", LOSS, "at large weight decay cosine is worse than MSE",
          Higher(table=TABLE, over=(MSE,), under=(COS,), at=LARGE)),
    Claim("shared-g-worse", "Appendix, ablation on ImageNet, which says so of CIFAR-10 too",
          "g = h is worse than a g of its own", Higher(table=TABLE, over=(MSE,), under=(SHARED,))),
)  # fmt: skip
RANK_CLAIMS = tuple(
    Claim(f"rank-falls-{number}", "caption of fig:stable-rank",
          f"the stable rank of the {word} layer of g is the larger, the smaller weight decay is",
          Trend(table="stable-rank", name=layer, rises=False))
    for number, (word, layer) in enumerate(zip(("first", "second"), LAYERS, strict=True), start=1)
)  # fmt: skip

TARGETS = (
    Target("cifar10-ablation", "table tab:ablation_cifar10", "ablation on CIFAR-10: Sim-2, SG-2, Pred-2",
           tables=_ablation, claims=CLAIMS),
    Target("stable-rank", "figure fig:stable-rank", "stable rank of PhiNet's predictor g by weight decay",
           tables=_stable_rank, claims=RANK_CLAIMS, figure="lines",
           notes="The paper does not say the batch size: 512, as wherever it is silent. Weight decays as in its "
                 "figures."),
)  # fmt: skip
