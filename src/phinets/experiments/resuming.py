"""Going on with a run: what of its settings may change, and what a checkpoint must agree with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phinets.config.errors import UserError
from phinets.config.plain import differences, from_plain, to_plain
from phinets.config.record import RunRecord, Summary
from phinets.config.run import RunConfig
from phinets.engine.checkpoint import newest_checkpoint
from phinets.engine.journal import read_journal
from phinets.experiments.bench import settled
from phinets.experiments.folder import CHECKPOINTS, CONFIG, ENVIRONMENT, JOURNAL, SUMMARY, read_config, write_json

FREE = ("compute", "saving", "source.max_bad_images", "source.root", "source.download")
"""Settings that say how a run is computed and kept, not what is learned: they may change on the way."""


def resumable(folder: Path, wanted: RunConfig | None) -> RunConfig:
    """The settings to go on with: the run's own or, where `wanted` changes nothing of what is learned, those."""
    if not (folder / CONFIG).exists():
        raise UserError(f"'{folder}' holds no run to go on with: there is no {CONFIG} in it.")
    config = read_config(folder / CONFIG)
    if wanted is None:
        return config
    changed = differences(identity(config), identity(settled(wanted)))
    if changed:
        raise UserError(
            f"the run in '{folder}' was begun with other settings ({_listed(changed)}), and going on would mix two "
            f"runs. Leave them out, or begin another run with --config {folder / CONFIG} --out NEW."
        )
    return settled(wanted)


def last_state(folder: Path, config: RunConfig) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest checkpoint of a run that can be used, None where there is none; and why newer ones were refused."""
    state, refused = newest_checkpoint(folder / CHECKPOINTS)
    changed = {} if state is None else differences(state["run"], identity(config))
    if changed:
        raise UserError(
            f"'{folder / CONFIG}' was changed after the checkpoint was made ({_listed(changed)}). Put it back, or "
            "begin another run with it: --config."
        )
    return state, refused


def identity(config: RunConfig) -> dict[str, Any]:
    """The settings that decide what is learned, plain."""
    plain = to_plain(config)
    for key in FREE:
        section, _, name = key.partition(".")
        if name:
            plain[section] = {k: v for k, v in plain[section].items() if k != name}
        else:
            del plain[section]
    return dict(plain)


def finished(folder: Path) -> RunRecord | None:
    """The record of a run that has come to its end, or None."""
    if not (folder / SUMMARY).exists():
        return None
    return RunRecord(
        folder=str(folder),
        config=read_config(folder / CONFIG),
        environment=_json(folder / ENVIRONMENT),
        summary=from_plain(Summary, _json(folder / SUMMARY)),
        journal=read_journal(folder / JOURNAL),
    )


def note_resumption(folder: Path, step: int, made_with: dict[str, Any]) -> dict[str, Any]:
    """Add to env.json from which step on, and with what, the run went on."""
    path = folder / ENVIRONMENT
    first = _json(path) if path.exists() else made_with
    resumed = [*first.get("resumed", []), {"after_step": step, **_news(first, made_with)}]
    whole = {**first, "resumed": resumed}
    write_json(path, whole)
    return whole


def _news(first: Mapping[str, Any], made_with: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from where the run began."""
    return {key: there for key, (_, there) in differences(dict(first), dict(made_with)).items() if key != "resumed"}


def _json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' can't be read: {error}.") from error


def _listed(changed: Mapping[str, tuple[Any, Any]]) -> str:
    return ", ".join(f"{key} was {here} and is {there}" for key, (here, there) in changed.items())
