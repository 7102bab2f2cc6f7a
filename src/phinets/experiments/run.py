"""One run, from its config to its record; begun, or gone on with."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

from phinets import team
from phinets.config.continual import ContinualConfig
from phinets.config.record import ContinualRecord, RunRecord
from phinets.config.run import RunConfig
from phinets.engine.distributed import joined
from phinets.engine.signals import Signals
from phinets.experiments.bench import Bench, settled
from phinets.experiments.continual import continual
from phinets.experiments.environment import environment
from phinets.experiments.folder import (
    CHECKPOINTS,
    ENVIRONMENT,
    claim,
    locked,
    require_free,
    run_folder,
    write_config,
    write_json,
)
from phinets.experiments.pretraining import pretraining
from phinets.experiments.programme import Programme, R
from phinets.experiments.rescue import rescued
from phinets.experiments.resuming import finished, last_state, note_resumption, require_same_run, resumable
from phinets.experiments.session import Session
from phinets.experiments.watching import Silent, Watcher

C = TypeVar("C", RunConfig, ContinualConfig)


def run(
    config: RunConfig, out: Path | None = None, *, overwrite: bool = False, watcher: Watcher | None = None
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


def resume(folder: Path, wanted: RunConfig | None = None, *, watcher: Watcher | None = None) -> RunRecord:
    """Go on with a run from its last checkpoint, to the very end that it would have had.

    `wanted` may change how it is computed and kept, not what is learned. A run that is finished is only read.
    """
    return _gone_on(pretraining, RunConfig, folder, wanted, watcher)


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
    with joined(), Signals().heeded() as signals:
        folder = team.once(lambda: run_folder(out, config.method))
        team.once(lambda: require_free(folder, overwrite))
        programme = programme_of(settled(config))
        with alone(folder):
            team.once(lambda: claim(folder, overwrite))
            with rescued(config, folder):
                made_with = team.once(lambda: _begin(programme.bench, folder))
                return Session(programme, folder, made_with, signals, _one_voice(watcher), began).carry_through(None)


def _gone_on(
    programme_of: Callable[[C], Programme[R]],
    kind: type[C],
    folder: Path,
    wanted: C | None,
    watcher: Watcher | None,
) -> R:
    began = perf_counter()
    with joined(), Signals().heeded() as signals:
        watcher = _one_voice(watcher)
        config = team.once(lambda: resumable(kind, folder, wanted))
        record = team.once(lambda: finished(folder))
        if record is not None:
            return cast(R, record)
        with alone(folder), rescued(config, folder):
            state, refused = team.once(lambda: last_state(folder))
            for reason in refused:
                watcher.told(f"{reason} The one before it is used.")
            if state is None:
                watcher.told("The run was cut before its first checkpoint, and begins anew.")
            programme = programme_of(config)
            if state is not None:
                require_same_run(state, programme.bench)
            step = 0 if state is None else state["step"]
            made_with = team.once(lambda: note_resumption(folder, step, _environment(programme.bench), config))
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
        team.once(lambda: held.enter_context(locked(folder)))
        yield


def _one_voice(watcher: Watcher | None) -> Watcher:
    return watcher if watcher is not None and team.is_first() else Silent()


def _environment(bench: Bench) -> dict[str, Any]:
    return environment(bench.config.seed, bench.device, bench.trainee.precision.name)
