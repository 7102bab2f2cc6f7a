"""Results by key, one small file each. Copy the files to share results between machines."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from phinets.config.errors import UserError
from phinets.config.jobs import Result, result_from_plain
from phinets.runtime.files import write_text

RESULTS, JOBS, LOCK = "results", "jobs", ".lock"
CHECKSUM = "sha256"
"""The entry of a result's file with the checksum of all others."""


class BusyError(Exception):
    """Another process is at the same job."""


@dataclass(frozen=True, slots=True)
class Store:
    """A folder: `results/KEY.json` of jobs that are done or failed, `jobs/KEY/` of jobs under way."""

    root: Path
    extra: tuple[Path, ...] = ()
    """Further stores whose results count as done; nothing is written there."""

    def result(self, key: str) -> Result | None:
        """The result of a job, None if there is none yet. A success in any of the stores outweighs a failure."""
        paths = [root / RESULTS / f"{key}.json" for root in (self.root, *self.extra)]
        candidates = [read_result(path) for path in paths if path.exists()]
        successes = [result for result in candidates if result.failed is None]
        return next(iter([*successes, *candidates]), None)

    def results(self, keys: Iterable[str]) -> dict[str, Result]:
        """The results of those jobs that have one."""
        results = {key: self.result(key) for key in keys}
        return {key: result for key, result in results.items() if result is not None}

    def put(self, result: Result) -> None:
        """Write a result; it replaces an older one."""
        plain = result.plain()
        text = json.dumps({**plain, CHECKSUM: _checksum(plain)}, ensure_ascii=False, separators=(",", ":"))
        write_text(_folder(self.root / RESULTS) / f"{result.key}.json", text)

    def forget(self, key: str) -> None:
        """Delete a result, so that the job runs again."""
        (self.root / RESULTS / f"{key}.json").unlink(missing_ok=True)

    def folder(self, key: str) -> Path:
        """The folder of a job under way."""
        return self.root / JOBS / key

    @contextmanager
    def lock(self, key: str, wait: bool) -> Iterator[None]:
        """Be the only process at a job. Where another one is, wait for it, or raise BusyError.

        The system releases the lock when a process dies. The lock's file is removed while the lock is held; a process
        that waited for it creates a new one.
        """
        path = _folder(self.root / JOBS) / f"{key}{LOCK}"
        lock = FileLock(path, timeout=-1 if wait else 0)
        try:
            lock.acquire()
        except Timeout:
            raise BusyError from None
        except OSError as error:
            raise UserError(f"'{path}' can't be locked: {error.strerror or error}. Choose another --store.") from error
        try:
            yield
        finally:
            with suppress(OSError):  # Windows keeps files that are open
                path.unlink(missing_ok=True)
            lock.release()


def read_result(path: Path) -> Result:
    """The result in a file, whose name must be the key of its job; files of older versions have no checksum.

    Raises:
        UserError: if the file is damaged, of another version, or renamed.
    """
    cure = "Delete it to run the job again."
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(plain, dict) and plain.pop(CHECKSUM, None) not in (None, _checksum(plain)):
            raise UserError("it is damaged or was changed by hand: its checksum is another.")
        result = result_from_plain(plain)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"'{path}' can't be read as a result: {error}. {cure}") from error
    except UserError as error:
        raise UserError(f"'{path}': {error} {cure}") from error
    if result.key != path.stem:
        raise UserError(
            f"'{path}' holds the result of another job: its key is {result.key}. The file was renamed or changed by "
            f"hand, or comes from another version of phinets. {cure}"
        )
    return result


def _checksum(plain: Any) -> str:
    """SHA-256 of a value as it is written, whatever the order of its entries."""
    return sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _folder(place: Path) -> Path:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{place}' can't be created: {error.strerror or error}. Choose another --store.") from error
    return place
