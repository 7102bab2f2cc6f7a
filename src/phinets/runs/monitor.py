"""The look at a learner while it learns."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any

from torch import Tensor

from phinets.config.methods import Wiring, method
from phinets.config.run import TrainConfig
from phinets.evaluation.health import Health, Readings, checkup, first_seen, health
from phinets.runs.callbacks import RunCallback
from phinets.runs.setup import RunParts
from phinets.views import Views

READINGS = tuple(field.name for field in fields(Health))
SEEN = 512
"""Images whose codes the further measures are of."""


class Meter:
    """Looks at the learner, and says once, clearly, when it has collapsed."""

    def __init__(self, run_parts: RunParts, callback: RunCallback, before: Iterable[Mapping[str, Any]] = ()) -> None:
        """`before`: the looks of the run so far, where it is resumed."""
        self.run_parts = run_parts
        self.callback = callback
        self.said = any(health_of(row).verdict == "collapsed" for row in before)

    def look(self, codes: Tensor) -> dict[str, Any]:
        """kNN so far, the collapse meter's readings, and the measures that the run asks for."""
        found = health(codes)
        if found.verdict == "collapsed" and not self.said:
            self.said = True
            self.callback.on_message(
                diagnosis(self.run_parts.config, found.verdict, found.spread, found.effective_rank)
            )
        scores = {f"knn{ending}": self.run_parts.live(encoder) for ending, encoder in self.run_parts.judged.items()}
        return {
            **{name: value for name, value in scores.items() if value is not None},
            **{name: getattr(found, name) for name in READINGS},
            **self._measures(),
        }

    def _measures(self) -> Readings:
        health_metrics = self.run_parts.config.evaluation.health_metrics
        return checkup(self.run_parts.train_state.learner, self._views, health_metrics) if health_metrics else {}

    @cached_property
    def _views(self) -> Views:
        """Two views of the first training images, the same at every look."""
        views, _, bad = first_seen(self.run_parts.course.feed_at(0), SEEN)
        self.run_parts.bad_images.add(bad)
        return views


def health_of(row: Mapping[str, Any]) -> Health:
    """What the meter read, from a look's line in the journal."""
    return Health(**{name: row[name] for name in READINGS})


def diagnosis(config: TrainConfig, verdict: str, spread: float, rank: float) -> str:
    """One paragraph for a run whose codes no longer tell images apart."""
    what = f"The codes have {verdict} (std·√d {spread:.2f}, effective rank {rank:.1f}): "
    return (
        what
        + "different images get nearly the same code. Likely cause and cure: "
        + "; or ".join(_causes(config))
        + "."
    )


def _causes(config: TrainConfig) -> list[str]:
    causes = []
    wiring = method(config.method)
    sim2 = wiring.sim2 if isinstance(wiring, Wiring) else None
    if sim2 is not None and not sim2.stop_gradient:
        causes.append("the gradient flows through the anchor's code (use a method with stop-gradient, e.g. phinet)")
    if isinstance(wiring, Wiring) and wiring.needs_slow and config.learner.beta == 1.0:
        causes.append("β = 1 never moves the slow encoder (use --beta 0.99)")
    if config.optimization.weight_decay > 1e-3:
        wd = config.optimization.weight_decay
        causes.append(f"a weight decay of {wd:g} is strong (use --weight-decay 5e-4 or less)")
    if config.peak_lr > 0.5 and config.optimization.optimizer == "sgd":
        causes.append(f"a peak learning rate of {config.peak_lr:g} is high (use --lr {config.optimization.lr / 4:g})")
    if not config.optimization.constant_h:
        causes.append("h slows down with the schedule (use --constant-h)")
    if config.batch < 64:
        causes.append(f"a batch of {config.batch} gives noisy batch statistics (use --batch 128 or more)")
    return causes or ["the learning rate or the weight decay does not suit this data (try half of each)"]
