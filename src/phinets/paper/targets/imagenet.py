"""ImageNet: linear probe by weight decay, and by the choice of g."""

from phinets.paper import grids
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Comparable, Drop, Higher
from phinets.paper.scales import Scale

DECAYS = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4)
SMALL, LARGE = ("0", "1e-05", "2e-05", "5e-05"), ("0.0001", "0.0002")
TABLE, CAPTION = "imagenet-weight-decay", "caption of tab:ablation_inet"


def _by_decay(scale: Scale) -> tuple[Table, ...]:
    base, rows = grids.batch(scale, 512)(scale.imagenet), grids.learners("SimSiam", "PhiNet (MSE)")
    measurement, title = grids.probe_metric(scale.imagenet_probe), "ImageNet: linear probe by weight decay"
    return (grids.decay_table(scale, base, rows, DECAYS, measurement, name=TABLE, title=title),)


def _g(scale: Scale) -> tuple[Table, ...]:
    base = grids.weight_decay(1e-3)(grids.batch(scale, 512)(scale.imagenet))
    columns = grids.learners("SimSiam", "PhiNet (MSE)", "PhiNet (g=I)", "PhiNet (g=h)")
    measurement = grids.probe_metric(scale.short_imagenet_probe)
    cells = grids.grid_cells(grids.one_seed_in_paper(scale), base, {"linear probe": grids.same}, columns, measurement)
    title = "ImageNet, weight decay 0.001: linear probe by the choice of g"
    return (Table(name="imagenet-g", title=title, cells=cells, best_in="row"),)


ABOUT = 1.0
"""Points that still are comparable: in the paper they are .4 apart there on average, with spreads of .2."""
DECAY_CLAIMS = (
    Claim("comparable", CAPTION, "PhiNet is about as good as SimSiam at the usual weight decays",
          Comparable(table=TABLE, one="PhiNet (MSE)", other="SimSiam", within=ABOUT, at=LARGE)),
    *(Claim(f"{name.split()[0].lower()}-suffers-at-small-decays", CAPTION, f"{name} is worse at small weight decays",
            Higher(table=TABLE, over=LARGE, under=SMALL, along="columns", at=(name,)))
      for name in ("SimSiam", "PhiNet (MSE)")),
    Claim("phinet-ahead-at-small-decays", CAPTION, "at small weight decays PhiNet is better than SimSiam",
          Higher(table=TABLE, over=("PhiNet (MSE)",), under=("SimSiam",), at=SMALL)),
)  # fmt: skip
LOW = 5.0
"""Points by which g = h must be lower to be called low; in the paper by 11."""
G_CLAIMS = tuple(
    Claim(f"shared-g-below-{word}", "caption of tab:imagenet-ablation", f"PhiNet with g = h is much worse than {name}",
          Drop(table="imagenet-g", name="PhiNet (g=h)", other=name, by=LOW, along="columns"))
    for word, name in (("simsiam", "SimSiam"), ("own-g", "PhiNet (MSE)"), ("identity-g", "PhiNet (g=I)"))
)  # fmt: skip

TEST_NOTE = (
    "The paper says 100,000 test images. The labels of those are not public: the 50,000 validation images are the test "
    "set, as in the code that the paper follows."
)

TARGETS = (
    Target("imagenet-weight-decay", "table tab:ablation_inet", "ImageNet, linear probe by weight decay",
           tables=_by_decay, claims=DECAY_CLAIMS, notes=TEST_NOTE),
    Target("imagenet-g", "table tab:imagenet-ablation", "ImageNet, the choice of g",
           tables=_g, claims=G_CLAIMS,
           notes="The paper prints no spread, so its scale has one seed: no claim can be decided there without more. "
                 f"{TEST_NOTE}"),
)  # fmt: skip
