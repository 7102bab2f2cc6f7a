"""The folder of a run: its files, claiming and locking it, and its config file."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml

from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError
from phinets.config.methods import EncoderName
from phinets.config.plain import from_plain, to_plain
from phinets.config.run import PretrainConfig, TrainConfig
from phinets.runtime.files import is_remnant, write_json, write_text

try:
    import fcntl
except ImportError:  # Windows: no lock
    fcntl = None  # type: ignore[assignment]

C = TypeVar("C", bound=TrainConfig)

STREAM_KEYS = frozenset(field.name for field in fields(ContinualConfig)) - {
    field.name for field in fields(PretrainConfig)
}
"""Keys that only the config of a run over a stream has."""
OLD_KEYS = frozenset({"optimisation", "judging"})
"""Sections of a config that version 0.1 wrote under names that are no longer used."""
CONFIG = "config.yaml"
CHECKPOINTS = "checkpoints"
JOURNAL = "metrics.jsonl"
SUMMARY = "summary.json"
ENVIRONMENT = "env.json"
BACKBONES: Mapping[EncoderName, str] = {"fast": "backbone.safetensors", "slow": "backbone-slow.safetensors"}
OLD_SUMMARY = "summary-before-append-{}.json"
"""The summary before the n-th appended task."""
PICTURES = ("matrix.png", "tasks.png", "fast-slow.png")
"""The figures of a run over a stream."""
RUN_FILES = (
    CONFIG, ENVIRONMENT, JOURNAL, CHECKPOINTS, *BACKBONES.values(), "curves.png", *PICTURES, SUMMARY,
    "tensorboard", "wandb",
)  # fmt: skip
"""What a run writes, and all that --overwrite deletes."""


def run_folder(out: Path | None, method: str) -> Path:
    """The folder of a new run: `out`, or one that is created under runs/ for it alone, named by method and time."""
    if out is not None:
        return out
    stem = f"{method.replace('/', '-')}-{datetime.now():%Y%m%d-%H%M%S}"
    for path in (Path("runs", stem if i == 1 else f"{stem}-{i}") for i in range(1, 10_000)):
        with _write_errors(path):
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return path
    raise UserError(f"all names runs/{stem}-… are used. Choose another --out.")


def require_free(folder: Path | None, overwrite: bool, files: tuple[str, ...] = RUN_FILES) -> None:
    """Refuse a folder that is not empty, unless it holds an older run that may be overwritten.

    files: what a run of this kind writes; the first two, its config and its environment, mark the folder as its own.
    """
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file, but a run needs a folder. Choose another --out.")
    if not folder.exists() or all(map(is_remnant, folder.iterdir())):
        return
    if not all((folder / name).exists() for name in files[:2]):
        raise UserError(f"'{folder}' is not empty and holds no run of this kind. Choose another --out.")
    if not overwrite:
        raise UserError(f"'{folder}' already holds a run. Choose another --out, or use --overwrite to replace it.")


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"'{folder}' can't be written: {error.strerror or error}. Choose another --out.") from error


@contextmanager
def claim_folder(folder: Path, overwrite: bool, files: tuple[str, ...] = RUN_FILES) -> Iterator[None]:
    """Create and lock the folder of a new run, and delete an older run in it, its config last."""
    with lock_folder(folder):
        require_free(folder, overwrite, files)
        olds = (*folder.glob(OLD_SUMMARY.format("*")), *(folder / name for name in reversed(files)))
        _require_deletable(folder, [old for old in olds if old.is_dir()])  # before anything is deleted
        with _write_errors(folder):
            for old in olds:
                if old.is_dir():
                    shutil.rmtree(old)
                else:
                    old.unlink(missing_ok=True)
        yield


def _require_deletable(folder: Path, subfolders: list[Path]) -> None:
    """Refuse an older run that can't be deleted as a whole."""
    for path in (folder, *subfolders):
        if (path != folder and path.is_symlink()) or not os.access(path, os.W_OK | os.X_OK):
            raise UserError(f"--overwrite can't delete '{path}', a link or a read-only folder. Choose another --out.")


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a run folder; the system releases the lock when the process ends."""
    with _write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    try:
        if handle is not None:
            _lock(handle, folder)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"another process is working on the run in '{folder}'. Wait for it, or stop it.") from None
    except OSError:
        pass  # a file system without locks


def write_start(folder: Path, config: TrainConfig, env: dict[str, Any]) -> dict[str, Any]:
    """Write what a run folder holds before the first step, the config first; returns `env`."""
    write_config(folder, config)
    write_json(folder / ENVIRONMENT, env)
    (folder / CHECKPOINTS).mkdir(exist_ok=True)
    return env


def write_config(folder: Path, config: TrainConfig) -> None:
    """Write config.yaml: every field, so that --config repeats the run."""
    write_text(folder / CONFIG, yaml.safe_dump(to_plain(config), sort_keys=False, allow_unicode=True))


def read_config(path: Path) -> TrainConfig:
    """The run that a config file describes, of either kind; missing keys have their defaults."""
    plain = read_yaml(path)
    return _config(ContinualConfig if STREAM_KEYS & plain.keys() else PretrainConfig, plain, path)


def read_config_of(kind: type[C], path: Path) -> C:
    """The run of this kind that a config file describes."""
    plain = read_yaml(path)
    if kind is PretrainConfig and STREAM_KEYS & plain.keys():
        raise UserError(f"'{path}' describes a run over a stream of tasks. Use `phinets continual` with it.")
    if kind is ContinualConfig and "epochs" in plain:
        raise UserError(f"'{path}' describes a pretraining run. Use `phinets train` with it.")
    return _config(kind, plain, path)


class ConfigLoader(yaml.SafeLoader):
    """YAML with few aliases and little nesting, so that no small file describes a huge value."""

    depth = aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """One node."""
        self.depth += 1
        self.aliases += self.check_event(yaml.AliasEvent)
        if max(self.depth, self.aliases) > 20:
            raise yaml.YAMLError("it has more than 20 levels or aliases")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read_yaml(path: Path) -> dict[str, Any]:
    """The keys and values in a config file."""
    try:
        plain = yaml.load(path.read_text(encoding="utf-8"), ConfigLoader)
    except OSError as error:
        raise UserError(f"the config '{path}' can't be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: 2020-99-99, or an integer of 5,000 digits
        raise UserError(f"the config '{path}' is not YAML: {str(error)[:500]}.") from error

    if plain is not None and not isinstance(plain, dict):
        raise UserError(f"{path}: the config must have keys and values, not {repr(plain)[:80]}.")
    plain = plain or {}
    old = sorted(OLD_KEYS & plain.keys())
    if old:
        raise UserError(
            f"'{path}' was written by phinets 0.1, whose settings have other names ({', '.join(old)}). Its "
            ".safetensors files still load. Repeat the run with the new names: `phinets train --help` lists them."
        )
    return plain


def _config(kind: type[C], plain: dict[str, Any], path: Path) -> C:
    try:
        return from_plain(kind, plain)
    except UserError as error:
        raise UserError(f"{path}: {str(error)[:500]}") from error
