"""Summaries and records of runs, readable without torch."""

from dataclasses import dataclass
from typing import Any, Literal

from phinets.config.continual import ContinualConfig, Readout
from phinets.config.methods import EncoderName
from phinets.config.run import PretrainConfig

Verdict = Literal["healthy", "collapsing", "collapsed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How well features tell the classes apart, in percent; None where there are no labels."""

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
    """Percent right by kNN on the trained encoder's features."""
    linear: float | None
    """Percent right by the linear probe."""
    knn_slow: float | None = None
    """The same of the slow encoder, where both were evaluated."""
    linear_slow: float | None = None
    knn_untrained: float | None
    linear_untrained: float | None
    knn_pixels: float | None
    linear_pixels: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A finished run."""

    folder: str
    config: PretrainConfig
    environment: dict[str, Any]
    summary: Summary
    journal: list[dict[str, Any]]


Accuracies = tuple[float | None, ...]
"""Percent right on each task, in the stream's order; None where it could not be computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyMatrix:
    """One readout of one encoder after every task, and what follows from it."""

    readout: Readout
    encoder: EncoderName
    matrix: tuple[Accuracies, ...]
    """a[t][i]: percent right on task i after task t; full, except for tasks that were appended after t."""
    untrained: Accuracies
    """The same of the encoder before its first step."""
    average: float | None
    """A_T: the mean of the last row."""
    stages: Accuracies
    """A_t after every task: the mean over the tasks that have come."""
    forgetting_max: float | None
    """By the paper's formula: the best that was reached before the last task, less what is left; may be negative."""
    forgetting_diag: float | None
    """By UCL's code: what was reached right after the task, less what is left."""
    backward_transfer: float | None
    """What later tasks added to earlier ones: the negative of `forgetting_diag`."""
    forward_transfer: float | None
    """What earlier tasks gave to one before it came: a[i−1][i] less the untrained encoder's."""
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
class ContinualRecord:
    """A finished run over a stream."""

    folder: str
    config: ContinualConfig
    environment: dict[str, Any]
    summary: ContinualSummary
    journal: list[dict[str, Any]]
    """With a `task-eval` row for every evaluation, readout and encoder: step, epoch, task (its number from 1; 0:
    untrained), share (of that task that is done), readout, encoder, accuracies."""
