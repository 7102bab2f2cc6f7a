"""One run, from its config to its record; begun, or gone on with."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

from safetensors.torch import save
from torch import Tensor

from phinets.config.continual import ContinualConfig
from phinets.config.errors import StoppedError
from phinets.config.plain import to_plain
from phinets.config.record import ContinualRecord, RunRecord
from phinets.config.run import PretrainConfig
from phinets.data import BadImage
from phinets.runs.callbacks import RunCallback, Silent
from phinets.runs.continual import continual
from phinets.runs.monitor import Meter
from phinets.runs.pretrain import pretraining
from phinets.runs.resume import finished, identity, last_state, note_resumption, require_same_run, rescued, resumable
from phinets.runs.run_kind import Ended, Programme, R, Row
from phinets.runs.setup import RunParts, settled
from phinets.runtime import distributed
from phinets.runtime.distributed import process_group
from phinets.runtime.environment import environment
from phinets.runtime.files import atomic_write
from phinets.runtime.signals import Signals
from phinets.training.checkpoint import Keeper
from phinets.training.journal import Journal, open_trackers, read_journal
from phinets.training.loop import Loop, Pace
from phinets.training.run_folder import (
    BACKBONES,
    CHECKPOINTS,
    ENVIRONMENT,
    JOURNAL,
    SUMMARY,
    claim,
    locked,
    require_free,
    run_folder,
    write_config,
    write_json,
)


@dataclass(frozen=True)
class Session(Generic[R]):
    """One process at work on a run; in a team the first one judges, writes and speaks."""

    programme: Programme[R]
    folder: Path
    made_with: dict[str, Any]
    """env.json."""
    signals: Signals
    callback: RunCallback
    on_start: float
    """When, by perf_counter."""

    @property
    def run_parts(self) -> RunParts:
        """What the run is made of."""
        return self.programme.run_parts

    def carry_through(self, state: dict[str, Any] | None) -> R:
        """Go on from a checkpoint's state, or begin where there is none; train, judge and write."""
        done = 0 if state is None else state["step"]
        self.callback.on_start(self.folder, self.run_parts.config, self.run_parts.course.total, done)
        self._say_what_accumulation_changes()
        self._say_what_is_not_reached()
        with self._journal(state) as journal:
            past = read_journal(self.folder / JOURNAL) if distributed.is_rank_zero() else []
            loop = self._loop(journal, past, state)
            if state is None:
                baseline = distributed.on_rank_zero(self.programme.baseline)
                journal.write([*loop.bad_rows(0), *baseline])
                distributed.on_rank_zero(self.run_parts.bad_images.require_few)
                self.callback.judged(baseline)
            else:
                self._restore(state)
            with self.signals.deferred():
                done = loop.run(done)
            if loop.stopped:
                by = self.signals.received or SIGTERM
                raise StoppedError(f"stopped by {by.name} after step {done}", 128 + by)
            return distributed.on_rank_zero(lambda: self._finish(loop, state))

    def _restore(self, state: dict[str, Any]) -> None:
        self.run_parts.train_state.restore(state)
        if self.run_parts.memory is not None:
            self.run_parts.memory.restore(state["memory"])

    def _journal(self, state: dict[str, Any] | None) -> Journal:
        if not distributed.is_rank_zero():
            return Journal(None)
        names, done = self.run_parts.config.compute.log, 0 if state is None else state["step"]
        trackers = open_trackers(names, self.folder, to_plain(self.run_parts.config), done)
        return Journal(self.folder / JOURNAL, trackers, at=0 if state is None else state["journal"])

    def _loop(self, journal: Journal, past: list[Row], state: dict[str, Any] | None) -> Loop:
        run_parts = self.run_parts
        keeper = self._keeper()
        meter = Meter(run_parts, self.callback, (row for row in past if row["kind"] == "eval"))
        run_parts.bad_images.add(BadImage(row["path"], row["why"]) for row in past if row["kind"] == "bad-image")
        run_parts.bad_images.drain()  # they were said when they were met
        loop = Loop(
            train_state=run_parts.train_state,
            course=run_parts.course,
            journal=journal,
            bad_images=run_parts.bad_images,
            keeper=keeper,
            look=meter.look if distributed.is_rank_zero() else _look_away,
            save=lambda step: self._save(keeper, loop, step, self._seconds(state)),
            stop=lambda: self.signals.received is not None,
            callback=self.callback,
            every=run_parts.config.evaluation.eval_every,
            turns=self.programme.turns,
            turn=lambda step: self._turn(loop, step),
            memory=run_parts.memory,
            eval_at_images=run_parts.config.evaluation.eval_steps(run_parts.course.batch),
            pace=Pace() if state is None else Pace(*state["pace"]),
        )
        return loop

    def _keeper(self) -> Keeper:
        course, config = self.run_parts.course, self.run_parts.config
        return Keeper(
            self.folder / CHECKPOINTS,
            config.saving,
            course.legs[0].loader.steps_per_epoch,
            lasting=config.lasting(course.ends),
        )

    def _turn(self, loop: Loop, step: int) -> None:
        """Judge what the last steps have changed, and turn to the next task where one begins."""
        rows = distributed.on_rank_zero(lambda: self.programme.between(step))
        loop.journal.write([*loop.bad_rows(step), *rows])
        distributed.on_rank_zero(self.run_parts.bad_images.require_few)
        self.callback.judged(rows)
        self.programme.turn(step)

    def _save(self, keeper: Keeper, loop: Loop, step: int, seconds: float) -> None:
        if distributed.is_rank_zero():
            pace = [loop.pace.images, loop.pace.seconds, loop.pace.waited]
            run = {"run": identity(self.run_parts), "seconds": seconds, "pace": pace}
            memory = {} if self.run_parts.memory is None else {"memory": self.run_parts.memory.state()}
            keeper.save(
                step, {**self.run_parts.train_state.state(), **memory, "journal": loop.journal.settled(), **run}
            )

    def _seconds(self, state: dict[str, Any] | None) -> float:
        """How long the run has taken so far, over all sessions."""
        before = 0.0 if state is None else state["seconds"]
        return float(before) + perf_counter() - self.on_start

    def _say_what_accumulation_changes(self) -> None:
        config = self.run_parts.config
        parts = config.compute.accumulate
        touched = self.run_parts.train_state.learner.batch_statistics() if parts > 1 else []
        if touched:
            self.callback.on_message(
                f"--accumulate {parts}: {' and '.join(touched)} see{'s' * (len(touched) == 1)} {config.batch // parts} "
                f"images at a time, not {config.batch}, so this run is not the one with the whole batch."
            )

    def _say_what_is_not_reached(self) -> None:
        images = self.run_parts.course.total * self.run_parts.course.batch
        counts = self.run_parts.config.evaluation.unreached_evals(images)
        if counts:
            lies = "lies beyond" if len(counts) == 1 else "lie beyond"
            are = "is" if len(counts) == 1 else "are"
            self.callback.on_message(
                f"--eval-at-images {' '.join(map(str, counts))} {lies} the run's {images:,} images and {are} not reached."
            )

    def _finish(self, loop: Loop, state: dict[str, Any] | None) -> R:
        """Judge what was learned, and write what a run leaves behind; the summary last, which says it is finished."""
        last = self.programme.closing()
        loop.journal.write([*loop.bad_rows(self.run_parts.course.total), *last])
        self.run_parts.bad_images.require_few()
        self.callback.judged(last)
        self._keep_backbones()
        ended = Ended(
            folder=self.folder,
            environment=self.made_with,
            journal=read_journal(self.folder / JOURNAL),
            pace=loop.pace,
            seconds=self._seconds(state),
        )
        record = self.programme.record(ended)
        drawn = self.programme.pictures(record) if self.run_parts.config.saving.pictures else {}
        for name, picture in drawn.items():
            atomic_write(self.folder / name, picture)
        write_json(self.folder / SUMMARY, to_plain(record.summary))
        return record

    def _keep_backbones(self) -> None:
        """The encoders' weights, each in a file that says what it is."""
        config = self.run_parts.config
        said = {"method": config.method, "backbone": config.backbone, "views": config.views}
        for clock, encoder in self.run_parts.kept.items():
            weights = {name: value.contiguous() for name, value in encoder.state_dict().items()}
            metadata = {**said, "image_size": str(config.source.image_size), "encoder": clock}
            atomic_write(self.folder / BACKBONES[clock], save(weights, metadata))


