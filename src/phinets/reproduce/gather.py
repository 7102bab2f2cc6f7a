"""Collect results: from stores of `phinets reproduce`, single files, and folders of ordinary runs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from phinets.config.errors import UserError
from phinets.config.jobs import Result
from phinets.reports.page.contents import OwnRun
from phinets.reproduce.store import RESULTS, read_result
from phinets.training.run_folder import CONFIG, SUMMARY

NAMED_BY_KEY = re.compile(r"[0-9a-f]{16}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The results in some places."""

    results: Mapping[str, Result]
    """By key, those of ordinary runs among them."""
    own: tuple[OwnRun, ...]
    unfinished: tuple[str, ...]
    dates: tuple[str, str] | None
    """The days on which the first and the last file was written."""


def gather(places: Iterable[Path]) -> Collection:
    """All results in some places.

    Of two results of the same job, one with numbers outweighs a failure; otherwise the one that is named first counts.
    """
    unique: dict[Path, Path] = {}
    for place in places:
        unique.setdefault(place.resolve(), place)
    folders = [place for place in unique.values() if (place / CONFIG).is_file()]
    finished_folders = [folder for folder in folders if (folder / SUMMARY).is_file()]
    own_results = {str(folder): own_result(folder) for folder in finished_folders}
    files = [path for place in unique.values() if place not in folders for path in _files(place)]
    results: dict[str, Result] = {}
    for result in (*map(read_result, files), *own_results.values()):
        other = results.get(result.key)
        if other is None or (other.failed is not None and result.failed is None):
            results[result.key] = result
    return Collection(
        results=results,
        own=tuple(OwnRun(folder=folder, key=result.key, result=result) for folder, result in own_results.items()),
        unfinished=tuple(str(folder) for folder in folders if folder not in finished_folders),
        dates=_dates([*files, *(folder / SUMMARY for folder in finished_folders)]),
    )


def own_result(folder: Path) -> Result:
    """A finished run of `phinets train` or `phinets continual` as the result of a job."""
    from phinets.config.jobs import ContinualJob, PretrainJob
    from phinets.config.record import ContinualRecord
    from phinets.reproduce.metrics import continual_result, run_result
    from phinets.runs.resume import read_record  # brings torch, which stores do without

    record = read_record(folder)
    assert record is not None, "it has a summary"
    if isinstance(record, ContinualRecord):
        return continual_result(ContinualJob(run=record.config), record)
    return run_result(PretrainJob(run=record.config), record)


def _files(place: Path) -> list[Path]:
    """The files that a place's results are in, in the order of their names."""
    if place.is_file():
        return [place]
    within = place / RESULTS if (place / RESULTS).is_dir() else place
    files = sorted(path for path in within.glob("*.json") if NAMED_BY_KEY.fullmatch(path.name))
    if not files and within == place:
        raise UserError(
            f"'{place}' {'holds no results' if place.is_dir() else 'does not exist'}. Name a store of `phinets "
            f"reproduce` (a folder with {RESULTS}/ in it), a result file, or the folder of a run (with {CONFIG})."
        )
    return files


def _dates(files: Iterable[Path]) -> tuple[str, str] | None:
    days = sorted(datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat() for path in files)
    return (days[0], days[-1]) if days else None
