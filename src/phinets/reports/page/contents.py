"""The contents of the page, and which results belong to which table or figure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from phinets.config.jobs import Result
from phinets.paper.findings import TargetResult, target_result
from phinets.paper.plan import Target, with_seeds
from phinets.paper.scales import Scale

TITLE = "PhiNets, re-run"


class OwnRun(NamedTuple):
    """A finished run of `phinets train` or `phinets continual`, with its folder."""

    folder: str
    key: str
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """All that the page shows."""

    targets: tuple[TargetResult, ...] = ()
    """In the order of the page; those of one scale lie together."""
    own: tuple[OwnRun, ...] = ()
    others: Mapping[str, Result] = field(default_factory=dict)
    """Results by key that belong to no target that is shown."""
    unfinished: tuple[str, ...] = ()
    """Folders of runs that are not finished."""
    dates: tuple[str, str] | None = None
    """The first and the last day on which a result was written."""
    title: str = TITLE

    @property
    def results(self) -> dict[str, Result]:
        """Every result by key, each once."""
        of_targets = {key: result for target in self.targets for key, result in target.results.items()}
        return of_targets | dict(self.others) | {run.key: run.result for run in self.own}


MAX_SEEDS = 100
"""Seeds of targets count from 0; a result of a higher one belongs to none."""


class Match(NamedTuple):
    """Results of targets, and the keys that belong to no target at any scale."""

    targets: tuple[TargetResult, ...]
    unmatched: frozenset[str]


class _TargetKeys(NamedTuple):
    """The results of one target at one scale, which has the seeds that there are."""

    target: Target
    scale: Scale
    keys: frozenset[str]


def match_results(
    results: Mapping[str, Result],
    targets: Iterable[Target],
    scales: Iterable[Scale],
    target_names: Sequence[str] = (),
    scale_names: Sequence[str] = (),
) -> Match:
    """The results of the named targets at the named scales.

    Without scale names: all scales that a result belongs to alone. Some jobs are the same at several scales (statements
    on dynamics); where there are no others, the first of them. Without target names: all that have a result.
    """
    seeds = 1 + max((r.job.seed for r in results.values() if r.job.seed < MAX_SEEDS), default=0)
    every = [_target_keys(target, scale, results, seeds) for scale in scales for target in targets]
    scale_names = scale_names or _own_scales(every)
    return Match(
        targets=tuple(
            target_result(target, scale, results)
            for target, scale, keys in every
            if scale.name in scale_names and (target.name in target_names if target_names else keys)
        ),
        unmatched=frozenset(results).difference(*(each.keys for each in every)),
    )


def _target_keys(target: Target, scale: Scale, results: Mapping[str, Result], seeds: int) -> _TargetKeys:
    jobs = target.jobs(with_seeds(scale, seeds))
    there = {key: job for key, job in jobs.items() if key in results}
    seeds = 1 + max((job.seed for job in there.values()), default=scale.seeds - 1)
    return _TargetKeys(target=target, scale=with_seeds(scale, seeds), keys=frozenset(there))


def _own_scales(every: Sequence[_TargetKeys]) -> list[str]:
    """The scales that some result belongs to alone; if there are none, the first that any belongs to."""
    of: dict[str, set[str]] = {}
    for each in every:
        of.setdefault(each.scale.name, set()).update(each.keys)
    alone = [name for name, keys in of.items() if keys.difference(*(of[other] for other in of if other != name))]
    return alone or [name for name, keys in of.items() if keys][:1]
