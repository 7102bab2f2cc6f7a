"""What the page shows, as values, and which results belong to which table or figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from phinets.config.jobs import Job, Result
from phinets.paper.findings import TargetResult, target_result
from phinets.paper.plan import Target, with_seeds
from phinets.paper.scales import Scale

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

    found: tuple[TargetResult, ...] = ()
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


MAX_SEEDS = 100
"""Seeds of targets count from 0; a result of a higher one belongs to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Targets with what was found of them, and the keys that belong to no target at any scale."""

    found: tuple[TargetResult, ...]
    unmatched: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TargetResults:
    """The results of one target at one scale."""

    target: Target
    scale: Scale
    """With the seeds that there are."""
    keys: frozenset[str]


def match_results(
    results: Mapping[str, Result], targets: Iterable[Target], scales: Iterable[Scale], selection: "Selection"
) -> Match:
    """What was found of the chosen targets at the chosen scales.

    Where no scale is chosen: all that a result belongs to alone. Some work is the same at several scales (statements on
    dynamics); where there is nothing else, the first of them. Where no target is chosen: all that have a result.
    """
    seeds = 1 + max((r.job.seed for r in results.values() if r.job.seed < MAX_SEEDS), default=0)
    every = [_results_of(target, scale, results, seeds) for scale in scales for target in targets]
    names = selection.scales or _own_scales(every)
    shown = [
        each
        for each in every
        if each.scale.name in names and (each.target.name in selection.targets if selection.targets else each.keys)
    ]
    return Match(
        found=tuple(target_result(each.target, each.scale, results) for each in shown),
        unmatched=frozenset(results).difference(*(each.keys for each in every)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a person wants to see; empty: all that there is."""

    targets: Sequence[str] = ()
    scales: Sequence[str] = ()


def _results_of(target: Target, scale: Scale, results: Mapping[str, Result], seeds: int) -> _TargetResults:
    jobs = target.jobs(with_seeds(scale, seeds))
    there: dict[str, Job] = {key: job for key, job in jobs.items() if key in results}
    seeds = 1 + max((job.seed for job in there.values()), default=scale.seeds - 1)
    return _TargetResults(target=target, scale=with_seeds(scale, seeds), keys=frozenset(there))


def _own_scales(every: Sequence[_TargetResults]) -> list[str]:
    """The scales that some result belongs to alone; if there are none, the first that any belongs to."""
    of: dict[str, set[str]] = {}
    for each in every:
        of.setdefault(each.scale.name, set()).update(each.keys)
    alone = [name for name, keys in of.items() if keys.difference(*(of[other] for other in of if other != name))]
    return alone or [name for name, keys in of.items() if keys][:1]
