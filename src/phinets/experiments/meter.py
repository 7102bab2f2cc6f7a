"""The look at a learner while it learns."""

from torch import Tensor

from phinets.evaluation.collapse import Health, health
from phinets.experiments.bench import Bench
from phinets.experiments.diagnosis import diagnosis
from phinets.experiments.watching import Watcher


class Meter:
    """Looks at the learner, and says once, clearly, when it has collapsed."""

    def __init__(self, bench: Bench, watcher: Watcher) -> None:
        self.bench = bench
        self.watcher = watcher
        self.last: Health | None = None
        self.said = False

    def look(self, codes: Tensor) -> dict[str, float]:
        """kNN so far and the collapse meter's readings."""
        self.last = found = health(codes)
        if found.verdict == "collapsed" and not self.said:
            self.said = True
            self.watcher.told(diagnosis(self.bench.config, found.verdict, found.spread, found.effective_rank))
        knn = self.bench.judge.live_knn(self.bench.learner.encoder())
        readings = {"spread": found.spread, "effective_rank": found.effective_rank, "dead_share": found.dead_share}
        return readings if knn is None else {"knn": knn, **readings}
