"""The journal of a run: one JSON object a line, in the order in which things happened."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from phinets.config.errors import UserError


class Tracker(Protocol):
    """A further place for the numbers."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Take a line of the journal."""

    def close(self) -> None:
        """Say that no more will come."""


class Journal:
    """metrics.jsonl, and the trackers that want to see each line."""

    def __init__(self, path: Path, trackers: tuple[Tracker, ...] = ()) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._trackers = trackers

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Append the rows and hand them to the system at once."""
        try:
            self._file.writelines(json.dumps(row) + "\n" for row in rows)
            self._file.flush()
        except OSError as error:
            raise UserError(f"'{self._file.name}' can't be written: {error.strerror}. Free some space.") from error
        for tracker in self._trackers:
            for row in rows:
                tracker.write(row)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        for tracker in self._trackers:
            tracker.close()


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The lines of a journal."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' is not a journal that can be read: {error}.") from error
