"""CIFAR-10: the ablation of Sim-2, SG-2 and Pred-2, and the rank of g."""

from dataclasses import replace

from phinets.paper.grids import COMPARABLE, batch, decay_table, learners, run_metric, same
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Collapse, Comparable, Higher, Steadier, Trend
from phinets.paper.scales import Scale
from phinets.paper.targets.weight_decay import COSINE_QUOTE, DECAYS, LARGE, LOSS

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


FADE = "code-scale"
PREDICTION = (
    "Our prediction: weight decay shrinks the codes, since no cosine loss holds their scale, and Sim-2's MSE fades "
    "with them; a last batch norm without scale is immune."
)
AFFINE = {
    "with scale": same,
    "without scale": lambda run: replace(run, learner=replace(run.learner, projector_affine=False)),
}
SCALE_MEASURES = {"code RMS": "code_rms", "Sim-2's share of the gradient": "sim2_gradient_share", "kNN": "knn"}


def _code_scale(scale: Scale) -> tuple[Table, ...]:
    """PhiNet (MSE) with and without the affine scale of the projector's last batch norm."""
    base = replace(batch(scale, 512)(scale.cifar10), method="phinet")
    health = replace(base.evaluation, health_metrics=("stable-rank", "code-scale"))
    rows = {f"PhiNet (MSE) {name}": change for name, change in AFFINE.items()}

    def table(title: str, measure: str) -> Table:
        unit, better = ("%", "higher") if measure == "knn" else ("", None)
        return decay_table(
            scale, replace(base, evaluation=health), rows, (0.0, 1e-4), run_metric(measure),
            name=f"{FADE}-{measure}", title=f"CIFAR-10, PhiNet (MSE): {title}", unit=unit, better=better,
        )  # fmt: skip

    return tuple(table(title, measure) for title, measure in SCALE_MEASURES.items())


TABLE, ORIGINAL, STOP = "cifar10-ablation", "Appendix, usage of original input", "Appendix, StopGradient-2"
CLAIMS = (
    Claim("original-input-hurts", ORIGINAL,
          "comparing the augmented images and original input significantly degrades the model performance",
          "SimSiam (Orig-In) is below SimSiam on average over weight decays",
          Higher(table=TABLE, over=("SimSiam",), under=("SimSiam (Orig-In)",))),
    Claim("phinet-favorable", ORIGINAL,
          "the PhiNet with MSE loss and StopGradient compares favorably with the original SimSiam model",
          "PhiNet with MSE and SG-2 is above SimSiam on average over weight decays",
          Higher(table=TABLE, over=(MSE,), under=("SimSiam",))),
    Claim("stop-gradient-prevents-collapse", STOP,
          "The StopGradient operator effectively prevents mode collapse.",
          "most runs with SG-2 do not collapse",
          Collapse(table=TABLE, names=tuple(row for row in ROWS if ", SG-2," in row), lost=False)),
    Claim("mse-needs-no-stop-gradient", STOP,
          "the StopGradient operator is not essential for avoiding mode collapse",
          "most runs of PhiNet (MSE) without SG-2 do not collapse either",
          Collapse(table=TABLE, names=(MSE_FREE,), lost=False)),
    Claim("mse-better-with-stop-gradient", STOP,
          "models without it perform worse compared to those with it",
          "PhiNet (MSE) is better with SG-2 than without on average over weight decays",
          Higher(table=TABLE, over=(MSE,), under=(MSE_FREE,))),
    Claim("mse-steadier-with-stop-gradient", STOP,
          "the StopGradient operator contributes to improved stability when using the MSE loss",
          "PhiNet (MSE) changes less over weight decay with SG-2 than without",
          Steadier(table=TABLE, one=MSE, other=(MSE_FREE,))),
    Claim("cosine-worse-without-stop-gradient", STOP,
          "mode collapse still occurs with the negative cosine loss function",
          "without SG-2, PhiNet (Cos) is more than 5 points below the same with SG-2 at every weight decay",
          Higher(table=TABLE, over=(COS,), under=(COS_FREE,), by="every", margin=5.0)),
    Claim("cosine-as-good-without-decay", LOSS, COSINE_QUOTE,
          "without weight decay PhiNet is about as good with cosine as with MSE",
          Comparable(table=TABLE, one=COS, other=MSE, within=COMPARABLE, at=("0",))),
    Claim("cosine-worse-at-large-decays", LOSS, COSINE_QUOTE,
          "at large weight decay PhiNet is worse with cosine than with MSE",
          Higher(table=TABLE, over=(MSE,), under=(COS,), at=LARGE)),
    Claim("shared-g-worse", "Appendix, additional ablation study with ImageNet",
          "g = h has a lower accuracy than other methods, which is consistent with the results in CIFAR10",
          "on CIFAR-10, PhiNet (MSE) is worse with g = h than with a g of its own on average over weight decays",
          Higher(table=TABLE, over=(MSE,), under=(SHARED,))),
)  # fmt: skip
RANK_CLAIMS = tuple(
    Claim(f"rank-falls-{number}", "caption of fig:stable-rank",
          "The smaller the weight decay, the larger the rank of the additional predictor.",
          f"the stable rank of the {word} layer of g falls as weight decay rises",
          Trend(table="stable-rank", name=layer, rises=False))
    for number, (word, layer) in enumerate(zip(("first", "second"), LAYERS, strict=True), start=1)
)  # fmt: skip

WITH_SCALE, WITHOUT_SCALE = (f"PhiNet (MSE) {name}" for name in AFFINE)
OURS = "not in the paper; docs/training.md, why Sim-2's MSE fades"
FADE_CLAIMS = (
    Claim("codes-shrink", OURS, PREDICTION,
          "with the scale, the RMS of the codes is smaller with weight decay than without",
          Higher(table=f"{FADE}-code_rms", over=("0",), under=("0.0001",), along="columns", at=(WITH_SCALE,))),
    Claim("gradient-fades", OURS, PREDICTION,
          "with the scale, Sim-2's share of the gradient is smaller with weight decay than without",
          Higher(table=f"{FADE}-sim2_gradient_share", over=("0",), under=("0.0001",), along="columns",
                 at=(WITH_SCALE,))),
    Claim("remedy-keeps-gradient", OURS, PREDICTION,
          "with weight decay, Sim-2's share of the gradient is larger without the scale than with it",
          Higher(table=f"{FADE}-sim2_gradient_share", over=(WITHOUT_SCALE,), under=(WITH_SCALE,), at=("0.0001",))),
    Claim("remedy-helps", OURS, PREDICTION, "with weight decay, kNN is higher without the scale than with it",
          Higher(table=f"{FADE}-knn", over=(WITHOUT_SCALE,), under=(WITH_SCALE,), at=("0.0001",))),
)  # fmt: skip

TARGETS = (
    Target("cifar10-ablation", "table tab:ablation_cifar10", "ablation on CIFAR-10: Sim-2, SG-2, Pred-2",
           tables=_ablation, claims=CLAIMS),
    Target("stable-rank", "figure fig:stable-rank", "stable rank of PhiNet's predictor g by weight decay",
           tables=_stable_rank, claims=RANK_CLAIMS, figure="lines",
           notes="The paper does not say the batch size: 512, as wherever it is silent. Weight decays as in its "
                 "figures."),
    Target(FADE, "not in the paper", "why Sim-2's MSE fades under weight decay: the scale of the codes",
           tables=_code_scale, claims=FADE_CLAIMS,
           notes="The paper leaves the analysis of gradient norms to future work (appendix, limitations)."),
)  # fmt: skip
