"""Evaluate an encoder by kNN and linear probe: on a data set, and on each task of a continual stream."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from phinets.backbones.weights import encoder_checksum
from phinets.config.continual import Readout, ReadoutOptions
from phinets.config.evaluation import CACHED_PROBE
from phinets.config.record import Accuracies, Score
from phinets.config.run import EvalConfig
from phinets.continual.tasks import Stream, Task
from phinets.data import DataSplits, ImageSet, InMemory
from phinets.data.fingerprint import set_fingerprint
from phinets.evaluation.features import FeatureExtractor, FeatureSet, split_protocol, why_not_scored
from phinets.evaluation.knn import knn_accuracy, knn_protocol
from phinets.evaluation.linear import fit_probe, probe_accuracy

TrainTest = tuple[FeatureSet, FeatureSet]
"""Train features and test features."""
Scorer = Callable[[FeatureSet], float]
"""Test features → accuracy in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """Evaluates encoders on the data of a run, by its protocol."""

    split: DataSplits
    extractor: FeatureExtractor
    protocol: EvalConfig

    def online_knn(self, encoder: nn.Module) -> float | None:
        """kNN on the small bank, for the live display during training; None where there are no labels."""
        sets = self._feature_sets(self.protocol.online_bank, self.protocol.online_queries, encoder)
        return None if sets is None else self._knn(*sets)

    def score(self, encoder: nn.Module | None) -> Score:
        """kNN and linear probe on the final bank and all test images; of raw pixels where there is no encoder."""
        sets = self._feature_sets(self.protocol.final_bank, None, encoder)
        if sets is None:
            return Score(knn=None, linear=None)
        train, test = sets
        return Score(knn=self._knn(train, test), linear=probe_accuracy(fit_probe(*train.tensors()), *test.tensors()))

    def describe(self) -> str:
        """The protocol in words, printed beside every score."""
        train, test = self.final_sets
        why = why_not_scored(train.labels, test.labels)
        if why is not None:
            return f"{why}, so there is neither kNN nor a linear probe"
        vote = knn_protocol(min(self.protocol.num_neighbors, len(train)), self.protocol.knn_temperature)
        whose = {"fast": "", "slow": "the slow encoder's ", "both": ""}[self.protocol.encoder]
        counts = split_protocol(len(train), len(test), test.total)
        return f"{whose}backbone features; {counts}; kNN: {vote}; linear: {CACHED_PROBE}"

    @property
    def final_sets(self) -> tuple[ImageSet, ImageSet]:
        """Train and test images of the final score."""
        return self._image_sets(self.protocol.final_bank, None)

    def _image_sets(self, bank: int | None, queries: int | None) -> tuple[ImageSet, ImageSet]:
        """The first labeled train images and test images."""
        return self.split.eval_train.labeled.head(bank), self.split.test.labeled.head(queries)

    def _feature_sets(self, bank: int | None, queries: int | None, encoder: nn.Module | None) -> TrainTest | None:
        """Their features; None where their labels allow no score."""
        train, test = self._image_sets(bank, queries)
        if why_not_scored(train.labels, test.labels) is not None:
            return None
        return self.extractor.extract(train, encoder), self.extractor.extract(test, encoder)

    def _knn(self, train: FeatureSet, test: FeatureSet) -> float:
        """kNN accuracy in percent; the whole bank votes where it is smaller than k."""
        k, temperature = min(self.protocol.num_neighbors, len(train.labels)), self.protocol.knn_temperature
        return knn_accuracy(*test, *train, k=k, temperature=temperature, device=self.extractor.device)


T = TypeVar("T")
_BASELINES: dict[tuple[Hashable, ...], Any] = {}


