"""Resume a run: which settings may change, what a checkpoint must agree with, and the hint after an interruption."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from phinets.config.continual import ContinualConfig
from phinets.config.errors import StoppedError, UserError
from phinets.config.plain import differences, from_plain, to_plain
from phinets.config.record import ContinualRecord, ContinualSummary, RunRecord, Summary
from phinets.config.run import PretrainConfig, TrainConfig, learning_settings
from phinets.runs.setup import RunParts, resolve_config
from phinets.runtime import distributed
from phinets.runtime.devices import is_out_of_memory
from phinets.runtime.files import write_json
from phinets.training.checkpoint import NoCheckpointError, checkpoints, newest_checkpoint, rename_refused
from phinets.training.journal import read_journal
from phinets.training.loop import DivergedError
from phinets.training.run_folder import (
    CHECKPOINTS,
    CONFIG,
    ENVIRONMENT,
    JOURNAL,
    SUMMARY,
    read_config,
    read_config_of,
    write_config,
)

C = TypeVar("C", bound=TrainConfig)
S = TypeVar("S")


def resumable_config(kind: type[C], folder: Path, wanted: C | None) -> C:
    """The settings to resume with: the run's own, or `wanted` where it changes nothing of what is learned."""
    if not (folder / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run to resume: it has no {CONFIG}.")
    config = read_config_of(kind, folder / CONFIG)
    if wanted is None:
        return config
    wanted = resolve_config(wanted)
    changed = differences(learning_settings(config), learning_settings(wanted))
    if changed:
        raise UserError(
            f"the run in '{folder}' has other settings ({describe_changes(changed)}). Leave these options out, or "
            f"start another run with --config {folder / CONFIG} --out NEW."
        )
    return wanted


STATE = frozenset({"step", "learner", "optimizer", "scaler", "journal", "run", "seconds", "pace"})
"""What every checkpoint of a run holds."""


def last_state(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest usable checkpoint, None without one; and why newer ones were refused, which are renamed."""
    try:
        (folder / CHECKPOINTS).mkdir(exist_ok=True)  # a run may be interrupted before it has one
    except OSError as error:
        raise UserError(f"'{folder / CHECKPOINTS}' can't be used for checkpoints: {error.strerror}.") from error
    state, refused = newest_checkpoint(folder / CHECKPOINTS)
    missing = () if state is None else STATE - state.keys()
    if missing:
        raise UserError(f"the newest checkpoint in '{folder / CHECKPOINTS}' has no {', '.join(sorted(missing))}.")
    rename_refused(refused)
    return state, list(refused.values())


def require_same_run(state: dict[str, Any], run_parts: RunParts) -> None:
    """Refuse a checkpoint of other settings or other data."""
    changed = differences(state["run"], _without_new_tasks(state["run"], run_parts))
    if changed:
        raise UserError(
            f"the settings or the data have changed since the checkpoint ({describe_changes(changed)}). Restore them, "
            f"or start another run: --config {CONFIG} --out NEW."
        )


def run_identity(run_parts: RunParts) -> dict[str, Any]:
    """What decides what is learned, as plain values: settings and checksums of the data."""
    return {**learning_settings(run_parts.config), "images": run_parts.fingerprint}


def _without_new_tasks(before: dict[str, Any], run_parts: RunParts) -> dict[str, Any]:
    """The run's identity without tasks that were appended later: they change nothing about earlier tasks."""
    now = run_identity(run_parts)
    news = len(now.get("appended", ())) - len(before.get("appended", ()))
    if news <= 0:
        return now
    images = {name: checksum for name, checksum in now["images"].items() if name in before["images"]}
    return {**now, "appended": now["appended"][:-news], "images": images}


def read_record(folder: Path) -> RunRecord | ContinualRecord | None:
    """The record of a finished run, or None."""
    if not (folder / SUMMARY).exists():
        return None
    config = read_config(folder / CONFIG)
    common: dict[str, Any] = {
        "folder": str(folder),
        "environment": read_json(folder / ENVIRONMENT),
        "journal": read_journal(folder / JOURNAL),
    }
    if isinstance(config, ContinualConfig):
        return ContinualRecord(config=config, summary=read_summary(ContinualSummary, folder / SUMMARY), **common)
    assert isinstance(config, PretrainConfig)
    return RunRecord(config=config, summary=read_summary(Summary, folder / SUMMARY), **common)


def stream_record(folder: Path) -> ContinualRecord:
    """The record of a finished run over a stream of tasks."""
    if not (folder / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run: it has no {CONFIG}.")
    record = read_record(folder)
    if record is None:
        raise UserError(f"the run in '{folder}' is not finished.")
    if not isinstance(record, ContinualRecord):
        raise UserError(f"the run in '{folder}' is a pretraining run, not one over a stream of tasks.")
    return record


def read_summary(kind: type[S], path: Path) -> S:
    """The summary in a file."""
    try:
        return from_plain(kind, read_json(path))
    except UserError as error:
        raise UserError(f"'{path}' can't be read by this version of phinets: {error}") from error


def note_resumption(folder: Path, step: int, env: dict[str, Any], config: TrainConfig) -> dict[str, Any]:
    """Note in env.json after which step and with which changes the run resumes; config.yaml gets the new settings."""
    path = folder / ENVIRONMENT
    first = read_json(path) if path.exists() else env
    changed = differences(to_plain(read_config(folder / CONFIG)), to_plain(config))
    settings = {key: there for key, (_, there) in changed.items()}
    machine = {key: there for key, (_, there) in differences(first, env).items() if key != "resumed"}
    entry = {"after_step": step, **machine, **({"settings": settings} if settings else {})}
    before = first.get("resumed", [])
    if not isinstance(before, list):
        raise UserError(f"'{path}' is damaged: 'resumed' should be a list. Restore or delete the file.")
    whole = {**first, "resumed": [*before, entry]}
    write_json(path, whole)
    write_config(folder, config)
    return whole


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"'{path}' can't be read: {error}.") from error
    if not isinstance(value, dict):
        raise UserError(f"'{path}' should hold one JSON object, not {str(value)[:40]}.")
    return value


def describe_changes(changed: Mapping[str, tuple[Any, Any]]) -> str:
    """Settings that have changed, in words."""
    return ", ".join(f"{key} was {here} and is {there}" for key, (here, there) in changed.items())


LOST_CONNECTION = re.compile(
    r"connection (was )?(closed|reset|refused)|broken pipe|gloo|nccl|timed out|peer", re.IGNORECASE
)


class OptionNeededError(UserError):
    """The run can be resumed, but only with this further option."""

    def __init__(self, text: str, option: str = "") -> None:
        super().__init__(text)
        self.option = option


@contextmanager
def with_resume_hint(
    folder: Path, command: str, *, diverged: str, out_of_memory: str, config: str = CONFIG, learner: str = ""
) -> Iterator[None]:
    """Turn whatever may end a run from outside into one paragraph that says how to resume; bugs keep their traceback.

    `diverged` and `out_of_memory` say what to do then. A folder without the file `config` holds no run. `learner` is
    the folder of the learner's checkpoints within the run folder, where there are several learners.
    """
    saved = folder / learner / CHECKPOINTS

    def hint(option: str = "") -> str:
        if not (folder / config).exists():
            return ""
        return f"{_last_checkpoint(saved)} Resume with: {resume_command(folder, command)}{option}"

    try:
        yield
    except distributed.RaisedOnRankZeroError:
        raise
    except NoCheckpointError as error:
        raise UserError(f"{error} Repeat the run: --config {folder / config} --out NEW.") from error
    except DivergedError as error:
        raise DivergedError(f"The run has diverged: {error} {_last_checkpoint(saved)} {diverged}") from error
    except StoppedError as error:
        raise StoppedError(f"{error}. {hint()}", error.exit_code) from None
    except UserError as error:
        raise type(error)(f"{error} {hint(getattr(error, 'option', ''))}") from error
    except (MemoryError, RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise UserError(f"{out_of_memory} {hint()}") from error
        if isinstance(error, OSError) and error.filename is not None:
            raise UserError(f"'{error.filename}' can't be used: {error.strerror}. {hint()}") from error
        if distributed.world_size() > 1 and LOST_CONNECTION.search(str(error)):
            raise UserError(f"another process of this run has ended. {hint()}") from error
        raise


def _last_checkpoint(folder: Path) -> str:
    saved = checkpoints(folder)
    return f"Everything up to step {saved[-1][0]} is saved." if saved else "No checkpoint was written before."


def resume_command(folder: Path, command: str) -> str:
    """The command line that resumes a run."""
    size = distributed.world_size()
    program = f"torchrun --nproc-per-node {size} -m phinets" if size > 1 else "phinets"
    return f"{program} {command} --resume {shlex.quote(str(folder))}"
