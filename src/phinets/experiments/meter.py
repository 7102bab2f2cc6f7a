"""The look at a learner while it learns."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any

from torch import Tensor

from phinets.evaluation.collapse import Health, health
from phinets.experiments.bench import Bench
from phinets.experiments.checkup import Readings, checkup, first_seen
from phinets.experiments.diagnosis import diagnosis
from phinets.experiments.watching import Watcher
from phinets.views import Views

READINGS = tuple(field.name for field in fields(Health))
SEEN = 512
"""Images whose codes the further measures are of."""


class Meter:
    """Looks at the learner, and says once, clearly, when it has collapsed."""

    def __init__(self, bench: Bench, watcher: Watcher, before: Iterable[Mapping[str, Any]] = ()) -> None:
        """`before`: the looks of the run so far, where it is resumed."""
        self.bench = bench
        self.watcher = watcher
        self.said = any(health_of(row).verdict == "collapsed" for row in before)

    def look(self, codes: Tensor) -> dict[str, Any]:
        """kNN so far, the collapse meter's readings, and the measures that the run asks for."""
        found = health(codes)
        if found.verdict == "collapsed" and not self.said:
            self.said = True
            self.watcher.told(diagnosis(self.bench.config, found.verdict, found.spread, found.effective_rank))
        scores = {f"knn{ending}": self.bench.live(encoder) for ending, encoder in self.bench.judged.items()}
        return {
            **{name: value for name, value in scores.items() if value is not None},
            **{name: getattr(found, name) for name in READINGS},
            **self._measures(),
        }

    def _measures(self) -> Readings:
        measures = self.bench.config.judging.measures
        return checkup(self.bench.trainee.learner, self._views, measures) if measures else {}

    @cached_property
    def _views(self) -> Views:
        """Two views of the first training images, the same at every look."""
        views, _, bad = first_seen(self.bench.course.feed_at(0), SEEN)
        self.bench.rejects.add(bad)
        return views


def health_of(row: Mapping[str, Any]) -> Health:
    """What the meter read, from a look's line in the journal."""
    return Health(**{name: row[name] for name in READINGS})