def cached_baseline(
    evaluate: Callable[[], T],
    extractor: FeatureExtractor,
    image_sets: Iterable[ImageSet],
    encoder: nn.Module | None,
    protocol: Hashable,
) -> T:
    """The result of `evaluate`, computed once per process for the same images, encoder and protocol.

    Images that are not in memory are not compared, so their baseline is always computed.
    """
    image_sets = tuple(image_sets)
    if not all(isinstance(images.images, InMemory) for images in image_sets):
        return evaluate()
    settings = (extractor.plan, extractor.size, str(extractor.device), str(extractor.dtype))
    weights = None if encoder is None else encoder_checksum(encoder)
    key = (*map(set_fingerprint, image_sets), *settings, weights, protocol)
    if key not in _BASELINES:
        _BASELINES[key] = evaluate()
    return cast(T, _BASELINES[key])


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvaluator:
    """Evaluates encoders on every task of a stream, by the run's protocol."""

    stream: Stream
    extractor: FeatureExtractor
    evaluation: EvalConfig
    reading: ReadoutOptions

    def evaluate(self, encoder: nn.Module, tasks_seen: int) -> dict[Readout, Accuracies]:
        """Accuracy in percent on every task, also on those not yet trained on, by readout."""
        bank = self.evaluation.final_bank
        tasks = [self._feature_sets(task, bank, None, encoder) for task in self.stream.tasks]
        return {readout: tuple(self._accuracies(readout, tasks, tasks_seen)) for readout in self.reading.readouts}

    def online_knn(self, encoder: nn.Module) -> float | None:
        """The mean over all tasks of task-wise kNN on few images, for the live display during training."""
        n = len(self.stream.tasks)
        bank, queries = (max(1, size // n) for size in (self.evaluation.online_bank, self.evaluation.online_queries))
        tasks = [self._feature_sets(task, bank, queries, encoder) for task in self.stream.tasks]
        accuracies = [value for value in self._accuracies("task-knn", tasks, n) if value is not None]
        return sum(accuracies) / len(accuracies) if accuracies else None

    def describe(self, readout: Readout) -> str:
        """A readout in words, printed beside its scores."""
        scope, kind = readout.split("-")
        classes = {
            "task": "task-wise: among a task's own classes, with its own training images as bank",
            "class": "class-incremental: among the classes of all tasks so far (for a later task: up to and including "
            "it), with all their training images as bank",
        }[scope]
        image_sets = [labeled_sets(task, self.evaluation.final_bank) for task in self.stream.tasks]
        counts = [tuple(map(len, pair)) for pair in image_sets if pair is not None]
        if not counts:
            return f"{classes}; no task has labels, so none is evaluated"
        train, test = zip(*counts, strict=True)
        some = "all tasks" if len(counts) == len(image_sets) else f"the {len(counts)} tasks that have labels"
        vote = f"kNN: {self._vote(min(train))}" if kind == "knn" else f"linear: {CACHED_PROBE}"
        limit = "" if self.evaluation.final_bank is None else f" (at most {self.evaluation.final_bank} of a task)"
        return f"{classes}; {vote}; {sum(train)} training{limit} and {sum(test)} test images in {some}"

    def _vote(self, smallest: int) -> str:
        """The rule of kNN in words; `smallest` is the smallest bank."""
        if self.reading.k_rule == "tasks-seen":
            return knn_protocol("tasks so far", self.evaluation.knn_temperature)
        fewer = " (all of a smaller bank)" * (self.evaluation.num_neighbors > smallest)
        return knn_protocol(f"{self.evaluation.num_neighbors}{fewer}", self.evaluation.knn_temperature)

    def _feature_sets(self, task: Task, bank: int | None, queries: int | None, encoder: nn.Module) -> TrainTest | None:
        """Features of a task's labeled images; None where it has none."""
        image_sets = labeled_sets(task, bank, queries)
        if image_sets is None:
            return None
        return self.extractor.extract(image_sets[0], encoder), self.extractor.extract(image_sets[1], encoder)

    def _accuracies(
        self, readout: Readout, tasks: Sequence[TrainTest | None], tasks_seen: int
    ) -> Iterable[float | None]:
        """Task by task; tasks with the same bank share one scorer."""
        scorers: dict[tuple[int, int], Scorer | None] = {}
        for i, task in enumerate(tasks):
            first, last = (i, i + 1) if readout.startswith("task") else (0, max(tasks_seen, i + 1))
            if (first, last) not in scorers:
                banks = [sets[0] for sets in tasks[first:last] if sets is not None]
                scorers[first, last] = self._scorer(readout, banks, tasks_seen)
            scorer = scorers[first, last]
            yield None if task is None or scorer is None else scorer(task[1])

    def _scorer(self, readout: Readout, banks: Sequence[FeatureSet], tasks_seen: int) -> Scorer | None:
        """kNN or a probe with the train features of these tasks; None where they have fewer than two classes."""
        if not banks or len(torch.cat([bank.labels for bank in banks]).unique()) < 2:
            return None
        features, labels = (torch.cat(tensors) for tensors in zip(*(bank.tensors() for bank in banks), strict=True))
        if readout.endswith("linear"):
            classes, numbers = labels.unique(return_inverse=True)
            probe = fit_probe(features, numbers)
            return lambda test: probe_accuracy(probe, test.tensors()[0], _renumber(test.labels, classes))
        k = self.evaluation.num_neighbors if self.reading.k_rule == "fixed" else max(1, tasks_seen)
        vote: dict[str, Any] = {"k": min(k, len(labels)), "temperature": self.evaluation.knn_temperature}
        return lambda test: knn_accuracy(*test, features, labels, **vote, device=self.extractor.device)


def labeled_sets(task: Task, bank: int | None, queries: int | None = None) -> tuple[ImageSet, ImageSet] | None:
    """The first labeled train and test images of a task; None where there are none."""
    train, test = task.eval_train.labeled.head(bank), task.test.labeled.head(queries)
    return None if any(images.labels is None or not len(images) for images in (train, test)) else (train, test)


def _renumber(labels: Tensor, classes: Tensor) -> Tensor:
    """Labels as indices of `classes`, −1 for one that is not among them and so never right."""
    places = torch.searchsorted(classes, labels).clamp_max(len(classes) - 1)
    return torch.where(classes[places] == labels, places, -1)
