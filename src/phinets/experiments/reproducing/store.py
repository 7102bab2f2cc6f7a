"""Results by key, one small file each: whole or not there, shared between machines by copying them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError
from phinets.config.result import Result, result_from_plain
from phinets.experiments.folder import write_json

RESULTS, WORK = "results", "work"


@dataclass(frozen=True, slots=True)
class Store:
    """A folder: `results/KEY.json` for what is done or has failed, `work/KEY/` for what is under way."""

    root: Path

    def result(self, key: str) -> Result | None:
        """What became of a piece of work; None where nothing did yet."""
        path = self.root / RESULTS / f"{key}.json"
        return read_result(path) if path.exists() else None

    def results(self, keys: Iterable[str]) -> dict[str, Result]:
        """What became of those that are done or have failed."""
        found = {key: self.result(key) for key in keys}
        return {key: result for key, result in found.items() if result is not None}

    def put(self, result: Result) -> None:
        """Keep a result, in place of an older one."""
        place = self.root / RESULTS
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"'{place}' can't be made: {error.strerror or error}. Choose another --store.") from error
        write_json(place / f"{result.key}.json", result.plain())

    def folder(self, key: str) -> Path:
        """Where a piece of work is under way."""
        return self.root / WORK / key


def read_result(path: Path) -> Result:
    """The result in a file."""
    try:
        return result_from_plain(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"'{path}' can't be read as a result: {error}. Take it away, and it is done anew.") from error
    except UserError as error:
        raise UserError(f"'{path}': {error} Take it away, and it is done anew.") from error
