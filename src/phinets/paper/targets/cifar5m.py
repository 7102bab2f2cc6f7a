"""CIFAR-5m, seen eight times or once: linear probe by weight decay; the augmented anchor."""

from phinets.config.run import RunConfig
from phinets.paper.grids import batch, crossed, online, probed, weight_decays
from phinets.paper.plan import Table, Target
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


def _table(scale: Scale, name: str, title: str, run: RunConfig, names: tuple[str, ...]) -> tuple[Table, ...]:
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


TARGETS = (
    Target(
        name="cifar5m-weight-decay",
        place="table tab:ablation_cifar5m_wd",
        title="CIFAR-5m, eight epochs, by weight decay",
        tables=_eight,
    ),
    Target(
        name="cifar5m-one-epoch",
        place="table tab:ablation_cifar5m_wd_one",
        title="CIFAR-5m, one epoch, by weight decay",
        tables=_one,
    ),
    Target(
        name="augmented-anchor",
        place="table table:robust-c5m-aug",
        title="an augmented anchor x on CIFAR-5m",
        tables=_anchors,
    ),
)
