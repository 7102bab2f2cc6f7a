"""The folder of a run: claimed once, never taken from an older run unless told to, written whole or not at all."""

import json
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
from phinets.runtime.files import atomic_write, is_remnant

try:
    import fcntl
except ImportError:  # Windows, where nobody is kept out
    fcntl = None  # type: ignore[assignment]

C = TypeVar("C", bound=TrainConfig)

OF_STREAMS = frozenset(field.name for field in fields(ContinualConfig)) - {
    field.name for field in fields(PretrainConfig)
}
"""What only a run over a stream has in its config."""
CONFIG = "config.yaml"
CHECKPOINTS = "checkpoints"
JOURNAL = "metrics.jsonl"
SUMMARY = "summary.json"
ENVIRONMENT = "env.json"
BACKBONES: Mapping[EncoderName, str] = {"fast": "backbone.safetensors", "slow": "backbone-slow.safetensors"}
SET_ASIDE = "summary-before-append-{}.json"
"""The summary that a run had before its n-th appended task."""
PICTURES = ("matrix.png", "tasks.png", "fast-slow.png")
"""What a run over a stream draws beside its curves."""
RUN_FILES = (
    CONFIG, ENVIRONMENT, JOURNAL, CHECKPOINTS, *BACKBONES.values(), "curves.png", *PICTURES, SUMMARY,
    "tensorboard", "wandb",
)  # fmt: skip
"""What a run leaves, and what overwriting it takes away: nothing else."""


def run_folder(out: Path | None, method: str) -> Path:
    """Where a run goes: `out`, or a new name under runs/ made of the method and the time."""
    if out is not None:
        return out
    stem = f"{method.replace('/', '-')}-{datetime.now():%Y%m%d-%H%M%S}"
    names = (stem if i == 1 else f"{stem}-{i}" for i in range(1, 10_000))
    return next(path for path in map(Path("runs").joinpath, names) if not path.exists())


def require_free(folder: Path, overwrite: bool) -> None:
    """Refuse a folder that holds something, unless it is an older run that may go."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"'{folder}' is a file, but a run needs a folder. Choose another --out.")
    if not folder.exists() or all(map(is_remnant, folder.iterdir())):
        return
    if not all((folder / name).exists() for name in (CONFIG, ENVIRONMENT)):
        raise UserError(f"'{folder}' is not empty and does not hold a run, so it is left alone. Choose another --out.")
    if not overwrite:
        raise UserError(f"'{folder}' already holds a run. Choose another --out, or say --overwrite to replace it.")


def claim(folder: Path, overwrite: bool) -> None:
    """Make the folder, and take an older run out of it, its config last."""
    require_free(folder, overwrite)
    try:
        for old in (*folder.glob(SET_ASIDE.format("*")), *(folder / name for name in reversed(RUN_FILES))):
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{folder}' can't be written: {error.strerror or error}. Choose another --out.") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Be the only one to work on a run; the system itself lets go when a process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY) if fcntl is not None else None
    except OSError as error:
        raise UserError(f"'{folder}' can't be written: {error.strerror or error}. Choose another --out.") from error
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
        pass  # a file system that knows no locks keeps nobody out


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    atomic_write(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    """A JSON file, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_config(folder: Path, config: TrainConfig) -> None:
    """config.yaml: every field, so that the command's --config repeats the run."""
    write_text(folder / CONFIG, yaml.safe_dump(to_plain(config), sort_keys=False, allow_unicode=True))


def read_config(path: Path) -> TrainConfig:
    """The run that a config file describes, of whatever kind; what it does not say keeps its default."""
    plain = _yaml(path)
    return _config(ContinualConfig if OF_STREAMS & plain.keys() else PretrainConfig, plain, path)


def read_config_of(kind: type[C], path: Path) -> C:
    """The run of this kind that a config file describes, or an error that names the command for the other kind."""
    plain = _yaml(path)
    if kind is PretrainConfig and OF_STREAMS & plain.keys():
        raise UserError(f"'{path}' describes a run over a stream of tasks. Use `phinets continual` with it.")
    if kind is ContinualConfig and "epochs" in plain:
        raise UserError(f"'{path}' describes a run on one body of images. Use `phinets train` with it.")
    return _config(kind, plain, path)


def _yaml(path: Path) -> dict[str, Any]:
    try:
        plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"the config '{path}' can't be read: {error.strerror or error}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"the config '{path}' is not YAML: {error}.") from error
    if plain is not None and not isinstance(plain, dict):
        raise UserError(f"{path}: at the top of the config there should be keys and values, not {plain!r}.")
    return plain or {}


def _config(kind: type[C], plain: dict[str, Any], path: Path) -> C:
    try:
        return from_plain(kind, plain)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
