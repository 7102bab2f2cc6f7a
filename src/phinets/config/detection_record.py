"""What a detection transfer leaves behind, as values that reports can read without torch."""

from dataclasses import dataclass
from typing import Any

from phinets.config.detection import METRIC_WORDS, MetricName


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Average precision in percent; None where a class has no object to be found."""

    ap: float | None
    """The mean over IoU .50, .55, …, .95 and classes."""
    ap50: float | None
    """At IoU .50."""
    ap75: float | None
    """At IoU .75."""
    per_class: dict[str, float | None]
    """Each the mean over IoU .50, .55, …, .95."""
    per_class50: dict[str, float | None]
    """Each at IoU .50."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One detector: from an encoder's weights, or from fresh ones."""

    name: str
    """encoder or scratch, as is its folder."""
    called: str
    """Whose weights it began with, in words."""
    precision: dict[str, Precision]
    """By metric: coco, voc07, voc12."""
    loss_first: float
    """The mean loss over the first tenth of the steps."""
    loss_last: float
    """The mean loss over the last tenth."""
    seconds: float
    """Training and test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSummary:
    """The numbers of a finished detection transfer: summary.json."""

    target: str
    backbone: str
    data: str
    classes: tuple[str, ...]
    train_images: int
    test_images: int
    metric: MetricName
    """The one that tables show."""
    protocol: str
    """Pictures and training, in words."""
    arms: tuple[Arm, ...]
    """The encoder's first."""
    paper: str | None
    """Which part of the paper's table is of the same pictures, if any: VOC 07, or VOC 07+12."""
    seconds: float

    @property
    def comparable(self) -> str | None:
        """The part of the paper's table that compares with what is shown: same pictures, same metric."""
        return self.paper if self.metric == "voc07" else None

    def describe(self) -> str:
        """The whole protocol in words, with the metric that is shown."""
        return f"{self.protocol}; average precision {METRIC_WORDS[self.metric]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRecord:
    """A finished detection transfer."""

    folder: str
    summary: DetectionSummary
    journals: dict[str, list[dict[str, Any]]]
    """The lines of each arm's journal."""
