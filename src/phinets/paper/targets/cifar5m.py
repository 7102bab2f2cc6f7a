"""CIFAR-5m, seen eight times or once: linear probe by weight decay; the augmented anchor."""

from phinets.config.run import PretrainConfig
from phinets.paper.grids import X_PHINETS, batch, decay_table, online_learners, probe_metric
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Higher, Steadier
from phinets.paper.scales import Scale

DECAYS = (1e-4, 5e-5, 2e-5, 1e-5)
BASELINES = ("BYOL", "SimSiam", "PhiNet (MSE)", "RM-SimSiam")
WITH_AUG = ("X-PhiNet with Aug (MSE)", "X-PhiNet with Aug (Cos)")
EIGHT, ONE, ANCHOR = "cifar5m-weight-decay", "cifar5m-one-epoch", "augmented-anchor"


def _table(scale: Scale, name: str, title: str, run: PretrainConfig, *names: str) -> tuple[Table, ...]:
    base, rows, title = batch(scale, 512)(run), online_learners(*names), f"CIFAR-5m, {title} by weight decay"
    return (decay_table(scale, base, rows, DECAYS, probe_metric(scale.probe), name=name, title=title),)


APPENDIX, ON_AUG = "Appendix, CIFAR-5m (online learning)", "Appendix, on the augmentation for x"


def _highest(table: str, where: str) -> Claim:
    return Claim("x-phinet-highest", where, "X-PhiNet is better than every other method at every weight decay",
                 Higher(table=table, over=X_PHINETS, under=BASELINES, by="worst"))  # fmt: skip


def _steady(table: str, one: str, other: tuple[str, ...], where: str) -> Claim:
    return Claim(f"steady-{_loss(one)}", where, f"{one} changes less over weight decay than {', '.join(other)}",
                 Steadier(table=table, one=one, other=other))  # fmt: skip


def _loss(name: str) -> str:
    return "mse" if name.endswith("(MSE)") else "cosine"


def _worse_with_aug(table: str, where: str) -> tuple[Claim, ...]:
    return tuple(
        Claim(f"with-aug-worse-{_loss(one)}", where, f"{augmented} is worse than {one}",
              Higher(table=table, over=(one,), under=(augmented,)))
        for one, augmented in zip(X_PHINETS, WITH_AUG, strict=True)
    )  # fmt: skip


EIGHT_CLAIMS = (
    _highest(EIGHT, APPENDIX),
    *(_steady(EIGHT, one, ("BYOL", "SimSiam", "RM-SimSiam"), "caption of tab:ablation_cifar5m_wd")
      for one in X_PHINETS),
    Claim("with-aug-above-baselines", APPENDIX,
          "X-PhiNet with an augmented x is better than SimSiam and RM-SimSiam",
          Higher(table=EIGHT, over=WITH_AUG, under=("SimSiam", "RM-SimSiam"))),
    *_worse_with_aug(EIGHT, APPENDIX),
    Claim("identity-g-worse", APPENDIX, "X-PhiNet (Cos) is worse with g = I than with a g of its own",
          Higher(table=EIGHT, over=("X-PhiNet (Cos)",), under=("X-PhiNet (Cos, g=I)",))),
    Claim("cosine-better", "Appendix, limitations", "online, X-PhiNet is better with cosine than with MSE",
          Higher(table=EIGHT, over=("X-PhiNet (Cos)",), under=("X-PhiNet (MSE)",))),
)  # fmt: skip
ONE_CLAIMS = (
    Claim("x-phinet-above-simsiam", APPENDIX, "after one epoch X-PhiNet is better than SimSiam",
          Higher(table=ONE, over=X_PHINETS, under=("SimSiam",))),
    _highest(ONE, "caption of tab:ablation_cifar5m_wd_one"),
)  # fmt: skip
ANCHOR_CLAIMS = (
    Claim("with-aug-above-simsiam", "caption of table:robust-c5m-aug",
          "X-PhiNet with an augmented x is better than SimSiam",
          Higher(table=ANCHOR, over=WITH_AUG, under=("SimSiam",))),
    *_worse_with_aug(ANCHOR, ON_AUG),
    *(_steady(ANCHOR, one, ("SimSiam",), ON_AUG) for one in WITH_AUG),
)  # fmt: skip

ONLINE_NOTE = (
    "The paper gives neither the batch nor the schedule on CIFAR-5m: batch 512, a warm-up of .1 epoch (the images of "
    "ten CIFAR-10 epochs), and a cosine that ends with the run. In the authors' code the cosine ends after 800 epochs, "
    "whatever number is trained, so after the warm-up the rate hardly falls: `phinets train --recipe paper-online "
    "--schedule constant`."
)

TARGETS = (
    Target(EIGHT, "table tab:ablation_cifar5m_wd", "CIFAR-5m, eight epochs, by weight decay",
           tables=lambda scale: _table(scale, EIGHT, "8 epochs: linear probe", scale.cifar5m,
                                       *BASELINES, *WITH_AUG, *X_PHINETS, "X-PhiNet (Cos, g=I)"),
           claims=EIGHT_CLAIMS, notes=ONLINE_NOTE),
    Target(ONE, "table tab:ablation_cifar5m_wd_one", "CIFAR-5m, one epoch, by weight decay",
           tables=lambda scale: _table(scale, ONE, "1 epoch: linear probe", scale.cifar5m_once,
                                       *BASELINES, *X_PHINETS),
           claims=ONE_CLAIMS, notes=ONLINE_NOTE),
    Target(ANCHOR, "table table:robust-c5m-aug", "an augmented anchor x on CIFAR-5m",
           tables=lambda scale: _table(scale, ANCHOR, "8 epochs: x as it is or augmented, linear probe", scale.cifar5m,
                                       "SimSiam", *WITH_AUG, *X_PHINETS),
           claims=ANCHOR_CLAIMS, notes=ONLINE_NOTE),
)  # fmt: skip
