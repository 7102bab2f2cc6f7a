"""What the words of `phinets reproduce` choose: targets, scale, store, means."""

from pathlib import Path
from typing import TYPE_CHECKING

from phinets.cli.reproduce.options import Reproduce
from phinets.config.errors import UserError
from phinets.paper.plan import Target, with_seeds
from phinets.paper.scales import Scale, scale
from phinets.paper.targets import TARGETS, target

if TYPE_CHECKING:
    from phinets.reproduce.execute import Means
    from phinets.reproduce.store import Store

ALL = "all"


def chosen_targets(names: tuple[str, ...]) -> list[Target]:
    """The targets that are named, each once."""
    if not names:
        raise UserError(f"say which tables and figures: {ALL}, or some of {', '.join(TARGETS)}. --list shows them.")
    return list(TARGETS.values()) if ALL in names else [target(name) for name in dict.fromkeys(names)]


def chosen_scale(options: Reproduce, name: str | None = None) -> Scale:
    """The scale, with the seeds that are asked for."""
    return with_seeds(scale(name or options.scale), options.seeds)


def chosen_store(options: Reproduce) -> "Store":
    """The store, once its places can be folders."""
    from phinets.reproduce.store import Store

    if options.store.exists() and not options.store.is_dir():
        raise UserError(f"--store '{options.store}' is a file, but results need a folder. Choose another --store.")
    for place in options.also:
        if not place.is_dir():
            raise UserError(f"--also '{place}' is no folder. Name the folder that another --store wrote.")
    return Store(options.store, options.also)


def means_of(options: Reproduce) -> "Means":
    """With what the work is done; places in full, since workers may stand elsewhere."""
    from phinets.reproduce.execute import Means

    root = None if options.root is None else str(Path(options.root).expanduser().absolute())
    return Means(root=root, download=options.download, device=options.device, threads=options.threads)
