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
from phinets.data import Bad
from phinets.runs.callbacks import Silent, Watcher
from phinets.runs.continual import continual
from phinets.runs.monitor import Meter
from phinets.runs.pretrain import pretraining
from phinets.runs.resume import finished, identity, last_state, note_resumption, require_same_run, rescued, resumable
from phinets.runs.run_kind import Ended, Programme, R, Row
from phinets.runs.setup import Bench, settled
from phinets.runtime import distributed
from phinets.runtime.distributed import process_group
from phinets.runtime.environment import environment
from phinets.runtime.files import write_whole
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
    watcher: Watcher
    began: float
    """When, by perf_counter."""

    @property
    def bench(self) -> Bench:
        """What the run is made of."""
        return self.programme.bench

    def carry_through(self, state: dict[str, Any] | None) -> R:
        """Go on from a checkpoint's state, or begin where there is none; train, judge and write."""
        done = 0 if state is None else state["step"]
        self.watcher.began(self.folder, self.bench.config, self.bench.course.total, done)
        self._say_what_accumulation_changes()
        self._say_what_is_not_reached()
        with self._journal(state) as journal:
            past = read_journal(self.folder / JOURNAL) if distributed.is_rank_zero() else []
            loop = self._loop(journal, past, state)
            if state is None:
                baseline = distributed.on_rank_zero(self.programme.baseline)
                journal.write([*loop.bad_rows(0), *baseline])
                distributed.on_rank_zero(self.bench.rejects.require_few)
                self.watcher.judged(baseline)
            else:
                self._restore(state)
            with self.signals.deferred():
                done = loop.run(done)
            if loop.stopped:
                by = self.signals.received or SIGTERM
                raise StoppedError(f"stopped by {by.name} after step {done}", 128 + by)
            return distributed.on_rank_zero(lambda: self._finish(loop, state))

    def _restore(self, state: dict[str, Any]) -> None:
        self.bench.trainee.restore(state)
        if self.bench.memory is not None:
            self.bench.memory.restore(state["memory"])

    def _journal(self, state: dict[str, Any] | None) -> Journal:
        if not distributed.is_rank_zero():
            return Journal(None)
        names, done = self.bench.config.compute.log, 0 if state is None else state["step"]
        trackers = open_trackers(names, self.folder, to_plain(self.bench.config), done)
        return Journal(self.folder / JOURNAL, trackers, at=0 if state is None else state["journal"])

    def _loop(self, journal: Journal, past: list[Row], state: dict[str, Any] | None) -> Loop:
        bench = self.bench
        keeper = self._keeper()
        meter = Meter(bench, self.watcher, (row for row in past if row["kind"] == "look"))
        bench.rejects.add(Bad(row["path"], row["why"]) for row in past if row["kind"] == "bad-image")
        bench.rejects.drain()  # they were said when they were met
        loop = Loop(
            trainee=bench.trainee,
            course=bench.course,
            journal=journal,
            rejects=bench.rejects,
            keeper=keeper,
            look=meter.look if distributed.is_rank_zero() else _look_away,
            save=lambda step: self._save(keeper, loop, step, self._seconds(state)),
            stop=lambda: self.signals.received is not None,
            watcher=self.watcher,
            every=bench.config.evaluation.eval_every,
            turns=self.programme.turns,
            turn=lambda step: self._turn(loop, step),
            memory=bench.memory,
            eval_at_images=bench.config.evaluation.eval_steps(bench.course.batch),
            pace=Pace() if state is None else Pace(*state["pace"]),
        )
        return loop

    def _keeper(self) -> Keeper:
        course, config = self.bench.course, self.bench.config
        return Keeper(
            self.folder / CHECKPOINTS,
            config.saving,
            course.legs[0].feed.steps_per_epoch,
            lasting=config.lasting(course.ends),
        )

    def _turn(self, loop: Loop, step: int) -> None:
        """Judge what the last steps have changed, and turn to the next task where one begins."""
        rows = distributed.on_rank_zero(lambda: self.programme.between(step))
        loop.journal.write([*loop.bad_rows(step), *rows])
        distributed.on_rank_zero(self.bench.rejects.require_few)
        self.watcher.judged(rows)
        self.programme.turn(step)

    def _save(self, keeper: Keeper, loop: Loop, step: int, seconds: float) -> None:
        if distributed.is_rank_zero():
            pace = [loop.pace.images, loop.pace.seconds, loop.pace.waited]
            run = {"run": identity(self.bench), "seconds": seconds, "pace": pace}
            memory = {} if self.bench.memory is None else {"memory": self.bench.memory.state()}
            keeper.save(step, {**self.bench.trainee.state(), **memory, "journal": loop.journal.settled(), **run})

    def _seconds(self, state: dict[str, Any] | None) -> float:
        """How long the run has taken so far, over all sessions."""
        before = 0.0 if state is None else state["seconds"]
        return float(before) + perf_counter() - self.began

    def _say_what_accumulation_changes(self) -> None:
        config = self.bench.config
        parts = config.compute.accumulate
        touched = self.bench.trainee.learner.batch_statistics() if parts > 1 else []
        if touched:
            self.watcher.told(
                f"--accumulate {parts}: {' and '.join(touched)} see{'s' * (len(touched) == 1)} {config.batch // parts} "
                f"images at a time, not {config.batch}, so this run is not the one with the whole batch."
            )

    def _say_what_is_not_reached(self) -> None:
        images = self.bench.course.total * self.bench.course.batch
        counts = self.bench.config.evaluation.unreached_evals(images)
        if counts:
            lies = "lies beyond" if len(counts) == 1 else "lie beyond"
            are = "is" if len(counts) == 1 else "are"
            self.watcher.told(
                f"--eval-at-images {' '.join(map(str, counts))} {lies} the run's {images:,} images and {are} not reached."
            )

    def _finish(self, loop: Loop, state: dict[str, Any] | None) -> R:
        """Judge what was learned, and write what a run leaves behind; the summary last, which says it is finished."""
        last = self.programme.closing()
        loop.journal.write([*loop.bad_rows(self.bench.course.total), *last])
        self.bench.rejects.require_few()
        self.watcher.judged(last)
        self._keep_backbones()
        ended = Ended(
            folder=self.folder,
            environment=self.made_with,
            journal=read_journal(self.folder / JOURNAL),
            pace=loop.pace,
            seconds=self._seconds(state),
        )
        record = self.programme.record(ended)
        drawn = self.programme.pictures(record) if self.bench.config.saving.pictures else {}
        for name, picture in drawn.items():
            write_whole(self.folder / name, picture)
        write_json(self.folder / SUMMARY, to_plain(record.summary))
        return record

    def _keep_backbones(self) -> None:
        """The encoders' weights, each in a file that says what it is."""
        config = self.bench.config
        said = {"method": config.method, "backbone": config.backbone, "views": config.views}
        for clock, encoder in self.bench.kept.items():
            weights = {name: value.contiguous() for name, value in encoder.state_dict().items()}
            metadata = {**said, "image_size": str(config.source.image_size), "encoder": clock}
            write_whole(self.folder / BACKBONES[clock], save(weights, metadata))


