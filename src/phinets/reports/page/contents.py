"""What the page is made from: values, without a picture or a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from phinets.config.result import Result
from phinets.paper.findings import TargetFound

TITLE = "PhiNets, re-run"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRun:
    """A finished run of `phinets train` or `phinets continual`, with the folder that it lies in."""

    folder: str
    key: str
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All that the page shows."""

    found: tuple[TargetFound, ...] = ()
    """In the order of the page; those of one scale lie together."""
    own: tuple[OwnRun, ...] = ()
    others: Mapping[str, Result] = field(default_factory=dict)
    """Results by key that belong to no target that is shown."""
    unfinished: tuple[str, ...] = ()
    """Folders of runs that have not come to their end."""
    dates: tuple[str, str] | None = None
    """The first and the last day on which a result was written."""
    title: str = TITLE

    @property
    def results(self) -> dict[str, Result]:
        """Every result by key, each once."""
        of_targets = {key: result for found in self.found for key, result in found.results.items()}
        return of_targets | dict(self.others) | {run.key: run.result for run in self.own}
