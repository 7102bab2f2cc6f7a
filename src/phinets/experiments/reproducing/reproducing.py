"""From targets to results: what is to be done, by whom, and what came of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from phinets.config.result import Result
from phinets.config.work import Work
from phinets.experiments.reproducing.store import Store
from phinets.experiments.reproducing.units import Onlooker, Unit, units
from phinets.paper.plan import Target
from phinets.paper.scales import Scale


class Engine(Protocol):
    """Does units of work, and puts every result into the store."""

    def run(self, units: Sequence[Unit], onlooker: Onlooker) -> None:
        """All of them; what fails is a result like any other."""


def all_works(targets: Iterable[Target], scale: Scale) -> dict[str, Work]:
    """The work of some targets by key, each once."""
    found: dict[str, Work] = {}
    for target in targets:
        found |= {name: work for name, work in target.works(scale).items() if name not in found}
    return found


def reproduce(works: Mapping[str, Work], store: Store, engine: Engine, onlooker: Onlooker) -> dict[str, Result]:
    """The result of every piece of work: those that the store has, and the others done now."""
    known = store.results(works)
    missing = {name: work for name, work in works.items() if name not in known}
    if missing:
        onlooker.began(len(missing))
        engine.run(units(missing), onlooker)
    return store.results(works)
