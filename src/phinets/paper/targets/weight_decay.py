"""CIFAR-10 over weight decay: PhiNet's variants, other methods, the augmented anchor, MoCo."""

from phinets.paper.grids import (
    COMPARABLE,
    X_PHINETS,
    batch,
    compared_batch,
    decay_table,
    learners,
    one_seed_in_paper,
    probe_metric,
    run_metric,
)
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Comparable, Higher, Steadier
from phinets.paper.scales import Scale

DECAYS = (0.0, 1e-5, 1e-4, 5e-4, 1e-3)
"""The figures' axes are not printed; these span the weight decays of the paper's tables on CIFAR-10."""
SMALL, LARGE = ("0", "1e-05"), ("0.0005", "0.001")
MOCO_DECAYS = (2e-3, 1e-3, 5e-4, 2.5e-4, 1.25e-4, 6.25e-5, 3.125e-5, 1.5625e-5)
MSE, COS, IDENTITY, SHARED, WITH_AUG = (
    "PhiNet (MSE)", "PhiNet (Cos)", "PhiNet (MSE, g=I)", "PhiNet (MSE, g=h)", "PhiNet with Aug (MSE)"
)  # fmt: skip
BASELINES = ("SimSiam", "BYOL", "RM-SimSiam")
FIGURE = "The figure's axis is not printed: the weight decays are those of the paper's tables on CIFAR-10."
VARIANTS, METHODS = "cifar10-weight-decay-variants", "cifar10-weight-decay-methods"
ANCHOR, MOCO = "augmented-anchor-figure", "moco-weight-decay"
AT_128, AT_1024 = f"{VARIANTS}-128", f"{VARIANTS}-1024"


def _probe_table(scale: Scale, name: str, size: int, *names: str, title: str = ": linear probe") -> Table:
    base, title = (
        (batch if size == 128 else compared_batch)(scale, size)(scale.cifar10),
        f"CIFAR-10, batch {size}{title} by weight decay",
    )
    return decay_table(scale, base, learners(*names), DECAYS, probe_metric(scale.probe), name=name, title=title)


def _variants(scale: Scale) -> tuple[Table, ...]:
    names = (MSE, IDENTITY, SHARED, COS, *X_PHINETS, "SimSiam")
    return tuple(_probe_table(scale, f"{VARIANTS}-{size}", size, *names) for size in (128, 1024))


def _methods(scale: Scale) -> tuple[Table, ...]:
    return tuple(
        _probe_table(scale, name, size, *BASELINES, MSE, *X_PHINETS)
        for name, size in ((METHODS, 128), (f"{METHODS}-1024", 1024))
    )


def _moco(scale: Scale) -> tuple[Table, ...]:
    base, rows = batch(scale, 1024)(scale.cifar10), learners("SimSiam", "MoCo", MSE)
    scale, title = one_seed_in_paper(scale), "CIFAR-10, batch 1024: kNN by weight decay"
    return (decay_table(scale, base, rows, MOCO_DECAYS, run_metric("knn"), name=MOCO, title=title),)