def _look_away(codes: Tensor) -> Mapping[str, Any]:
    return {}


C = TypeVar("C", PretrainConfig, ContinualConfig)


def run(
    config: PretrainConfig, out: Path | None = None, *, overwrite: bool = False, callback: RunCallback | None = None
) -> RunRecord:
    """Pretrain as `config` says, judge, and leave everything in the run folder.

    Whatever can be found wrong is found before the folder is made. Under torchrun every process calls this.
    """
    return _begun(pretraining, config, out, overwrite, callback)


def run_stream(
    config: ContinualConfig, out: Path | None = None, *, overwrite: bool = False, callback: RunCallback | None = None
) -> ContinualRecord:
    """Learn one task after the other as `config` says, read out all of them after each, and leave everything."""
    return _begun(continual, config, out, overwrite, callback)


def resume(folder: Path, wanted: PretrainConfig | None = None, *, callback: RunCallback | None = None) -> RunRecord:
    """Go on with a run from its last checkpoint, to the very end that it would have had.

    `wanted` may change how it is computed and kept, not what is learned. A run that is finished is only read.
    """
    return _gone_on(pretraining, PretrainConfig, folder, wanted, callback)


def resume_stream(
    folder: Path, wanted: ContinualConfig | None = None, *, callback: RunCallback | None = None
) -> ContinualRecord:
    """The same for a run over a stream, in the middle of a task or between two."""
    return _gone_on(continual, ContinualConfig, folder, wanted, callback)


