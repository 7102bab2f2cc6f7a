"""Results by key, one small file each: whole or not there, shared between machines by copying them."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError
from phinets.config.result import Result, result_from_plain
from phinets.training.run_folder import write_text

try:
    import fcntl
except ImportError:  # Windows, where nobody is kept out
    fcntl = None  # type: ignore[assignment]

RESULTS, WORK, LOCK = "results", "work", ".lock"


class BusyError(Exception):
    """Another process is at the same work."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder: `results/KEY.json` for what is done or has failed, `work/KEY/` for what is under way."""

    root: Path
    also: tuple[Path, ...] = ()
    """Further stores whose results count as done; nothing is written there."""

    def result(self, key: str) -> Result | None:
        """What became of a piece of work; None where nothing did yet. What was done elsewhere outweighs a failure."""
        found = [read_result(path) for path in self._places(key) if path.exists()]
        done = [result for result in found if result.failed is None]
        return next(iter([*done, *found]), None)

    def results(self, keys: Iterable[str]) -> dict[str, Result]:
        """What became of those that are done or have failed."""
        found = {key: self.result(key) for key in keys}
        return {key: result for key, result in found.items() if result is not None}

    def put(self, result: Result) -> None:
        """Keep a result, in place of an older one."""
        place = _made(self.root / RESULTS)
        write_text(place / f"{result.key}.json", json.dumps(result.plain(), ensure_ascii=False, separators=(",", ":")))

    def forget(self, key: str) -> None:
        """Take a result away, so that the work is done again."""
        (self.root / RESULTS / f"{key}.json").unlink(missing_ok=True)

    def folder(self, key: str) -> Path:
        """Where a piece of work is under way."""
        return self.root / WORK / key

    @contextmanager
    def claimed(self, key: str, patient: bool) -> Iterator[None]:
        """Be the only one at a piece of work: wait for another (`patient`), or leave it to them with a BusyError.

        The system itself lets go when a process dies. The lock's file goes when the work is done, and whoever waited
        on a file that is gone tries the new one.
        """
        path = _made(self.root / WORK) / f"{key}{LOCK}"
        if fcntl is None:
            yield
            return
        handle = _held(path, patient)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(handle)

    def _places(self, key: str) -> Iterator[Path]:
        yield from (root / RESULTS / f"{key}.json" for root in (self.root, *self.also))


def read_result(path: Path) -> Result:
    """The result in a file, whose name must be the key of the work in it."""
    cure = "Take it away, and it is done anew."
    try:
        result = result_from_plain(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"'{path}' can't be read as a result: {error}. {cure}") from error
    except UserError as error:
        raise UserError(f"'{path}': {error} {cure}") from error
    if result.key != path.stem:
        raise UserError(
            f"'{path}' holds the result of other work than its name says: the key of what is in it is {result.key}. "
            f"It was renamed or changed by hand, or comes from another version of phinets. {cure}"
        )
    return result


def _made(place: Path) -> Path:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{place}' can't be made: {error.strerror or error}. Choose another --store.") from error
    return place


def _held(path: Path, patient: bool) -> int:
    """A handle on the lock's file, locked."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UserError(f"'{path}' can't be made: {error.strerror or error}. Choose another --store.") from error
        try:
            _lock(handle, patient)
        except BaseException:
            os.close(handle)
            raise
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            return handle
        os.close(handle)


def _lock(handle: int, patient: bool) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
    except BlockingIOError:
        raise BusyError from None
    except OSError:
        pass  # a file system that knows no locks keeps nobody out