CA1, LOSS = "Section 5.1, Bless of additional CA1 predictor", "Section 5.1, Sim-2 loss should be MSE"
LIMITS = "Appendix, limitations and future work"
COSINE_QUOTE = (
    "the negative cosine loss performs comparably to the MSE loss with smaller weight decay but degrades it with "
    "larger weight decay"
)
COSINE_WHERE = (
    "Cosine loss performs better when weight decay is small or online and continual learning where the additional "
    "predictor of PhiNets is important."
)
CHOICE = "the predictor choice slightly affects the final model performance if we properly set the weight decay"
VARIANT_CLAIMS = (
    *(Claim(f"phinet-above-simsiam-{size}", "Section 5.1, first paragraph",
            "First, we emphasise the improvement of PhiNet over SimSiam for most of the setups",
            f"PhiNet (MSE) is above SimSiam at batch {size} on average over weight decays",
            Higher(table=table, over=(MSE,), under=("SimSiam",)))
      for size, table in ((128, AT_128), (1024, AT_1024))),
    *(Claim(f"{choice}-matters-little", CA1, CHOICE,
            f"at batch 128 and weight decays 5e-4 and 1e-3, {g} is about as good as a g of its own",
            Comparable(table=AT_128, one=row, other=MSE, within=COMPARABLE, at=LARGE))
      for choice, g, row in (("identity-g", "g = I", IDENTITY), ("shared-g", "g = h", SHARED))),
    Claim("own-g-steadier", CA1,
          "if we set the batch size as 1024, the separate predictor performs more stably over other choices",
          "at batch 1024 a g of its own changes less over weight decay than g = I and g = h",
          Steadier(table=AT_1024, one=MSE, other=(IDENTITY, SHARED))),
    Claim("mse-better", LOSS,
          "the MSE loss used for Sim-2 generally improves model performance across most weight decay parameters",
          "PhiNet is better with MSE than with cosine on average over weight decays",
          Higher(table=AT_128, over=(MSE,), under=(COS,))),
    Claim("cosine-as-good-at-small-decays", LOSS, COSINE_QUOTE,
          "at weight decays 0 and 1e-5 PhiNet is about as good with cosine as with MSE",
          Comparable(table=AT_128, one=COS, other=MSE, within=COMPARABLE, at=SMALL)),
    Claim("cosine-better-at-small-decays", LIMITS, COSINE_WHERE,
          "at weight decays 0 and 1e-5 PhiNet is better with cosine than with MSE",
          Higher(table=AT_128, over=(COS,), under=(MSE,), at=SMALL)),
    Claim("cosine-worse-at-large-decays", LOSS, COSINE_QUOTE,
          "at weight decays 5e-4 and 1e-3 PhiNet is worse with cosine than with MSE",
          Higher(table=AT_128, over=(MSE,), under=(COS,), at=LARGE)),
)  # fmt: skip
ROBUST = "PhiNet and X-PhiNet are robust against weight decay."
METHOD_CLAIMS = (
    Claim("phinet-above-baselines", "Section 5.1, PhiNet improves SimSiam",
          "When the MSE loss is used for Sim-2, PhiNet consistently outperforms the original SimSiam or other "
          "baselines (BYOL, RM-SimSiam) regardless of weight decay value",
          "PhiNet (MSE) is above SimSiam, BYOL and RM-SimSiam at every weight decay",
          Higher(table=METHODS, over=(MSE,), under=BASELINES, by="every")),
    *(Claim(f"{word}-ahead-at-small-decays", "caption of fig:weight_decay_bs_128",
            "PhiNets perform particularly better than the baselines when weight decay is small.",
            f"at weight decays 0 and 1e-5 {name} is above SimSiam, BYOL and RM-SimSiam on average",
            Higher(table=METHODS, over=(name,), under=BASELINES, at=SMALL))
      for word, name in zip(("phinet", "x-phinet-mse", "x-phinet-cosine"), (MSE, *X_PHINETS), strict=True)),
    *(Claim(f"{name.lower().split()[0]}-robust", "caption of fig:weight_decay_bs_128", ROBUST,
            f"{name} changes less over weight decay than SimSiam",
            Steadier(table=METHODS, one=name, other=("SimSiam",)))
      for name in (MSE, "X-PhiNet (MSE)")),
)  # fmt: skip
TRANSFER = "PhiNet is robust to weight decay in transfer learning."
MOCO_CLAIMS = (
    Claim("steadier-than-simsiam", "caption of tab:comparison-wd-moco", TRANSFER,
          "PhiNet changes less over weight decay than SimSiam", Steadier(table=MOCO, one=MSE, other=("SimSiam",))),
)  # fmt: skip
ANCHOR_CLAIMS = (
    Claim("with-aug-robust", "caption of fig: robust-c10-aug",
          "Even when x is augmented, PhiNet is more robust to weight decay than SimSiam (CIFAR10).",
          "with an augmented x PhiNet changes less over weight decay than SimSiam",
          Steadier(table=ANCHOR, one=WITH_AUG, other=("SimSiam",))),
    Claim("with-aug-worse", "Appendix, on the augmentation for x",
          "“with aug” performs slightly worse than our proposed architecture",
          "with an augmented x PhiNet is below PhiNet with x as it is on average over weight decays",
          Higher(table=ANCHOR, over=(MSE,), under=(WITH_AUG,))),
)  # fmt: skip

TARGETS = (
    Target(VARIANTS, "figure fig:weight_decay_bs_128 (a)", "robustness to weight decay on CIFAR-10, variants of PhiNet",
           tables=_variants, claims=VARIANT_CLAIMS, figure="lines", notes=FIGURE),
    Target(METHODS, "figure fig:weight_decay_bs_128 (b)",
           "robustness to weight decay on CIFAR-10, PhiNets beside other methods",
           tables=_methods, claims=METHOD_CLAIMS, figure="lines",
           notes=f"{FIGURE} The batch of each panel is not printed either: 128 and 1024, as in the text on (a)."),
    Target(ANCHOR, "figure fig: robust-c10-aug", "an augmented anchor x over weight decay on CIFAR-10",
           tables=lambda scale: (_probe_table(scale, ANCHOR, 128, "SimSiam", MSE, WITH_AUG,
                                              title=", x as it is or augmented: linear probe"),),
           claims=ANCHOR_CLAIMS, figure="lines", notes=FIGURE),
    Target(MOCO, "table tab:comparison-wd-moco", "SimSiam, MoCo and PhiNet over weight decay",
           tables=_moco, claims=MOCO_CLAIMS, figure="lines",
           notes="The paper says neither the data, the batch size nor the readout. Its numbers at weight decay 5e-4 "
                 "(90.80 and 91.19) and the fall at 1e-3 are those of its kNN table on CIFAR-10 at batch 1024 alone, "
                 "so that is what is run. It prints no spread, so its scale has one seed: no claim can be decided "
                 "there without more. Its text says that PhiNet is more sensitive to weight decay; the caption, and "
                 "the numbers against SimSiam's, say less."),
)  # fmt: skip
