"""TensorBoard and W&B, imported only when asked for."""

from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phinets.config.errors import UserError, look_up
from phinets.engine.journal import Tracker


def require_trackers(names: tuple[str, ...]) -> None:
    """Say what is not installed before anything is trained."""
    for name in names:
        if find_spec(name) is None:
            raise UserError(f"--log {name} needs {name}, which is not installed: pip install 'phinets[{name}]'.")


def open_trackers(names: tuple[str, ...], folder: Path, config: dict[str, Any], done: int = 0) -> tuple[Tracker, ...]:
    """The trackers called for; those of a run that goes on after `done` steps forget what they heard beyond them."""
    return tuple(look_up("tracker", name, TRACKERS)(folder, config, done) for name in names)


class TensorBoard:
    """Scalars for `tensorboard --logdir RUN`."""

    def __init__(self, folder: Path, config: dict[str, Any], done: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=done + 1)

    def write(self, row: Mapping[str, Any]) -> None:
        """Every number of the row under its own name."""
        for name, value in _numbers(row):
            self._writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Flush."""
        self._writer.close()


class WandB:
    """A run in the project `phinets` on Weights & Biases; its id stays in the run folder, so that it can go on."""

    def __init__(self, folder: Path, config: dict[str, Any], done: int) -> None:
        import wandb

        note = folder / "wandb" / "phinets-id"
        known = note.read_text().strip() if done and note.exists() else None
        self._run = wandb.init(
            project="phinets", name=folder.name, dir=str(folder), config=config, id=known, resume="allow"
        )
        note.parent.mkdir(exist_ok=True)
        note.write_text(self._run.id)

    def write(self, row: Mapping[str, Any]) -> None:
        """Every number of the row under its own name."""
        self._run.log(dict(_numbers(row)), step=row["step"])

    def close(self) -> None:
        """Send the rest."""
        self._run.finish()


TRACKERS: Mapping[str, Callable[[Path, dict[str, Any], int], Tracker]] = {"tensorboard": TensorBoard, "wandb": WandB}


def _numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    return ((k, v) for k, v in row.items() if isinstance(v, int | float) and k not in ("step", "epoch"))
