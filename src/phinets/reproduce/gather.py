"""Results from wherever they lie: stores of `phinets reproduce`, single files, folders of ordinary runs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from phinets.config.errors import UserError
from phinets.config.result import Result
from phinets.reports.page.contents import OwnRun
from phinets.reproduce.store import RESULTS, read_result
from phinets.training.run_folder import CONFIG, SUMMARY

NAMED_BY_KEY = re.compile(r"[0-9a-f]{16}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What some places hold."""

    results: Mapping[str, Result]
    """By key, those of ordinary runs among them."""
    own: tuple[OwnRun, ...]
    unfinished: tuple[str, ...]
    dates: tuple[str, str] | None
    """The days on which the first and the last file was written."""


def gather(places: Iterable[Path]) -> Gathered:
    """All results in some places.

    Of two results of the same work, one with numbers counts before one that failed, else the one that is named first.
    """
    named = _each_once(places)
    folders = [place for place in named if (place / CONFIG).is_file()]
    done = [folder for folder in folders if (folder / SUMMARY).is_file()]
    own = [_own(folder) for folder in done]
    files = [path for place in named if place not in folders for path in _files(place)]
    results: dict[str, Result] = {}
    for name, result in ((r.key, r) for r in (*map(read_result, files), *(run.result for run in own))):
        if name not in results or (results[name].failed is not None and result.failed is None):
            results[name] = result
    return Gathered(
        results=results,
        own=tuple(own),
        unfinished=tuple(str(folder) for folder in folders if folder not in done),
        dates=_dates([*files, *(folder / SUMMARY for folder in done)]),
    )


def _each_once(places: Iterable[Path]) -> list[Path]:
    known: dict[Path, Path] = {}
    for place in places:
        known.setdefault(place.resolve(), place)
    return list(known.values())


def _own(folder: Path) -> OwnRun:
    result = own_result(folder)
    return OwnRun(folder=str(folder), key=result.key, result=result)


def own_result(folder: Path) -> Result:
    """A finished run of `phinets train` or `phinets continual` as the work that it is."""
    from phinets.config.record import ContinualRecord
    from phinets.config.work import Pretraining, Streaming
    from phinets.reproduce.metrics import of_run, of_stream
    from phinets.runs.resume import finished  # brings torch, which stores do without

    record = finished(folder)
    assert record is not None, "it has a summary"
    if isinstance(record, ContinualRecord):
        return of_stream(Streaming(run=record.config), record)
    return of_run(Pretraining(run=record.config), record)


def _files(place: Path) -> list[Path]:
    """The files that a place's results are in, in the order of their names."""
    if place.is_file():
        return [place]
    within = place / RESULTS if (place / RESULTS).is_dir() else place
    found = sorted(path for path in within.glob("*.json") if NAMED_BY_KEY.fullmatch(path.name))
    if not found and within == place:
        raise UserError(
            f"'{place}' {'holds no results' if place.is_dir() else 'is not there'}. Name a store of `phinets reproduce`"
            f" (a folder with {RESULTS}/ in it), a result's file, or the folder of a run (with {CONFIG} in it)."
        )
    return found


def _dates(files: Iterable[Path]) -> tuple[str, str] | None:
    days = sorted(datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat() for path in files)
    return (days[0], days[-1]) if days else None
