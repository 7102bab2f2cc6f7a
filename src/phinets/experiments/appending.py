"""A task more for a run that was finished: learned from where it stood, as if it had been planned from the start."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from phinets import team
from phinets.config.continual import Appended, ContinualConfig
from phinets.config.errors import UserError
from phinets.config.record import ContinualRecord
from phinets.engine.checkpoint import newest_checkpoint
from phinets.engine.distributed import joined
from phinets.experiments.bench import settled
from phinets.experiments.continual import continual
from phinets.experiments.folder import CHECKPOINTS, SET_ASIDE, SUMMARY, write_config
from phinets.experiments.rescue import resume_command
from phinets.experiments.resuming import finished, require_same_run, resumable
from phinets.experiments.run import alone, resume_stream
from phinets.experiments.watching import Watcher


def append(
    folder: Path, task: Appended, wanted: ContinualConfig | None = None, *, watcher: Watcher | None = None
) -> ContinualRecord:
    """Go on with a finished run over a stream: one task more, from its last checkpoint, memory and all.

    `wanted` may change how it is computed and kept, not what is learned. Nothing is touched before the new data have
    proved good; the older summary stays beside the new one.
    """
    with joined():
        config = team.once(lambda: _finished_config(folder, wanted))
        longer = settled(replace(config, appended=(*config.appended, task)))
        with alone(folder):
            state = team.once(lambda: _last_state(folder))
            require_same_run(state, continual(longer).bench)
            team.once(lambda: _reopen(folder, longer))
        return resume_stream(folder, watcher=watcher)


def _finished_config(folder: Path, wanted: ContinualConfig | None) -> ContinualConfig:
    config = resumable(ContinualConfig, folder, wanted)
    if finished(folder) is None:
        raise UserError(
            f"the run in '{folder}' is not finished yet, so a task can't be appended. Go on with it first: "
            f"{resume_command(folder, config)}"
        )
    return config


def _last_state(folder: Path) -> dict[str, Any]:
    """A state to compare with; where the newest is torn, going on tells it and takes the one before."""
    state, _ = newest_checkpoint(folder / CHECKPOINTS)
    if state is None:
        raise UserError(f"the checkpoints of '{folder}' are gone, so there is nothing to append a task to.")
    return state


def _reopen(folder: Path, longer: ContinualConfig) -> None:
    """Put the summary aside, which says that the run is finished; only then may the config name more tasks."""
    (folder / SUMMARY).replace(folder / SET_ASIDE.format(len(longer.appended)))
    write_config(folder, longer)