def _begun(
    programme_of: Callable[[C], Programme[R]],
    config: C,
    out: Path | None,
    overwrite: bool,
    callback: RunCallback | None,
) -> R:
    on_start = perf_counter()
    with process_group(), Signals().heeded() as signals:
        folder = distributed.on_rank_zero(lambda: run_folder(out, config.method))
        distributed.on_rank_zero(lambda: require_free(folder, overwrite))
        programme = programme_of(settled(config))
        with alone(folder):
            distributed.on_rank_zero(lambda: claim(folder, overwrite))
            with rescued(config, folder):
                made_with = distributed.on_rank_zero(lambda: _begin(programme.run_parts, folder))
                return Session(programme, folder, made_with, signals, _one_voice(callback), on_start).carry_through(
                    None
                )


def _gone_on(
    programme_of: Callable[[C], Programme[R]],
    kind: type[C],
    folder: Path,
    wanted: C | None,
    callback: RunCallback | None,
) -> R:
    on_start = perf_counter()
    with process_group(), Signals().heeded() as signals:
        callback = _one_voice(callback)
        config = distributed.on_rank_zero(lambda: resumable(kind, folder, wanted))
        record = distributed.on_rank_zero(lambda: finished(folder))
        if record is not None:
            return cast(R, record)
        with alone(folder), rescued(config, folder):
            state, refused = distributed.on_rank_zero(lambda: last_state(folder))
            for reason in refused:
                callback.on_message(f"{reason} The one before it is used.")
            if state is None:
                callback.on_message("The run was cut before its first checkpoint, and begins anew.")
            programme = programme_of(config)
            if state is not None:
                require_same_run(state, programme.run_parts)
            step = 0 if state is None else state["step"]
            made_with = distributed.on_rank_zero(
                lambda: note_resumption(folder, step, _environment(programme.run_parts), config)
            )
            return Session(programme, folder, made_with, signals, callback, on_start).carry_through(state)


def _begin(run_parts: RunParts, folder: Path) -> dict[str, Any]:
    """What a run folder holds before the first step; the config first, which makes it one."""
    made_with = _environment(run_parts)
    write_config(folder, run_parts.config)
    write_json(folder / ENVIRONMENT, made_with)
    (folder / CHECKPOINTS).mkdir(exist_ok=True)
    return made_with


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only team to work on a run; the first process holds the lock for all."""
    with ExitStack() as held:
        distributed.on_rank_zero(lambda: held.enter_context(locked(folder)))
        yield


def _one_voice(callback: RunCallback | None) -> RunCallback:
    return callback if callback is not None and distributed.is_rank_zero() else Silent()


def _environment(run_parts: RunParts) -> dict[str, Any]:
    return environment(run_parts.config.seed, run_parts.device, run_parts.train_state.precision.name)
