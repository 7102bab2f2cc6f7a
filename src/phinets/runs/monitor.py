"""Evaluate a learner while it trains, and explain a collapse."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from torch import Tensor

from phinets.config.methods import Wiring, method
from phinets.config.run import TrainConfig
from phinets.evaluation.health import fixed_views, health, learner_metrics
from phinets.runs.setup import HEALTH_FIELDS, RunKind, health_from_row
from phinets.views import Views

HEALTH_IMAGES = 512
"""Images that the health metrics are computed on."""


class Monitor:
    """Computes the metrics of an evaluation during training."""

    def __init__(self, kind: RunKind[Any], past: Iterable[Mapping[str, Any]]) -> None:
        """`past`: the journal of the run so far."""
        self.kind = kind
        self.run_parts = kind.run_parts
        evals = (row for row in past if row["kind"] == "eval")
        self._collapse_reported = any(health_from_row(row).verdict == "collapsed" for row in evals)

    def evaluate(self, done: int, codes: Tensor) -> tuple[dict[str, Any], str | None]:
        """kNN, collapse meter and health metrics; and an explanation, the first time the codes have collapsed."""
        meter = health(codes)
        explanation = None
        if meter.verdict == "collapsed" and not self._collapse_reported:
            self._collapse_reported = True
            explanation = diagnosis(self.run_parts.config, meter.verdict, meter.spread, meter.effective_rank)
        knn = {f"knn{end}": self.kind.online_knn(f, done) for end, f in self.run_parts.evaluated_encoders.items()}
        metrics: dict[str, Any] = {name: value for name, value in knn.items() if value is not None}
        metrics |= {name: getattr(meter, name) for name in HEALTH_FIELDS}
        names = self.run_parts.config.evaluation.health_metrics
        if names:
            metrics |= learner_metrics(self.run_parts.train_state.learner, self._views, names)
        return metrics, explanation

    @cached_property
    def _views(self) -> Views:
        """Views of the first training images, the same in every evaluation."""
        views, _, bad = fixed_views(self.run_parts.schedule.loader_at(0), HEALTH_IMAGES)
        self.run_parts.bad_images.add(bad)
        return views


def diagnosis(config: TrainConfig, verdict: str, spread: float, rank: float) -> str:
    """Likely causes of a collapse, and what to do."""
    return (
        f"The codes have {verdict} (std·√d {spread:.2f}, effective rank {rank:.1f}): different images get nearly the "
        f"same code. Likely cause and cure: {'; or '.join(_causes(config))}."
    )


def _causes(config: TrainConfig) -> list[str]:
    causes = []
    wiring, optimization = method(config.method), config.optimization
    sim2 = wiring.sim2 if isinstance(wiring, Wiring) else None
    if sim2 is not None and not sim2.stop_gradient:
        causes.append("the gradient flows through the anchor's code (use a method with stop-gradient, e.g. phinet)")
    if isinstance(wiring, Wiring) and wiring.needs_slow and config.learner.beta == 1.0:
        causes.append("β = 1 never moves the slow encoder (use --beta 0.99)")
    if optimization.weight_decay > 1e-3:
        causes.append(f"a weight decay of {optimization.weight_decay:g} is strong (use --weight-decay 5e-4 or less)")
    if config.peak_lr > 0.5 and optimization.optimizer == "sgd":
        causes.append(f"a peak learning rate of {config.peak_lr:g} is high (use --lr {optimization.lr / 4:g})")
    if not optimization.constant_h:
        causes.append("h slows down with the schedule (use --constant-h)")
    if config.batch < 64:
        causes.append(f"a batch of {config.batch} gives noisy batch statistics (use --batch 128 or more)")
    return causes or ["the learning rate or the weight decay does not suit this data (try half of each)"]