def _look_away(codes: Tensor) -> Mapping[str, Any]:
    return {}


C = TypeVar("C", PretrainConfig, ContinualConfig)


def run(
    config: PretrainConfig, out: Path | None = None, *, overwrite: bool = False, watcher: Watcher | None = None
) -> RunRecord:
    """Pretrain as `config` says, judge, and leave everything in the run folder.

    Whatever can be found wrong is found before the folder is made. Under torchrun every process calls this.
    """
    return _begun(pretraining, config, out, overwrite, watcher)


def run_stream(
    config: ContinualConfig, out: Path | None = None, *, overwrite: bool = False, watcher: Watcher | None = None
) -> ContinualRecord:
    """Learn one task after the other as `config` says, read out all of them after each, and leave everything."""
    return _begun(continual, config, out, overwrite, watcher)


def resume(folder: Path, wanted: PretrainConfig | None = None, *, watcher: Watcher | None = None) -> RunRecord:
    """Go on with a run from its last checkpoint, to the very end that it would have had.

    `wanted` may change how it is computed and kept, not what is learned. A run that is finished is only read.
    """
    return _gone_on(pretraining, PretrainConfig, folder, wanted, watcher)


def resume_stream(
    folder: Path, wanted: ContinualConfig | None = None, *, watcher: Watcher | None = None
) -> ContinualRecord:
    """The same for a run over a stream, in the middle of a task or between two."""
    return _gone_on(continual, ContinualConfig, folder, wanted, watcher)


def _begun(
    programme_of: Callable[[C], Programme[R]],
    config: C,
    out: Path | None,
    overwrite: bool,
    watcher: Watcher | None,
) -> R:
    began = perf_counter()
    with process_group(), Signals().heeded() as signals:
        folder = distributed.on_rank_zero(lambda: run_folder(out, config.method))
        distributed.on_rank_zero(lambda: require_free(folder, overwrite))
        programme = programme_of(settled(config))
        with alone(folder):
            distributed.on_rank_zero(lambda: claim(folder, overwrite))
            with rescued(config, folder):
                made_with = distributed.on_rank_zero(lambda: _begin(programme.bench, folder))
                return Session(programme, folder, made_with, signals, _one_voice(watcher), began).carry_through(None)


def _gone_on(
    programme_of: Callable[[C], Programme[R]],
    kind: type[C],
    folder: Path,
    wanted: C | None,
    watcher: Watcher | None,
) -> R:
    began = perf_counter()
    with process_group(), Signals().heeded() as signals:
        watcher = _one_voice(watcher)
        config = distributed.on_rank_zero(lambda: resumable(kind, folder, wanted))
        record = distributed.on_rank_zero(lambda: finished(folder))
        if record is not None:
            return cast(R, record)
        with alone(folder), rescued(config, folder):
            state, refused = distributed.on_rank_zero(lambda: last_state(folder))
            for reason in refused:
                watcher.told(f"{reason} The one before it is used.")
            if state is None:
                watcher.told("The run was cut before its first checkpoint, and begins anew.")
            programme = programme_of(config)
            if state is not None:
                require_same_run(state, programme.bench)
            step = 0 if state is None else state["step"]
            made_with = distributed.on_rank_zero(
                lambda: note_resumption(folder, step, _environment(programme.bench), config)
            )
            return Session(programme, folder, made_with, signals, watcher, began).carry_through(state)


def _begin(bench: Bench, folder: Path) -> dict[str, Any]:
    """What a run folder holds before the first step; the config first, which makes it one."""
    made_with = _environment(bench)
    write_config(folder, bench.config)
    write_json(folder / ENVIRONMENT, made_with)
    (folder / CHECKPOINTS).mkdir(exist_ok=True)
    return made_with


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only team to work on a run; the first process holds the lock for all."""
    with ExitStack() as held:
        distributed.on_rank_zero(lambda: held.enter_context(locked(folder)))
        yield


def _one_voice(watcher: Watcher | None) -> Watcher:
    return watcher if watcher is not None and distributed.is_rank_zero() else Silent()


def _environment(bench: Bench) -> dict[str, Any]:
    return environment(bench.config.seed, bench.device, bench.trainee.precision.name)
