"""The time that a process works on a run: from where it stands to its end, or until it is stopped."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from time import perf_counter
from typing import Any, Generic

from safetensors.torch import save
from torch import Tensor

from phinets import team
from phinets.config.errors import StoppedError
from phinets.config.plain import to_plain
from phinets.data import Bad
from phinets.engine.checkpoint import Keeper
from phinets.engine.files import write_whole
from phinets.engine.journal import Journal, read_journal
from phinets.engine.loop import Loop, Pace
from phinets.engine.signals import Signals
from phinets.engine.trackers import open_trackers
from phinets.experiments.bench import Bench
from phinets.experiments.folder import BACKBONES, CHECKPOINTS, JOURNAL, SUMMARY, write_json
from phinets.experiments.meter import Meter
from phinets.experiments.programme import Ended, Programme, R, Row
from phinets.experiments.resuming import identity
from phinets.experiments.watching import Watcher


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
            past = read_journal(self.folder / JOURNAL) if team.is_first() else []
            loop = self._loop(journal, past, state)
            if state is None:
                baseline = team.once(self.programme.baseline)
                journal.write([*loop.bad_rows(0), *baseline])
                team.once(self.bench.rejects.require_few)
                self.watcher.judged(baseline)
            else:
                self._restore(state)
            with self.signals.deferred():
                done = loop.run(done)
            if loop.stopped:
                by = self.signals.received or SIGTERM
                raise StoppedError(f"stopped by {by.name} after step {done}", 128 + by)
            return team.once(lambda: self._finish(loop, state))

    def _restore(self, state: dict[str, Any]) -> None:
        self.bench.trainee.restore(state)
        if self.bench.memory is not None:
            self.bench.memory.restore(state["memory"])

    def _journal(self, state: dict[str, Any] | None) -> Journal:
        if not team.is_first():
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
            look=meter.look if team.is_first() else _look_away,
            save=lambda step: self._save(keeper, loop, step, self._seconds(state)),
            stop=lambda: self.signals.received is not None,
            watcher=self.watcher,
            every=bench.config.judging.look_every,
            turns=self.programme.turns,
            turn=lambda step: self._turn(loop, step),
            memory=bench.memory,
            look_at=bench.config.judging.looked_at(bench.course.batch),
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
        rows = team.once(lambda: self.programme.between(step))
        loop.journal.write([*loop.bad_rows(step), *rows])
        team.once(self.bench.rejects.require_few)
        self.watcher.judged(rows)
        self.programme.turn(step)

    def _save(self, keeper: Keeper, loop: Loop, step: int, seconds: float) -> None:
        if team.is_first():
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
        counts = self.bench.config.judging.not_reached(images)
        if counts:
            lies = "lies beyond" if len(counts) == 1 else "lie beyond"
            are = "is" if len(counts) == 1 else "are"
            self.watcher.told(
                f"--look-at {' '.join(map(str, counts))} {lies} the run's {images:,} images and {are} not reached."
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
