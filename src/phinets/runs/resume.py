"""Going on with a run: what of its settings may change, and what a checkpoint must agree with."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from phinets.config.continual import ContinualConfig
from phinets.config.errors import StoppedError, UserError
from phinets.config.identity import learned
from phinets.config.plain import differences, from_plain, to_plain
from phinets.config.record import ContinualRecord, ContinualSummary, RunRecord, Summary
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.runs.setup import RunParts, settled
from phinets.runtime import distributed
from phinets.runtime.devices import is_out_of_memory
from phinets.training.checkpoint import checkpoints, newest_checkpoint, set_aside
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
    write_json,
)

C = TypeVar("C", bound=TrainConfig)
S = TypeVar("S", Summary, ContinualSummary)


def resumable(kind: type[C], folder: Path, wanted: C | None) -> C:
    """The settings to go on with: the run's own or, where `wanted` changes nothing of what is learned, those."""
    if not (folder / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run to go on with: there is no {CONFIG} in it.")
    config = read_config_of(kind, folder / CONFIG)
    if wanted is None:
        return config
    wanted = settled(wanted)
    changed = differences(learned(config), learned(wanted))
    if changed:
        raise UserError(
            f"the run in '{folder}' was begun with other settings ({_listed(changed)}), and going on would mix two "
            f"runs. Leave them out, or begin another run with --config {folder / CONFIG} --out NEW."
        )
    return wanted


def last_state(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest checkpoint of a run that can be used, None where there is none; and why newer ones were refused.

    Those are set aside, so that they don't count among the ones that are kept.
    """
    try:
        (folder / CHECKPOINTS).mkdir(exist_ok=True)  # a run may be cut before it has one
    except OSError as error:
        raise UserError(f"'{folder / CHECKPOINTS}' can't be used for checkpoints: {error.strerror}.") from error
    state, refused = newest_checkpoint(folder / CHECKPOINTS)
    set_aside(refused)
    return state, list(refused.values())


def require_same_run(state: dict[str, Any], run_parts: RunParts) -> None:
    """Refuse a checkpoint of other settings or other data."""
    changed = differences(state["run"], _as_known_to(state["run"], run_parts))
    if changed:
        raise UserError(
            f"the settings or the data have changed since the checkpoint was made ({_listed(changed)}). Put them back, "
            f"or begin another run: --config {CONFIG} --out NEW."
        )


def identity(run_parts: RunParts) -> dict[str, Any]:
    """What decides what is learned, plain: the settings, and which data they led to."""
    return {**learned(run_parts.config), "images": run_parts.data}


def _as_known_to(before: dict[str, Any], run_parts: RunParts) -> dict[str, Any]:
    """The same without the tasks that were appended since: they changed nothing about what was learned before."""
    now = identity(run_parts)
    news = len(now.get("appended", ())) - len(before.get("appended", ()))
    if news <= 0:
        return now
    images = {name: said for name, said in now["images"].items() if name in before["images"]}
    return {**now, "appended": now["appended"][:-news], "images": images}


def finished(folder: Path) -> RunRecord | ContinualRecord | None:
    """The record of a run that has come to its end, or None."""
    if not (folder / SUMMARY).exists():
        return None
    config = read_config(folder / CONFIG)
    said: dict[str, Any] = {
        "folder": str(folder),
        "environment": _json(folder / ENVIRONMENT),
        "journal": read_journal(folder / JOURNAL),
    }
    if isinstance(config, ContinualConfig):
        return ContinualRecord(config=config, summary=_summary(ContinualSummary, folder), **said)
    assert isinstance(config, PretrainConfig)
    return RunRecord(config=config, summary=_summary(Summary, folder), **said)


def stream_record(folder: Path) -> ContinualRecord:
    """The record of a finished run over a stream, or an error that says what the folder holds instead."""
    if not (folder / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run: there is no {CONFIG} in it.")
    record = finished(folder)
    if record is None:
        raise UserError(f"the run in '{folder}' is not finished yet.")
    if not isinstance(record, ContinualRecord):
        raise UserError(f"the run in '{folder}' is on one body of images, not on a stream of tasks.")
    return record


def _summary(kind: type[S], folder: Path) -> S:
    try:
        return from_plain(kind, _json(folder / SUMMARY))
    except UserError as error:
        raise UserError(f"'{folder / SUMMARY}' is not a summary of this version of phinets: {error}") from error


def note_resumption(folder: Path, step: int, made_with: dict[str, Any], config: TrainConfig) -> dict[str, Any]:
    """Note in env.json after which step, with what and how else the run goes on; config.yaml takes the settings."""
    path = folder / ENVIRONMENT
    first = _json(path) if path.exists() else made_with
    changed = differences(to_plain(read_config(folder / CONFIG)), to_plain(config))
    settings = {key: there for key, (_, there) in changed.items()}
    entry = {"after_step": step, **_news(first, made_with), **({"settings": settings} if settings else {})}
    whole = {**first, "resumed": [*first.get("resumed", []), entry]}
    write_json(path, whole)
    write_config(folder, config)
    return whole


def _news(first: Mapping[str, Any], made_with: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from where the run began."""
    return {key: there for key, (_, there) in differences(dict(first), dict(made_with)).items() if key != "resumed"}


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read: {error}.") from error
    if not isinstance(found, dict):
        raise UserError(f"'{path}' should hold one JSON object, not {str(found)[:40]}.")
    return found


def _listed(changed: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{key} was {here} and is {there}" for key, (here, there) in changed.items())


LOST = re.compile(r"connection (was )?(closed|reset|refused)|broken pipe|gloo|nccl|timed out|peer", re.IGNORECASE)


@contextmanager
def rescued(config: TrainConfig, folder: Path) -> Iterator[None]:
    """Turn whatever may end a run from outside into one paragraph with the way on; bugs of ours stay tracebacks."""
    try:
        yield
    except distributed.RaisedOnRankZeroError:
        raise
    except DivergedError as error:
        raise DivergedError(f"The run has diverged: {error} {kept(folder)} {_gentler(config)}") from error
    except StoppedError as error:
        raise StoppedError(f"{error}. {way_on(folder, config)}", error.exit_code) from None
    except UserError as error:
        raise type(error)(f"{error} {way_on(folder, config)}") from error
    except (MemoryError, RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise UserError(f"{_out_of_memory(config)} {way_on(folder, config)}") from error
        if distributed.world_size() > 1 and LOST.search(str(error)):
            raise UserError(f"another process of this run is gone. {way_on(folder, config)}") from error
        raise


def kept(folder: Path) -> str:
    """What is safe."""
    found = checkpoints(folder / CHECKPOINTS)
    return f"Everything up to step {found[-1][0]} is kept." if found else "No checkpoint was made before."


def way_on(folder: Path, config: TrainConfig) -> str:
    """What is safe, and the command that goes on from there."""
    if not (folder / CONFIG).exists():
        return ""
    return f"{kept(folder)} Go on with: {resume_command(folder, config)}"


def resume_command(folder: Path, config: TrainConfig) -> str:
    """The command that goes on with a run."""
    program = (
        f"torchrun --nproc-per-node {distributed.world_size()} -m phinets"
        if distributed.world_size() > 1
        else "phinets"
    )
    return f"{program} {config.command} --resume {shlex.quote(str(folder))}"


def _gentler(config: TrainConfig) -> str:
    return (
        f"Begin anew with a lower learning rate (--lr {config.optimization.lr / 4:g}), a longer warm-up "
        "(--warmup-epochs), or --precision fp32."
    )


def _out_of_memory(config: TrainConfig) -> str:
    parts = config.compute.accumulate
    return (
        f"there is not enough memory for {config.backbone} with a batch of {config.batch} in {parts} "
        f"part{'s' * (parts > 1)}. Compute the batch in more parts (--accumulate {2 * parts}), use half precision "
        f"(--precision bf16), or begin anew with a smaller batch (--batch {config.batch // 2})."
    )
