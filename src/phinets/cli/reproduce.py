"""`phinets reproduce`."""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import tyro
from rich.console import Console

from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError
from phinets.config.interrupts import leaving_at_once
from phinets.config.result import Result

if TYPE_CHECKING:
    from phinets.paper.plan import Target


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Re-run tables and figures of the paper at a chosen scale, beside the paper's numbers.

    Example: phinets reproduce cifar10-ablation --scale pocket --jobs 2
    """

    targets: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which tables and figures; all for every one."""
    scale: str = "pocket"
    """How large everything is: paper (needs GPUs and the data), pocket (an hour or so a target), smoke (seconds)."""
    seeds: int | None = None
    """How many seeds; unset: as many as the scale has."""
    store: Path = Path("runs/reproduce")
    """The folder of results; what is there is not done again."""
    jobs: int = 1
    """Pieces of work that are done at a time, each in a process of its own with its share of the cores."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    json: bool = False
    """Print one JSON document; progress goes to standard error."""


def command(words: list[str]) -> Outcome:
    """Parse, do what is missing, and show all."""
    options = parse_words(Reproduce, "reproduce", words)
    with leaving_at_once():
        from phinets.experiments.reproducing.doing import Means
        from phinets.experiments.reproducing.local import Workers
        from phinets.experiments.reproducing.reproducing import all_works, reproduce
        from phinets.experiments.reproducing.store import Store
        from phinets.paper.plan import with_seeds
        from phinets.paper.scales import scale

    size = with_seeds(scale(options.scale), options.seeds)
    works = all_works(_chosen(options.targets), size)
    store = Store(options.store)
    means = Means(root=options.root, device=options.device)
    with Workers(options.jobs, store, means) as workers:
        results = reproduce(works, store, workers, Told(Console(stderr=True)))
    document = {name: result.plain() for name, result in results.items()}
    return Outcome(document, lambda console: console.print(f"{len(document)} pieces of work in {options.store}"))


def _chosen(names: tuple[str, ...]) -> list["Target"]:
    from phinets.paper.targets import TARGETS, target

    if not names:
        raise UserError(f"say which tables or figures: all, or some of {', '.join(TARGETS)}.")
    return list(TARGETS.values()) if "all" in names else [target(name) for name in names]


class Told:
    """An onlooker that says a line for every piece of work."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.count, self.total, self.since = 0, 0, 0.0

    def began(self, works: int) -> None:
        """Say how many."""
        self.total, self.since = works, monotonic()
        self._say(f"{works} pieces of work to do")

    def done(self, result: Result) -> None:
        """Say how it went, and how long the rest may take."""
        from phinets.config.work import kind, seed

        self.count += 1
        left = (monotonic() - self.since) / self.count * (self.total - self.count)
        run: Any = getattr(result.work, "run", None)
        what = f"{kind(result.work)} {getattr(run, 'method', '')} seed {seed(result.work)}"
        how = "failed" if result.failed else f"{result.seconds:.1f} s"
        self._say(f"{self.count}/{self.total} {result.key} {what}: {how}; about {left / 60:.0f} min left")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
