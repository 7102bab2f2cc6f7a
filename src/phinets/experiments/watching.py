"""Who looks on while a run goes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from phinets.config.run import RunConfig
from phinets.engine.loop import LoopWatcher, Pace


class Watcher(LoopWatcher, Protocol):
    """Told of the loop's news, of the beginning, and of what a person should know."""

    def began(self, folder: Path, config: RunConfig, steps: int) -> None:
        """Training begins."""

    def told(self, text: str) -> None:
        """A sentence for a person."""


class Silent:
    """A watcher that says nothing."""

    def began(self, folder: Path, config: RunConfig, steps: int) -> None:
        """Nothing."""

    def stepped(self, row: Mapping[str, Any], pace: Pace) -> None:
        """Nothing."""

    def looked(self, row: Mapping[str, Any]) -> None:
        """Nothing."""

    def told(self, text: str) -> None:
        """Nothing."""
