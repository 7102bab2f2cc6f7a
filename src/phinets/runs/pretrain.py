"""`phinets train`: one data set, compared with the untrained encoder and raw pixels."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from torch import nn

from phinets.config.record import RunRecord, Score, Summary
from phinets.config.run import PretrainConfig
from phinets.data import fingerprint, load
from phinets.evaluation.evaluator import Evaluator, cached_baseline
from phinets.reports.curves import curves
from phinets.reports.figures import png
from phinets.runs.setup import Row, RunParts, RunResult, set_up
from phinets.training.schedule import TaskImages
from phinets.training.step import untrained_learner


@dataclass(frozen=True, kw_only=True)
class Pretrain:
    """A pretraining run."""

    config: PretrainConfig
    run_parts: RunParts
    evaluator: Evaluator
    boundaries: frozenset[int]
    """After the first step, so that a mistake in training or in the evaluation data shows at once."""

    @classmethod
    def build(cls, config: PretrainConfig) -> Self:
        """Check and build a run.

        Raises:
            UserError: the device, the backbone or the data can't be used.
        """
        setup = set_up(config)
        split = load(config.data, config.source)
        images = TaskImages(split.train.images, f"'{config.data}'", config.epochs)
        run_parts = setup.run_parts([images], fingerprint(split))
        evaluator = Evaluator(split=split, extractor=setup.extractor, protocol=config.evaluation)
        boundaries = frozenset({min(1, run_parts.schedule.total - 1)})
        return cls(config=config, run_parts=run_parts, evaluator=evaluator, boundaries=boundaries)

    def online_knn(self, encoder: nn.Module, done: int) -> float | None:
        """kNN on few images."""
        return self.evaluator.online_knn(encoder)

    def evaluate_between(self, step: int) -> list[Row]:
        """The scores of the untrained encoder and of raw pixels."""
        learner = untrained_learner(self.config, self.run_parts.train_state.learner)
        untrained, pixels = self._baseline_score(learner.encoder(self.config.encoders[0])), self._baseline_score(None)
        scores = {"knn_untrained": untrained.knn, "linear_untrained": untrained.linear}
        scores |= {"knn_pixels": pixels.knn, "linear_pixels": pixels.linear}
        return [{"kind": "baseline", "step": 0, "epoch": 0.0, **scores}]

    def _baseline_score(self, encoder: nn.Module | None) -> Score:
        """The score of a baseline, which the runs of one process share."""
        own = self.evaluator
        return cached_baseline(lambda: own.score(encoder), own.extractor, own.final_sets, encoder, own.protocol)

    def begin_task(self, step: int) -> None:
        """Nothing: there is one task."""

    def final_rows(self) -> list[Row]:
        """kNN and linear probe of the trained encoders."""
        scores = {
            f"{name}{ending}": value
            for ending, encoder in self.run_parts.evaluated_encoders.items()
            for name, value in asdict(self.evaluator.score(encoder)).items()
        }
        schedule = self.run_parts.schedule
        return [{"kind": "score", "step": schedule.total, "epoch": schedule.epochs(schedule.total), **scores}]

    def record(self, result: RunResult) -> RunRecord:
        """The record, with its summary."""
        scores = {**result.last("baseline"), **result.last("score")}
        knn, untrained = scores["knn"], scores["knn_untrained"]
        summary = Summary(
            **result.summary(self.run_parts, self.evaluator.describe()),
            **{name: value for name, value in scores.items() if name.startswith(("knn", "linear"))},
            beats_untrained=None if knn is None or untrained is None else knn > untrained,
        )
        return RunRecord(config=self.config, summary=summary, **result.record_fields)

    def figures(self, record: RunRecord) -> Mapping[str, bytes]:
        """The learning curves."""
        return {"curves.png": png(curves(record))}
