"""Every table and figure of the paper that can be re-run, by name."""

from collections.abc import Mapping

from phinets.config.errors import look_up
from phinets.paper.plan import Target
from phinets.paper.targets import cifar10, split

TARGETS: Mapping[str, Target] = {target.name: target for part in (cifar10, split) for target in part.TARGETS}


def target(name: str) -> Target:
    """The target called `name`."""
    return look_up("target", name, TARGETS)
