"""The programme of `phinets continual`: one task after the other, all of them read out after each."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from torch import nn

from phinets.config.continual import ContinualConfig, Readout
from phinets.config.errors import UserError
from phinets.config.methods import EncoderName, has_slow, method
from phinets.config.record import Accuracies, AccuracyMatrix, ContinualRecord, ContinualSummary
from phinets.continual import metrics
from phinets.continual.replay import Replay
from phinets.continual.tasks import Stream, fingerprints, stream
from phinets.evaluation.evaluator import recalled
from phinets.evaluation.tasks import Reader
from phinets.methods import Learner
from phinets.reports.continual import pictures_of
from phinets.runs.run_kind import Ended, Row
from phinets.runs.setup import RunParts, Workshop, workshop
from phinets.training.learner import build_learner
from phinets.training.schedule import RunSchedule, TaskSchedule


@dataclass(frozen=True, kw_only=True)
class Continual:
    """A run over a stream of tasks."""

    config: ContinualConfig
    run_parts: RunParts
    stream: Stream
    reader: Reader

    @property
    def turns(self) -> frozenset[int]:
        """The first step of each task, and where readings in the middle of one are due."""
        course, n = self.run_parts.course, self.config.reading.evals_per_task
        within = (
            start + round((end - start) * i / n) for start, end in pairwise((0, *course.ends)) for i in range(1, n)
        )
        return frozenset((*course.starts, *within))

    def baseline(self) -> list[Row]:
        """What the untrained encoder makes of each task."""
        return self._read(0)

    def between(self, step: int) -> list[Row]:
        """Every task read out; at the very beginning the baseline has just been.

        Before an appended task, also by the encoder as it was untrained, which was not asked about it yet.
        """
        if step == 0:
            return []
        course = self.run_parts.course
        appended = step in course.starts and course.leg_at(step) >= len(course.legs) - len(self.config.appended)
        fresh = self._untrained() if appended else None
        return [*self._read(step), *([] if fresh is None else self._read(0, fresh))]

    def turn(self, step: int) -> None:
        """Tell the learner of a new task."""
        if step in self.run_parts.course.starts:
            self.run_parts.train_state.learner.begin_task(self.run_parts.course.leg_at(step))

    def closing(self) -> list[Row]:
        """Every task read out after the last."""
        return self._read(self.run_parts.course.total)

    def record(self, ended: Ended) -> ContinualRecord:
        """The record, with its summary."""
        return ContinualRecord(
            folder=str(ended.folder),
            config=self.config,
            environment=ended.environment,
            summary=self._summary(ended),
            journal=ended.journal,
        )

    def pictures(self, record: ContinualRecord) -> Mapping[str, bytes]:
        """The matrix, each task over time, fast beside slow."""
        return pictures_of(record)

    def _untrained(self) -> Learner:
        """The learner before its first step, which the seed gives."""
        weights = next(self.run_parts.train_state.learner.parameters())
        return build_learner(self.config, weights.device, weights.dtype)

    def _read(self, done: int, learner: Learner | None = None) -> list[Row]:
        """Lines of the journal: every readout of every encoder after so many steps."""
        course = self.run_parts.course
        task, share = _moment(course, done)
        place = {"kind": "task-eval", "step": done, "epoch": course.epochs(done), "task": task, "share": share}
        learner = learner or self.run_parts.train_state.learner
        read = self._first_reading if done == 0 else self.reader.read
        return [
            {**place, "readout": readout, "encoder": clock, "accuracies": list(found)}
            for clock in clocks(self.config)
            for readout, found in read(learner.encoder(clock), task).items()
        ]

    def _first_reading(self, encoder: nn.Module, come: int) -> dict[Readout, Accuracies]:
        """The reading before anything is learned, which many runs of one process share."""
        reader = self.reader
        parts = [part for task in self.stream.tasks for part in (task.known, task.test)]
        rules = (come, reader.evaluation, reader.reading)
        return recalled(lambda: reader.read(encoder, come), reader.eye, parts, encoder, rules)

    def _summary(self, ended: Ended) -> ContinualSummary:
        config, tasks = self.config, self.stream.tasks
        readings = (
            read_matrix(ended.journal, readout, clock, len(tasks), self.reader.describe(readout))
            for clock in clocks(config)
            for readout in config.reading.readouts
        )
        return ContinualSummary(
            **ended.learned(self.run_parts, self._protocol()),
            tasks=tuple(task.name for task in tasks),
            images=tuple(len(task.train) for task in tasks),
            readings=tuple(readings),
        )

    def _protocol(self) -> str:
        """How it was learned, in words."""
        config, rate = self.config, self.config.optimization
        names = [task.name for task in self.stream.tasks]
        later = zip(names[len(names) - len(config.appended) :], config.appended, strict=True)
        appended = "".join(f", then {name} × {task.epochs} epochs" for name, task in later)
        warmup = f" after a warm-up of {rate.warmup_epochs:g} epochs" * bool(rate.warmup_epochs)
        planned = len(self.stream.tasks) - len(config.appended)
        return (
            f"{config.strategy}; {planned} tasks × {config.epochs_per_task} epochs{appended}, batch {config.batch}; "
            f"one optimizer, learning rate {config.peak_lr:g} {rate.schedule}{warmup}, anew with each task; weight "
            f"decay {rate.weight_decay:g}; seed {config.seed}, n = 1; forgetting: max as in the paper, diag as in "
            "UCL's code"
        )


def continual(config: ContinualConfig) -> Continual:
    """The programme of a run over a stream, or an error that says what can't be."""
    require_encoders(config)
    shop = workshop(config)
    tasks = stream(config)
    reader = Reader(stream=tasks, eye=shop.eye, evaluation=config.evaluation, reading=config.reading)
    course = _course(config, tasks, shop)
    keeps = config.memory.replay != "none"
    run_parts = RunParts(
        config=config,
        device=shop.precision.device,
        train_state=shop.train_state(),
        course=course,
        live=reader.live,
        bad_images=shop.eye.bad_images,
        data=fingerprints(tasks),
        memory=Replay(config.memory, course.legs[0].loader) if keeps else None,
    )
    return Continual(config=config, run_parts=run_parts, stream=tasks, reader=reader)


