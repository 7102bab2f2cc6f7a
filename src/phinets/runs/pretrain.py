"""The programme of `phinets train`: one body of images, judged against the untrained encoder and raw pixels."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from torch import nn

from phinets.config.record import RunRecord, Score, Summary
from phinets.config.run import PretrainConfig
from phinets.data import fingerprint, load
from phinets.evaluation.evaluator import Judge, recalled
from phinets.reports.curves import curves_png
from phinets.runs.run_kind import Ended, Row
from phinets.runs.setup import RunParts, workshop
from phinets.training.schedule import RunSchedule, TaskSchedule


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """A run on one body of images."""

    config: PretrainConfig
    run_parts: RunParts
    judge: Judge
    turns: frozenset[int] = frozenset()

    def baseline(self) -> list[Row]:
        """What the encoder must beat: itself untrained, and raw pixels."""
        untrained, pixels = self._first_score(self.run_parts.judged[""]), self._first_score(None)
        return [
            {
                "kind": "baseline",
                "step": 0,
                "epoch": 0.0,
                "knn_untrained": untrained.knn,
                "linear_untrained": untrained.linear,
                "knn_pixels": pixels.knn,
                "linear_pixels": pixels.linear,
            }
        ]

    def _first_score(self, encoder: nn.Module | None) -> Score:
        """The score before anything is learned, which many runs of one process share."""
        judge = self.judge
        return recalled(lambda: judge.score(encoder), judge.eye, judge.final_parts, encoder, judge.protocol)

    def between(self, step: int) -> list[Row]:
        """Nothing: there are no turns."""
        return []

    def turn(self, step: int) -> None:
        """Nothing: there are no turns."""

    def closing(self) -> list[Row]:
        """kNN and linear probe of what was learned."""
        scores = {
            f"{name}{ending}": value
            for ending, encoder in self.run_parts.judged.items()
            for name, value in asdict(self.judge.score(encoder)).items()
        }
        course = self.run_parts.course
        return [{"kind": "score", "step": course.total, "epoch": course.epochs(course.total), **scores}]

    def record(self, ended: Ended) -> RunRecord:
        """The record, with its summary."""
        return RunRecord(
            folder=str(ended.folder),
            config=self.config,
            environment=ended.environment,
            summary=self._summary(ended),
            journal=ended.journal,
        )

    def pictures(self, record: RunRecord) -> Mapping[str, bytes]:
        """The learning curves."""
        return {"curves.png": curves_png(record)}

    def _summary(self, ended: Ended) -> Summary:
        scores = {**ended.last("baseline"), **ended.last("score")}
        return Summary(
            **ended.learned(self.run_parts, self.judge.describe()),
            **{name: value for name, value in scores.items() if name.startswith(("knn", "linear"))},
        )


def pretraining(config: PretrainConfig) -> Pretraining:
    """The programme of a run, or an error that says what can't be."""
    shop = workshop(config)
    split = load(config.data, config.source)
    loader = shop.loader(split.train.images, f"'{config.data}'")
    judge = Judge(split=split, eye=shop.eye, protocol=config.evaluation)
    run_parts = RunParts(
        config=config,
        device=shop.precision.device,
        train_state=shop.train_state(),
        course=RunSchedule((TaskSchedule(loader, shop.timetable(loader, config.epochs)),)),
        live=judge.live_knn,
        bad_images=shop.eye.bad_images,
        data=fingerprint(split),
    )
    return Pretraining(config=config, run_parts=run_parts, judge=judge)
