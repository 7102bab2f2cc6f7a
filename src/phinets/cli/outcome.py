"""What a command gives back: one document for machines, and how to show it to people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a command."""

    document: Any
    """What --json prints."""
    show: Callable[[Console], None]
    """Prints the same for a person."""
    exit_code: int = 0
    """What the command leaves with."""