def require_encoders(config: ContinualConfig) -> None:
    """Refuse to read out a slow encoder that is not there."""
    if config.reading.encoders == "slow" and not has_slow(method(config.method)):
        raise UserError(
            f"'{config.method}' has no slow encoder to read out. Use --encoders every or fast, or a method that has "
            "one: x-phinet, byol, moco-v2, rm-simsiam."
        )


def clocks(config: ContinualConfig) -> tuple[EncoderName, ...]:
    """The encoders that are read out."""
    match config.reading.encoders:
        case "every":
            return ("fast", "slow") if has_slow(method(config.method)) else ("fast",)
        case clock:
            return (clock,)


def _course(config: ContinualConfig, tasks: Stream, shop: Workshop) -> RunSchedule:
    """One leg a task; those that were appended have their own number of passes."""
    legs: list[TaskSchedule] = []
    steps = passes = 0
    planned = len(tasks.tasks) - len(config.appended)
    epochs = [config.epochs_per_task] * planned + [task.epochs for task in config.appended]
    for number, (task, n) in enumerate(zip(tasks.tasks, epochs, strict=True), 1):
        if number > planned and len(task.train) < config.batch:
            raise UserError(
                f"the new task ({task.name}) gives {len(task.train)} training images, but each step of this run takes "
                f"{config.batch}. Give it that many at least."
            )
        loader = shop.loader(task.train.images, f"task {number} ({task.name})", steps, passes)
        legs.append(TaskSchedule(loader, shop.timetable(loader, n)))
        steps, passes = steps + legs[-1].timetable.total, passes + n
    return RunSchedule(tuple(legs))


def _moment(course: RunSchedule, done: int) -> tuple[int, float]:
    """Which task is being learned or has just been, counted from 1, and which share of it is done; 0 before any."""
    if done == 0:
        return 0, 0.0
    leg = course.leg_at(done - 1)
    return leg + 1, (done - course.starts[leg]) / (course.ends[leg] - course.starts[leg])


def read_matrix(
    journal: Iterable[Row], readout: Readout, clock: EncoderName, tasks: int, protocol: str
) -> AccuracyMatrix:
    """The accuracy matrix that the journal's readings at the ends of tasks make, and what follows from it."""
    rows: dict[int, Accuracies] = {}
    for row in journal:
        ours = row["kind"] == "task-eval" and (row["readout"], row["encoder"]) == (readout, clock)
        if ours and (row["task"] == 0 or row["share"] == 1):
            rows[row["task"]] = _padded(row["accuracies"], tasks)
    matrix = np.array([rows[t] for t in range(1, tasks + 1)], dtype=float)
    untrained = np.array(rows[0], dtype=float)
    return AccuracyMatrix(
        readout=readout,
        encoder=clock,
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


def _padded(found: list[float | None], tasks: int) -> Accuracies:
    """With None for tasks that nobody knew of yet."""
    return (*found, *[None] * (tasks - len(found)))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
