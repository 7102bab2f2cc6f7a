"""ImageNet: linear probe by weight decay, and by the choice of g."""

from phinets.paper import grids
from phinets.paper.plan import Table, Target
from phinets.paper.rules import Claim, Comparable, Higher, Unsteady
from phinets.paper.scales import Scale

DECAYS = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4)
SMALL, LARGE = ("0", "1e-05", "2e-05", "5e-05"), ("0.0001", "0.0002")
TABLE, CAPTION = "imagenet-weight-decay", "caption of tab:ablation_inet"


def _by_decay(scale: Scale) -> tuple[Table, ...]:
    base, rows = grids.batch(scale, 512)(scale.imagenet), grids.learners("SimSiam", "PhiNet (MSE)")
    measurement, title = grids.probe_metric(scale.imagenet_probe), "ImageNet: linear probe by weight decay"
    return (grids.decay_table(scale, base, rows, DECAYS, measurement, name=TABLE, title=title),)


def _g(scale: Scale) -> tuple[Table, ...]:
    base = grids.weight_decay(scale, 1e-3)(grids.batch(scale, 512)(scale.imagenet))
    columns = grids.learners("SimSiam", "PhiNet (MSE)", "PhiNet (g=I)", "PhiNet (g=h)")
    measurement = grids.probe_metric(scale.short_imagenet_probe)
    cells = grids.grid_cells(grids.one_seed_in_paper(scale), base, {"linear probe": grids.same}, columns, measurement)
    title = "ImageNet, weight decay 0.001: linear probe by the choice of g"
    return (Table(name="imagenet-g", title=title, cells=cells, best_in="row"),)


UNSTABLE = "Both are unstable when the weight decay is small"
DECAY_CLAIMS = (
    Claim("comparable", CAPTION, "PhiNet is comparable to SimSiam.",
          "at the usual weight decays PhiNet is about as good as SimSiam",
          Comparable(table=TABLE, one="PhiNet (MSE)", other="SimSiam", within=grids.COMPARABLE, at=LARGE)),
    *(Claim(f"{name.split()[0].lower()}-unstable-at-small-decays", CAPTION, UNSTABLE,
            f"from one small weight decay to the next {name} changes more than from one usual decay to the next",
            Unsteady(table=TABLE, name=name, at=SMALL, than=LARGE))
      for name in ("SimSiam", "PhiNet (MSE)")),
    Claim("phinet-ahead-at-small-decays", CAPTION, f"{UNSTABLE}, but PhiNet still achieves high accuracy.",
          "at small weight decays PhiNet is above SimSiam on average",
          Higher(table=TABLE, over=("PhiNet (MSE)",), under=("SimSiam",), at=SMALL)),
)  # fmt: skip
G_CLAIMS = (
    Claim("shared-g-lowest", "Appendix, additional ablation study with ImageNet",
          "g = h has a lower accuracy than other methods",
          "PhiNet with g = h is below SimSiam and below PhiNet with a g of its own and with g = I",
          Higher(table="imagenet-g", over=("SimSiam", "PhiNet (MSE)", "PhiNet (g=I)"), under=("PhiNet (g=h)",),
                 along="columns")),
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
