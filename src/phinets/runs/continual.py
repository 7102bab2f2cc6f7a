"""`phinets continual`: one task after the other, all of them evaluated after each."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
from torch import nn

from phinets.config.continual import ContinualConfig, Readout
from phinets.config.errors import UserError
from phinets.config.methods import EncoderName
from phinets.config.record import Accuracies, AccuracyMatrix, ContinualRecord, ContinualSummary
from phinets.continual import metrics
from phinets.continual.replay import Replay
from phinets.continual.tasks import Stream, fingerprints, stream
from phinets.evaluation.evaluator import TaskEvaluator, cached_baseline
from phinets.methods import Learner
from phinets.reports.continual import run_pictures
from phinets.runs.setup import Row, RunParts, RunResult, set_up
from phinets.training.schedule import RunSchedule, TaskImages
from phinets.training.step import untrained_learner


@dataclass(frozen=True, kw_only=True)
class Continual:
    """A run over a stream of tasks."""

    config: ContinualConfig
    run_parts: RunParts
    stream: Stream
    evaluator: TaskEvaluator

    @classmethod
    def build(cls, config: ContinualConfig) -> Self:
        """Check and build a run.

        Raises:
            UserError: the device, the backbone or the data of a task can't be used.
        """
        setup = set_up(config)
        tasks = stream(config)
        run_parts = setup.run_parts(_task_images(config, tasks), fingerprints(tasks))
        if config.memory.replay != "none":
            run_parts = replace(run_parts, replay=Replay(config.memory, run_parts.schedule.tasks[0].loader))
        evaluator = TaskEvaluator(
            stream=tasks, extractor=setup.extractor, evaluation=config.evaluation, reading=config.reading
        )
        return cls(config=config, run_parts=run_parts, stream=tasks, evaluator=evaluator)

    @property
    def boundaries(self) -> frozenset[int]:
        """The first step of each task, and the steps of evaluations within a task."""
        schedule, n = self.run_parts.schedule, self.config.reading.evals_per_task
        within = (
            start + round((end - start) * i / n) for start, end in pairwise((0, *schedule.ends)) for i in range(1, n)
        )
        return frozenset((*schedule.starts, *within))

    def online_knn(self, encoder: nn.Module, done: int) -> float | None:
        """The mean of task-wise kNN on few images of each task."""
        return self._evaluator_during(self.run_parts.schedule.task_at(done - 1)).online_knn(encoder)

    def evaluate_between(self, step: int) -> list[Row]:
        """Evaluate every task; before an appended task also with the untrained encoder, which has not seen it yet."""
        schedule, learner = self.run_parts.schedule, self.run_parts.train_state.learner
        task = schedule.task_at(step)
        rows = self._rows(step, learner, task)
        if step in schedule.starts and task >= self._planned:
            rows += self._rows(0, untrained_learner(self.config, learner), task)
        return rows

    def begin_task(self, step: int) -> None:
        """Tell the learner that a task begins."""
        schedule = self.run_parts.schedule
        if step in schedule.starts:
            self.run_parts.train_state.learner.begin_task(schedule.task_at(step))

    def final_rows(self) -> list[Row]:
        """Evaluate every task after the last."""
        return self._rows(self.run_parts.schedule.total, self.run_parts.train_state.learner, len(self.stream.tasks) - 1)

    def record(self, result: RunResult) -> ContinualRecord:
        """The record, with its summary."""
        return ContinualRecord(config=self.config, summary=self._summary(result), **result.record_fields)

    def figures(self, record: ContinualRecord) -> Mapping[str, bytes]:
        """The matrix, each task over time, fast beside slow."""
        return run_pictures(record)

    @property
    def _planned(self) -> int:
        """The number of tasks without appended ones."""
        return len(self.stream.tasks) - len(self.config.appended)

    def _evaluator_during(self, task: int) -> TaskEvaluator:
        """The evaluator of the tasks that the run had during a task: tasks appended later are not among them."""
        tasks = self.stream.tasks[: max(self._planned, task + 1)]
        return replace(self.evaluator, stream=replace(self.stream, tasks=tasks))

    def _rows(self, done: int, learner: Learner, current: int) -> list[Row]:
        """Rows of the journal: every readout of every encoder after `done` steps, during task `current`."""
        schedule = self.run_parts.schedule
        task, share = _progress(schedule, done)
        place = {"kind": "task-eval", "step": done, "epoch": schedule.epochs(done), "task": task, "share": share}
        evaluator = self._evaluator_during(current)
        evaluate = partial(_baseline_accuracies, evaluator) if done == 0 else evaluator.evaluate
        return [
            {**place, "readout": readout, "encoder": name, "accuracies": list(accuracies)}
            for name in self.config.encoders
            for readout, accuracies in evaluate(learner.encoder(name), task).items()
        ]

    def _summary(self, result: RunResult) -> ContinualSummary:
        config, tasks = self.config, self.stream.tasks
        readings = (
            read_matrix(result.journal, readout, name, len(tasks), self.evaluator.describe(readout))
            for name in config.encoders
            for readout in config.reading.readouts
        )
        return ContinualSummary(
            **result.summary(self.run_parts, self._protocol()),
            tasks=tuple(task.name for task in tasks),
            images=tuple(len(task.train) for task in tasks),
            readings=tuple(readings),
        )

    def _protocol(self) -> str:
        """How it was trained, in words."""
        config, rate = self.config, self.config.optimization
        names = [task.name for task in self.stream.tasks]
        later = zip(names[len(names) - len(config.appended) :], config.appended, strict=True)
        appended = "".join(f", then {name} × {task.epochs} epochs" for name, task in later)
        warmup = f" after a warm-up of {rate.warmup_epochs:g} epochs" * bool(rate.warmup_epochs)
        return (
            f"{config.strategy}; {self._planned} tasks × {config.epochs_per_task} epochs{appended}, batch "
            f"{config.batch}; one optimizer, learning rate {config.peak_lr:g} {rate.schedule}{warmup}, anew with each "
            f"task; weight decay {rate.weight_decay:g}; seed {config.seed}, n = 1; forgetting: max as in the paper, "
            "diag as in UCL's code"
        )


def _baseline_accuracies(evaluator: TaskEvaluator, encoder: nn.Module, tasks_seen: int) -> dict[Readout, Accuracies]:
    """The accuracies before training, which the runs of one process share."""
    image_sets = [images for task in evaluator.stream.tasks for images in (task.eval_train, task.test)]
    rules = (tasks_seen, evaluator.evaluation, evaluator.reading)
    return cached_baseline(
        lambda: evaluator.evaluate(encoder, tasks_seen), evaluator.extractor, image_sets, encoder, rules
    )


def _task_images(config: ContinualConfig, tasks: Stream) -> list[TaskImages]:
    """The training images of each task; appended tasks have their own number of epochs."""
    planned = len(tasks.tasks) - len(config.appended)
    epochs = [config.epochs_per_task] * planned + [task.epochs for task in config.appended]
    for task in tasks.tasks[planned:]:
        if len(task.train) < config.batch:
            raise UserError(
                f"the new task ({task.name}) has {len(task.train)} training images, but the batch of this run is "
                f"{config.batch}. The task needs at least as many images."
            )
    return [
        TaskImages(task.train.images, f"task {number} ({task.name})", n)
        for number, (task, n) in enumerate(zip(tasks.tasks, epochs, strict=True), 1)
    ]


def _progress(schedule: RunSchedule, done: int) -> tuple[int, float]:
    """The number of the current task, counted from 1 (0 before any), and which share of it is done."""
    if done == 0:
        return 0, 0.0
    task = schedule.task_at(done - 1)
    return task + 1, (done - schedule.starts[task]) / (schedule.ends[task] - schedule.starts[task])


def read_matrix(
    journal: Iterable[Row], readout: Readout, encoder: EncoderName, tasks: int, protocol: str
) -> AccuracyMatrix:
    """The accuracy matrix of the journal's evaluations at the ends of tasks, and its metrics."""
    rows: dict[int, Accuracies] = {}
    for row in journal:
        matches = row["kind"] == "task-eval" and (row["readout"], row["encoder"]) == (readout, encoder)
        if matches and (row["task"] == 0 or row["share"] == 1):
            appended_later = tasks - len(row["accuracies"])
            rows[row["task"]] = (*row["accuracies"], *[None] * appended_later)
    matrix = np.array([rows[t] for t in range(1, tasks + 1)], dtype=float)
    untrained = np.array(rows[0], dtype=float)
    return AccuracyMatrix(
        readout=readout,
        encoder=encoder,
        matrix=tuple(rows[t] for t in range(1, tasks + 1)),
        untrained=rows[0],
        average=_number(metrics.average(matrix)),
        stages=tuple(map(_number, metrics.stages(matrix))),
        forgetting_max=_number(metrics.forgetting(matrix, "max")),
        forgetting_diag=_number(metrics.forgetting(matrix, "diag")),
        backward_transfer=_number(metrics.backward_transfer(matrix)),
        forward_transfer=_number(metrics.forward_transfer(matrix, untrained)),
        protocol=protocol,
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
