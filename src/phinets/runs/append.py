"""A task more for a run that was finished: learned from where it stood, as if it had been planned from the start."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from phinets.config.continual import Appended, ContinualConfig
from phinets.config.errors import UserError
from phinets.config.record import ContinualRecord, ContinualSummary, Summary
from phinets.config.run import TrainConfig
from phinets.runs.callbacks import RunCallback
from phinets.runs.continual import continual
from phinets.runs.setup import settled
from phinets.runs.trainer import alone, resume_stream
from phinets.runtime import distributed
from phinets.runtime.distributed import process_group
from phinets.training.checkpoint import newest_checkpoint
from phinets.training.run_folder import (
    CHECKPOINTS,
    SET_ASIDE,
    SUMMARY,
    write_config,
)

C = TypeVar("C", bound=TrainConfig)
S = TypeVar("S", Summary, ContinualSummary)
from phinets.runs.resume import finished, require_same_run, resumable, resume_command


def append(
    folder: Path, task: Appended, wanted: ContinualConfig | None = None, *, callback: RunCallback | None = None
) -> ContinualRecord:
    """Go on with a finished run over a stream: one task more, from its last checkpoint, memory and all.

    `wanted` may change how it is computed and kept, not what is learned. Nothing is touched before the new data have
    proved good; the older summary stays beside the new one.
    """
    with process_group():
        config = distributed.on_rank_zero(lambda: _finished_config(folder, wanted))
        longer = settled(replace(config, appended=(*config.appended, task)))
        with alone(folder):
            state = distributed.on_rank_zero(lambda: _last_state(folder))
            require_same_run(state, continual(longer).run_parts)
            distributed.on_rank_zero(lambda: _reopen(folder, longer))
        return resume_stream(folder, callback=callback)


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
