"""Who looks on while a run goes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from phinets.config.run import TrainConfig
from phinets.training.loop import LoopCallback, Pace


class RunCallback(LoopCallback, Protocol):
    """Told of the loop's news, and of the beginning."""

    def on_start(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Training begins, or goes on after `done` of its `steps`."""

    def judged(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """What a judgement before, between or after the steps has written into the journal."""


class Silent:
    """A watcher that says nothing."""

    def on_start(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Nothing."""

    def judged(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Nothing."""

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        """Nothing."""

    def on_eval(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def on_message(self, text: str) -> None:
        """Nothing."""
