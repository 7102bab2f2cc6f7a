"""What a run leaves behind, as values that reports can read without torch."""

from dataclasses import dataclass
from typing import Any, Literal

from phinets.config.run import RunConfig

Verdict = Literal["healthy", "collapsing", "collapsed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How well features tell the classes apart, in percent; None where there are no labels."""

    knn: float | None
    linear: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of a finished run: summary.json."""

    method: str
    backbone: str
    data: str
    seed: int
    steps: int
    knn: float | None
    """Percent right by kNN on the trained encoder's features."""
    linear: float | None
    """Percent right by the linear probe."""
    knn_slow: float | None = None
    """The same of the slow encoder, where it was judged beside the fast one."""
    linear_slow: float | None = None
    knn_untrained: float | None
    linear_untrained: float | None
    knn_pixels: float | None
    linear_pixels: float | None
    verdict: Verdict
    spread: float
    """Standard deviation of l2-normalised codes times √d: about 1 is healthy, 0 is collapsed."""
    effective_rank: float
    dead_share: float
    bad_images: int
    """Images that could not be used and were skipped; metrics.jsonl names them."""
    seconds: float
    """The whole run, judging included."""
    images_per_second: float
    """While training."""
    data_wait: float
    """Share of the training time in which the step waited for its views."""
    protocol: str
    """How the percentages were got."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A finished run."""

    folder: str
    config: RunConfig
    environment: dict[str, Any]
    summary: Summary
    journal: list[dict[str, Any]]
