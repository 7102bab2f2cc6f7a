"""ImageNet: linear probe by weight decay, and by the choice of g."""

from phinets.paper.grids import batch, crossed, learners, printed_once, probed, same, weight_decay, weight_decays
from phinets.paper.plan import Table, Target
from phinets.paper.scales import Scale

DECAYS = (0.0, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4)


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


TARGETS = (
    Target(
        name="imagenet-weight-decay",
        place="table tab:ablation_inet",
        title="ImageNet, linear probe by weight decay",
        tables=_by_decay,
    ),
    Target(
        name="imagenet-g",
        place="table tab:imagenet-ablation",
        title="ImageNet, the choice of g",
        tables=_g,
        notes="The paper prints no spread, so its scale has one seed: no claim can be decided there without more.",
    ),
)
