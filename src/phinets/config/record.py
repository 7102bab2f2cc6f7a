"""Summaries and records of runs, readable without torch."""

from dataclasses import dataclass
from typing import Any, Literal

from phinets.config.continual import ContinualConfig, Readout
from phinets.config.methods import EncoderName
from phinets.config.run import PretrainConfig

Verdict = Literal["healthy", "collapsing", "collapsed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Accuracy of the classifiers on the features, in percent; None without labels."""

    knn: float | None
    linear: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSummary:
    """The fields of every run's summary."""

    method: str
    backbone: str
    data: str
    seed: int
    steps: int
    verdict: Verdict
    spread: float
    """Standard deviation of l2-normalized codes times √d: about 1 is healthy, 0 is collapsed."""
    effective_rank: float
    dead_share: float
    max_rank: int | None = None
    """The largest effective rank that the batch and the dimension of z allow."""
    bad_images: int
    """Images that could not be used and were skipped; metrics.jsonl names them."""
    seconds: float
    """The whole run, evaluation included."""
    images_per_second: float
    """While training."""
    data_wait: float
    """Share of the training time in which the step waited for its views."""
    protocol: str
    """How the numbers were computed, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(BaseSummary):
    """The numbers of a finished run: summary.json."""

    knn: float | None
    """Accuracy of kNN on the trained encoder's features, in percent."""
    linear: float | None
    """Accuracy of the linear probe, in percent."""
    knn_slow: float | None = None
    """The same of the slow encoder, where both were evaluated."""
    linear_slow: float | None = None
    knn_untrained: float | None
    linear_untrained: float | None
    knn_pixels: float | None
    linear_pixels: float | None
    beats_untrained: bool | None = None
    """Whether the kNN accuracy is above that of the untrained encoder; None without labels."""

    @property
    def headline(self) -> str:
        """The verdict on the codes and, where training gained nothing, that it did not."""
        return f"{self.verdict}, but not better than untrained" if self.beats_untrained is False else self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRecord:
    """The fields of every finished run's record."""

    folder: str
    environment: dict[str, Any]
    journal: list[dict[str, Any]]
    """The rows of metrics.jsonl. A stream has a `task-eval` row for every evaluation, readout and encoder: step, epoch,
    task (its number from 1; 0: untrained), share (of that task that is done), readout, encoder, accuracies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(BaseRecord):
    """A finished pretraining run."""

    config: PretrainConfig
    summary: Summary


Accuracies = tuple[float | None, ...]
"""Accuracy on each task in percent, in the stream's order; None where it could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyMatrix:
    """The accuracies of one readout of one encoder after every task, and their averages."""

    readout: Readout
    encoder: EncoderName
    matrix: tuple[Accuracies, ...]
    """a[t][i]: accuracy on task i after task t in percent; full, except for tasks that were appended after t."""
    untrained: Accuracies
    """The same of the encoder before its first step."""
    average: float | None
    """A_T: the mean of the last row."""
    stages: Accuracies
    """A_t after every task: the mean over the tasks that have come."""
    forgetting_max: float | None
    """By the paper's formula: the best accuracy before the last task minus the final one; may be negative."""
    forgetting_diag: float | None
    """By UCL's code: the accuracy right after the task minus the final one."""
    backward_transfer: float | None
    """The negative of `forgetting_diag`."""
    forward_transfer: float | None
    """The accuracy on a task before it was trained, a[i−1][i], minus the untrained encoder's."""
    protocol: str
    """Readout, k, temperature, bank, test images, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualSummary(BaseSummary):
    """The numbers of a finished run over a stream: its summary.json."""

    tasks: tuple[str, ...]
    """Their names, in order."""
    images: tuple[int, ...]
    """Training images of each."""
    readings: tuple[AccuracyMatrix, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinualRecord(BaseRecord):
    """A finished run over a stream."""

    config: ContinualConfig
    summary: ContinualSummary
