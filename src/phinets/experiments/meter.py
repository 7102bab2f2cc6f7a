"""The look at a learner while it learns."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from torch import Tensor

from phinets.evaluation.collapse import Health, health
from phinets.experiments.bench import Bench
from phinets.experiments.diagnosis import diagnosis
from phinets.experiments.watching import Watcher

READINGS = tuple(field.name for field in fields(Health))


class Meter:
    """Looks at the learner, and says once, clearly, when it has collapsed."""

    def __init__(self, bench: Bench, watcher: Watcher, before: Iterable[Mapping[str, Any]] = ()) -> None:
        """`before`: the looks of the run so far, where it is resumed."""
        self.bench = bench
        self.watcher = watcher
        self.said = any(health_of(row).verdict == "collapsed" for row in before)

    def look(self, codes: Tensor) -> dict[str, float]:
        """kNN so far and the collapse meter's readings."""
        found = health(codes)
        if found.verdict == "collapsed" and not self.said:
            self.said = True
            self.watcher.told(diagnosis(self.bench.config, found.verdict, found.spread, found.effective_rank))
        knn = self.bench.judge.live_knn(self.bench.encoder)
        readings = {name: getattr(found, name) for name in READINGS}
        return readings if knn is None else {"knn": knn, **readings}


def health_of(row: Mapping[str, Any]) -> Health:
    """What the meter read, from a look's line in the journal."""
    return Health(**{name: row[name] for name in READINGS})
