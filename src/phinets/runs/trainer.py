"""Run a config: train, evaluate, save and record; start, resume, or append a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from signal import SIGTERM
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar, cast

from torch import Tensor

from phinets.backbones.weights import serialize_weights
from phinets.config.continual import AppendedTask, ContinualConfig
from phinets.config.errors import StoppedError, UserError
from phinets.config.plain import to_plain
from phinets.config.record import ContinualRecord, RunRecord
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.data import BadImage
from phinets.runs.continual import Continual
from phinets.runs.monitor import Monitor
from phinets.runs.pretrain import Pretrain
from phinets.runs.resume import (
    OptionNeededError,
    last_state,
    note_resumption,
    read_record,
    require_same_run,
    resumable_config,
    resume_command,
    run_identity,
    with_resume_hint,
)
from phinets.runs.setup import R, Row, RunKind, RunResult, resolve_config
from phinets.runtime import distributed
from phinets.runtime.distributed import enter_on_rank_zero, process_group
from phinets.runtime.environment import environment
from phinets.runtime.files import atomic_write, write_json
from phinets.runtime.process import OutputGuard, Signals
from phinets.training.checkpoint import Keeper, newest_checkpoint
from phinets.training.journal import Journal, open_journal
from phinets.training.loop import Loop, Pace, SlowdownWatch, StepReport
from phinets.training.run_folder import (
    BACKBONES,
    CHECKPOINTS,
    JOURNAL,
    OLD_SUMMARY,
    SUMMARY,
    claim_folder,
    lock_folder,
    require_free,
    run_folder,
    write_config,
    write_start,
)


class StepCallback(Protocol):
    """Receives the steps and messages of any training."""

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        """The newest `step` row."""

    def on_message(self, text: str) -> None:
        """A sentence for the user."""


class RunCallback(StepCallback, Protocol):
    """Receives training events; in a distributed run only the first process's is called."""

    def on_start(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Training starts, or resumes after `done` of its `steps`."""

    def on_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """An evaluation before, between or after the steps has written these rows."""

    def on_eval(self, row: Mapping[str, Any]) -> None:
        """The newest `eval` row."""


class Silent:
    """A callback that does nothing; a base for callbacks that need few of the events."""

    def on_start(self, *event: Any, **more: Any) -> None:
        """Nothing."""

    on_rows = on_step = on_eval = on_message = on_start


class BaseTrainer:
    """Drives a training loop: writes the journal and checkpoints, and stops on a signal."""

    loop: Loop
    journal: Journal
    identity: Mapping[str, Any]
    """What decides what is learned; a checkpoint stores it."""

    def __init__(self, folder: Path, signals: Signals, callback: StepCallback, start: float) -> None:
        """`start`: when this process began, by perf_counter."""
        self.folder = folder
        self.signals = signals
        self._step_callback = callback
        self._start = start
        self._seconds_before = 0.0
        self._slowdown = SlowdownWatch()

    def train(self, done: int) -> None:
        """Run the loop from step `done` to the end.

        Raises:
            StoppedError: a signal was received; the steps so far are saved.
        """
        if done and distributed.is_rank_zero():  # the process before may have been killed between writing and pruning
            self.loop.keeper.prune(done)
        with self.signals.deferred():
            done = self.loop.run(done)
        if self.loop.stopped:
            signal = self.signals.received or SIGTERM
            raise StoppedError(f"stopped by {signal.name} after step {done}", 128 + signal)

    # What the loop calls: see `training.loop.Driver`.

    def on_boundary(self, step: int) -> None:
        """Nothing: there is one task."""

    def on_steps(self, reports: Sequence[StepReport], pace: Pace) -> None:
        """Write the steps to the journal, each after the bad images of its batch."""
        rows: list[Row] = []
        for report in reports:
            rows += self.bad_rows(report.done, report.bad)
            rows.append({**self.row("step", report.done), **report.losses, "lr": report.lr})
        self.journal.write(rows)
        if any(report.bad for report in reports):
            self.require_few_bad_images()
        self._step_callback.on_step(rows[-1], pace)
        slowdown = self._slowdown(pace)
        if slowdown is not None:
            self._step_callback.on_message(slowdown)

    def evaluate(self, done: int, codes: Tensor) -> None:
        """Nothing is evaluated during training."""

    def save(self, done: int) -> None:
        """Write a checkpoint in the first process."""
        if not distributed.is_rank_zero():
            return
        pace, replay = self.loop.pace, self.loop.replay
        state = {
            **self.loop.train_state.state(),
            **({} if replay is None else {"replay": replay.state()}),
            "journal": self.journal.flush(),
            "run": dict(self.identity),
            "seconds": self.seconds,
            "pace": [pace.images, pace.seconds, pace.waited],
        }
        self.loop.keeper.save(done, state)

    def stop_requested(self) -> bool:
        """Whether this process has received a signal."""
        return self.signals.received is not None

    # What subclasses share.

    def bad_rows(self, done: int, bad: Sequence[BadImage] = ()) -> list[Row]:
        """A row for every bad image that was not reported yet."""
        return []

    def require_few_bad_images(self) -> None:
        """Raise an error where there are too many."""

    def row(self, kind: str, done: int) -> Row:
        """The start of a row of the journal."""
        return {"kind": kind, "step": done, "epoch": self.loop.schedule.epochs(done)}

    @property
    def seconds(self) -> float:
        """The duration so far, over all processes that have worked on it in turn."""
        return self._seconds_before + perf_counter() - self._start


class Trainer(BaseTrainer, Generic[R]):
    """Drives the training loop of one run: evaluates, writes the journal, saves, and records the result."""

    def __init__(
        self, kind: RunKind[R], folder: Path, env: dict[str, Any], signals: Signals, callback: RunCallback, start: float
    ) -> None:
        """`env`: the content of env.json; `start`: when this process began, by perf_counter."""
        super().__init__(folder, signals, callback, start)
        self.kind = kind
        self.run_parts = kind.run_parts
        self.identity = run_identity(kind.run_parts)
        self.env = env
        self.callback = callback

    def fit(self, state: dict[str, Any] | None = None) -> R:
        """Train from a checkpoint's state, or from the start; evaluate, and write the run's results."""
        run_parts, config = self.run_parts, self.run_parts.config
        done, self._seconds_before = (0, 0.0) if state is None else (state["step"], float(state["seconds"]))
        total, rank_zero = run_parts.schedule.total, distributed.is_rank_zero()
        self.callback.on_start(self.folder, config, total, done)
        path = self.folder / JOURNAL if rank_zero else None
        at = 0 if state is None else state["journal"]
        self.journal, self.past = open_journal(path, config.compute.log, lambda: to_plain(config), done, at)
        with self.journal:
            for note in _notes(config, run_parts.train_state.learner.batch_statistics, total):
                self.callback.on_message(note)
            self.loop = self._build_loop(state)
            if state is not None:
                run_parts.train_state.restore(state)
                if run_parts.replay is not None:
                    run_parts.replay.restore(state["replay"])
            self.train(done)
            return distributed.on_rank_zero(self._finish)

    def _build_loop(self, state: dict[str, Any] | None) -> Loop:
        run_parts, config = self.run_parts, self.run_parts.config
        schedule = run_parts.schedule
        known_bad = [BadImage(row["path"], row["why"]) for row in self.past if row["kind"] == "bad-image"]
        if known_bad:  # they were reported before the run was interrupted
            run_parts.bad_images.add(known_bad)
            run_parts.bad_images.drain()
        keeper = Keeper(
            self.folder / CHECKPOINTS,
            config.saving,
            schedule.tasks[0].lr.steps_per_epoch,
            permanent=config.permanent_checkpoints(schedule.ends),
        )
        return Loop(
            train_state=run_parts.train_state,
            schedule=schedule,
            driver=self,
            keeper=keeper,
            eval_every=config.evaluation.eval_every,
            eval_steps=config.evaluation.eval_steps(config.batch),
            boundaries=self.kind.boundaries,
            replay=run_parts.replay,
            pace=Pace() if state is None else Pace(*state["pace"]),
        )

    # What the loop calls: see `training.loop.Driver`.

    def on_boundary(self, step: int) -> None:
        """Evaluate at the boundary, then begin the next task where one begins."""
        rows = distributed.on_rank_zero(lambda: self.kind.evaluate_between(step))
        self.journal.write([*self.bad_rows(step), *rows])
        self.require_few_bad_images()
        self.callback.on_rows(rows)
        self.kind.begin_task(step)

    def evaluate(self, done: int, codes: Tensor) -> None:
        """Evaluate the learner in the first process and write the `eval` row."""
        metrics, explanation = self._monitor.evaluate(done, codes) if distributed.is_rank_zero() else ({}, None)
        if explanation is not None:
            self.callback.on_message(explanation)
        row = {**self.row("eval", done), "images": done * self.run_parts.config.batch, **metrics}
        self.journal.write([*self.bad_rows(done), row])
        self.require_few_bad_images()
        self.callback.on_eval(row)

    # The rest.

    @cached_property
    def _monitor(self) -> Monitor:
        return Monitor(self.kind, self.past)

    def bad_rows(self, done: int, bad: Sequence[BadImage] = ()) -> list[Row]:
        """A row and a message for every bad image that was not reported yet."""
        bad_images = self.run_parts.bad_images
        bad_images.add(bad)
        fresh = bad_images.drain()
        for path, why in fresh:
            self.callback.on_message(f"'{path}' can't be used and is skipped: {why}.")
        return [{**self.row("bad-image", done), "path": path, "why": why} for path, why in fresh]

    def require_few_bad_images(self) -> None:
        """Raise an error where there are too many."""
        distributed.on_rank_zero(self._require_few_here)

    def _require_few_here(self) -> None:
        bad_images = self.run_parts.bad_images
        try:
            bad_images.require_few()
        except UserError as error:
            enough = max(100, 10 * len(bad_images.reasons))  # more may follow
            raise OptionNeededError(str(error), f" --max-bad-images {enough}") from error

    def _finish(self) -> R:
        """Evaluate and write the results; the summary last, which marks the run as finished."""
        rows = self.kind.final_rows()
        self.journal.write([*self.bad_rows(self.run_parts.schedule.total), *rows])
        self._require_few_here()
        self.callback.on_rows(rows)
        self._save_encoders()
        journal = self.journal.read()
        common = {"folder": str(self.folder), "environment": self.env, "journal": journal}
        pace, seconds = self.loop.pace, self.seconds
        record = self.kind.record(RunResult(record_fields=common, journal=journal, pace=pace, seconds=seconds))
        if self.run_parts.config.saving.pictures:
            with report_drawing_errors(self.callback.on_message):
                for name, content in self.kind.figures(record).items():
                    atomic_write(self.folder / name, content)
        write_json(self.folder / SUMMARY, to_plain(record.summary))
        return record

    def _save_encoders(self) -> None:
        """Write each encoder's weights, with metadata that describes them."""
        config = self.run_parts.config
        about = {"method": config.method, "backbone": config.backbone, "views": config.views}
        about["image_size"] = str(config.source.image_size)
        for name, encoder in self.run_parts.saved_encoders.items():
            weights = {key: value.contiguous() for key, value in encoder.state_dict().items()}
            atomic_write(self.folder / BACKBONES[name], serialize_weights(weights, {**about, "encoder": name}))


@contextmanager
def report_drawing_errors(on_message: Callable[[str], None]) -> Iterator[None]:
    """Turn an error while drawing into a message: a figure must not keep a run from finishing."""
    try:
        yield
    except Exception as error:
        on_message(f"The figures can't be drawn ({type(error).__name__}: {error}). All results are complete.")


def _notes(config: TrainConfig, batch_statistics: Callable[[], list[str]], steps: int) -> list[str]:
    """What the user should know of the settings before training."""
    notes = []
    count = config.compute.accumulate
    affected = batch_statistics() if count > 1 else []
    if affected:
        notes.append(
            f"--accumulate {count}: {' and '.join(affected)} see{'s' * (len(affected) == 1)} {config.batch // count} "
            f"images at a time, not {config.batch}, so the result differs from that of the whole batch."
        )
    images = steps * config.batch
    counts = config.evaluation.unreached_evals(images)
    if counts:
        notes.append(f"--eval-at-images {' '.join(map(str, counts))} is beyond the run's {images:,} images: ignored.")
    return notes


C = TypeVar("C", PretrainConfig, ContinualConfig)


def run(
    config: PretrainConfig, out: Path | None = None, *, overwrite: bool = False, callback: RunCallback | None = None
) -> RunRecord:
    """Pretrain and evaluate an encoder. Under torchrun, every process calls this.

    Args:
        config: the run.
        out: the run folder; None: a new one under runs/.
        overwrite: whether an older run in the folder may be replaced.
        callback: receives training events.

    Returns:
        The record of the finished run.

    Raises:
        UserError: the config, the data or the folder can't be used; checked before the folder is created.
    """
    return _start(Pretrain.build, config, out, overwrite, callback)


def run_stream(
    config: ContinualConfig, out: Path | None = None, *, overwrite: bool = False, callback: RunCallback | None = None
) -> ContinualRecord:
    """Train on one task after the other and evaluate all tasks after each. Otherwise as `run`."""
    return _start(Continual.build, config, out, overwrite, callback)


def resume(folder: Path, wanted: PretrainConfig | None = None, *, callback: RunCallback | None = None) -> RunRecord:
    """Resume an interrupted run from its last checkpoint; it ends as if it had not been interrupted.

    Args:
        folder: the run folder.
        wanted: settings that may change compute and saving, not what is learned; None: the run's own.
        callback: receives training events.

    Returns:
        The record of the finished run; that of a run that was finished before is only read.

    Raises:
        UserError: the folder holds no such run, or `wanted` would change what is learned.
    """
    return _resume(Pretrain.build, PretrainConfig, folder, wanted, callback)


def resume_stream(
    folder: Path, wanted: ContinualConfig | None = None, *, callback: RunCallback | None = None
) -> ContinualRecord:
    """Resume a run over a stream of tasks. Otherwise as `resume`."""
    return _resume(Continual.build, ContinualConfig, folder, wanted, callback)


def append(
    folder: Path, task: AppendedTask, wanted: ContinualConfig | None = None, *, callback: RunCallback | None = None
) -> ContinualRecord:
    """Train a finished run over a stream on one more task, from its last checkpoint.

    Nothing is changed in the folder before the new data are checked; the older summary stays beside the new one.

    Args:
        folder: the run folder.
        task: the new task.
        wanted: settings that may change compute and saving, not what is learned; None: the run's own.
        callback: receives training events.

    Returns:
        The record of the longer run.

    Raises:
        UserError: the run is not finished, its checkpoints are missing, or the task's data can't be used.
    """
    with process_group():
        config = distributed.on_rank_zero(lambda: _finished_config(folder, wanted))
        longer = resolve_config(replace(config, appended=(*config.appended, task)))
        with enter_on_rank_zero(lock_folder(folder)):
            state, _ = distributed.on_rank_zero(lambda: newest_checkpoint(folder / CHECKPOINTS))
            if state is None:
                raise UserError(f"the checkpoints of '{folder}' are missing, so no task can be appended.")
            require_same_run(state, Continual.build(longer).run_parts)
            distributed.on_rank_zero(lambda: _reopen(folder, longer))
        return resume_stream(folder, callback=callback)


def _finished_config(folder: Path, wanted: ContinualConfig | None) -> ContinualConfig:
    config = resumable_config(ContinualConfig, folder, wanted)
    if read_record(folder) is None:
        raise UserError(
            f"the run in '{folder}' is not finished, so no task can be appended. Resume it first: "
            f"{resume_command(folder, config.command)}"
        )
    return config


def _reopen(folder: Path, longer: ContinualConfig) -> None:
    """Rename the summary, which marks the run as finished; only then may the config name more tasks."""
    (folder / SUMMARY).replace(folder / OLD_SUMMARY.format(len(longer.appended)))
    write_config(folder, longer)


def _start(
    build: Callable[[C], RunKind[R]], config: C, out: Path | None, overwrite: bool, callback: RunCallback | None
) -> R:
    start = perf_counter()
    with process_group(), Signals().handled() as signals:
        callback = cast(RunCallback, OutputGuard(callback if distributed.is_rank_zero() else None))
        distributed.on_rank_zero(lambda: require_free(out, overwrite))
        kind = build(resolve_config(config))
        folder = distributed.on_rank_zero(lambda: run_folder(out, config.method))
        parts = kind.run_parts
        with enter_on_rank_zero(claim_folder(folder, overwrite)), _resume_hint(config, folder):
            env = distributed.on_rank_zero(
                lambda: write_start(folder, parts.config, environment(parts.config.seed, parts.train_state.precision))
            )
            return Trainer(kind, folder, env, signals, callback, start).fit()


def _resume(
    build: Callable[[C], RunKind[R]],
    config_class: type[C],
    folder: Path,
    wanted: C | None,
    callback: RunCallback | None,
) -> R:
    start = perf_counter()
    with process_group(), Signals().handled() as signals:
        callback = cast(RunCallback, OutputGuard(callback if distributed.is_rank_zero() else None))
        config = distributed.on_rank_zero(lambda: resumable_config(config_class, folder, wanted))
        record = distributed.on_rank_zero(lambda: read_record(folder))
        if record is not None:
            return cast(R, record)
        with enter_on_rank_zero(lock_folder(folder)), _resume_hint(config, folder):
            state, refusals = distributed.on_rank_zero(lambda: last_state(folder))
            for reason in refusals:
                callback.on_message(f"{reason} The previous checkpoint is used.")
            if state is None:
                callback.on_message("The run was interrupted before its first checkpoint and starts again.")
            kind = build(config)
            if state is not None:
                require_same_run(state, kind.run_parts)
            step = 0 if state is None else state["step"]
            precision = kind.run_parts.train_state.precision
            env = distributed.on_rank_zero(
                lambda: note_resumption(folder, step, environment(config.seed, precision), config)
            )
            return Trainer(kind, folder, env, signals, callback, start).fit(state)


def _resume_hint(config: TrainConfig, folder: Path) -> AbstractContextManager[None]:
    count = config.compute.accumulate
    return with_resume_hint(
        folder,
        config.command,
        diverged=f"Start again with a lower learning rate (--lr {config.optimization.lr / 4:g}), a longer warm-up "
        "(--warmup-epochs), or --precision fp32.",
        out_of_memory=f"{config.backbone} with a batch of {config.batch} in {count} micro-batch{'es' * (count > 1)} "
        f"does not fit into memory. Use more micro-batches (--accumulate {2 * count}), half precision "
        f"(--precision bf16), or start again with a smaller batch (--batch {config.batch // 2}).",
    )
