"""Who looks on while a run goes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from phinets.config.run import TrainConfig
from phinets.training.loop import LoopWatcher, Pace


class Watcher(LoopWatcher, Protocol):
    """Told of the loop's news, and of the beginning."""

    def began(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Training begins, or goes on after `done` of its `steps`."""

    def judged(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """What a judgement before, between or after the steps has written into the journal."""


class Silent:
    """A watcher that says nothing."""

    def began(self, folder: Path, config: TrainConfig, steps: int, done: int) -> None:
        """Nothing."""

    def judged(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Nothing."""

    def stepped(self, row: Mapping[str, Any], pace: Pace) -> None:
        """Nothing."""

    def looked(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def told(self, text: str) -> None:
        """Nothing."""
