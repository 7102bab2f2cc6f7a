"""Every table and figure of the paper that can be re-run, by name."""

from collections.abc import Mapping

from phinets.config.errors import look_up
from phinets.paper.plan import Target
from phinets.paper.targets import (
    ablation,
    batch_size,
    cifar5m,
    costs,
    dynamics,
    imagenet,
    split,
    split_cifar5m,
    voc,
    weight_decay,
)

MODULES = (dynamics, weight_decay, ablation, imagenet, batch_size, cifar5m, split_cifar5m, split, voc, costs)
TARGETS: Mapping[str, Target] = {target.name: target for module in MODULES for target in module.TARGETS}


def target(name: str) -> Target:
    """The target called `name`."""
    return look_up("target", name, TARGETS)
