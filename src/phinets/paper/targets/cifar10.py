"""CIFAR-10: robustness to weight decay, the ablation."""

from dataclasses import replace

from phinets.paper.grids import crossed, knn, methods, probed, weight_decays
from phinets.paper.plan import Table, Target
from phinets.paper.scales import Scale

DECAYS = (0.0, 1e-5, 1e-4, 5e-4, 1e-3)
"""The figures' axes are not printed; these span the weight decays of the paper's tables on CIFAR-10."""
METHODS = {
    "SimSiam": "simsiam",
    "BYOL": "byol",
    "RM-SimSiam": "rm-simsiam",
    "PhiNet (MSE)": "phinet",
    "X-PhiNet (MSE)": "x-phinet",
    "X-PhiNet (Cos)": "x-phinet/cosine",
}
ABLATED = {
    "SimSiam": "simsiam",
    "SimSiam (Orig-In)": "simsiam/original-input",
    "PhiNet MSE, SG-2, g": "phinet",
    "PhiNet MSE, SG-2, g = I": "phinet/identity-g",
    "PhiNet MSE, no SG-2, g": "phinet/no-stop-gradient",
    "PhiNet MSE, SG-2, h": "phinet/shared-g",
    "PhiNet Cos, SG-2, g": "phinet/cosine",
    "PhiNet Cos, SG-2, g = I": "phinet/cosine-identity-g",
    "PhiNet Cos, no SG-2, g": "phinet/cosine-no-stop-gradient",
    "PhiNet Cos, SG-2, h": "phinet/cosine-shared-g",
}


def _methods(scale: Scale) -> tuple[Table, ...]:
    base = replace(scale.cifar10, batch=scale.batch(128))
    cells = crossed(scale, base, methods(METHODS), weight_decays(scale, DECAYS), probed(scale))
    return (
        Table(
            name="cifar10-weight-decay-methods",
            title="CIFAR-10, batch 128: linear probe by weight decay",
            cells=cells,
            columns_are="weight decay",
        ),
    )


def _ablation(scale: Scale) -> tuple[Table, ...]:
    base = replace(scale.cifar10, batch=scale.batch(512))
    cells = crossed(scale, base, methods(ABLATED), weight_decays(scale, (0.0, 5e-4, 1e-3)), knn())
    return (
        Table(
            name="cifar10-ablation",
            title="CIFAR-10: kNN by Sim-2, SG-2, Pred-2 and weight decay",
            cells=cells,
            columns_are="weight decay",
        ),
    )


TARGETS = (
    Target(
        name="cifar10-weight-decay-methods",
        place="figure fig:weight_decay_bs_128 (b)",
        title="robustness to weight decay on CIFAR-10, PhiNets beside other methods",
        tables=_methods,
        drawn="lines",
    ),
    Target(
        name="cifar10-ablation",
        place="table tab:ablation_cifar10",
        title="ablation on CIFAR-10: Sim-2, SG-2, Pred-2",
        tables=_ablation,
    ),
)
