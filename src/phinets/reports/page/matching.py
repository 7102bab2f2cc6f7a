"""Which results belong to which tables and figures: known by their keys, whatever the scale and the number of seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from phinets.config.result import Result
from phinets.config.work import Work, seed
from phinets.paper.findings import TargetFound, found
from phinets.paper.plan import Target, with_seeds
from phinets.paper.scales import Scale

MOST_SEEDS = 100
"""Seeds of targets count from 0; a result of a higher one belongs to none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Targets with what was found of them, and the keys that belong to no target at any scale."""

    found: tuple[TargetFound, ...]
    strangers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Belonging:
    """The results of one target at one scale."""

    target: Target
    scale: Scale
    """With the seeds that there are."""
    keys: frozenset[str]


def matched(
    results: Mapping[str, Result], targets: Iterable[Target], scales: Iterable[Scale], chosen: "Chosen"
) -> Matched:
    """What was found of the chosen targets at the chosen scales.

    Where no scale is chosen: all that a result belongs to alone. Some work is the same at several scales (statements on
    dynamics); where there is nothing else, the first of them. Where no target is chosen: all that have a result.
    """
    seeds = 1 + max((seed(r.work) for r in results.values() if seed(r.work) < MOST_SEEDS), default=0)
    every = [_belonging(target, scale, results, seeds) for scale in scales for target in targets]
    names = chosen.scales or _own_scales(every)
    shown = [
        each
        for each in every
        if each.scale.name in names and (each.target.name in chosen.targets if chosen.targets else each.keys)
    ]
    return Matched(
        found=tuple(found(each.target, each.scale, results) for each in shown),
        strangers=frozenset(results).difference(*(each.keys for each in every)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a person wants to see; empty: all that there is."""

    targets: Sequence[str] = ()
    scales: Sequence[str] = ()


def _belonging(target: Target, scale: Scale, results: Mapping[str, Result], seeds: int) -> _Belonging:
    works = target.works(with_seeds(scale, seeds))
    there: dict[str, Work] = {key: work for key, work in works.items() if key in results}
    fewest = 1 + max(map(seed, there.values()), default=scale.seeds - 1)
    return _Belonging(target=target, scale=with_seeds(scale, fewest), keys=frozenset(there))


def _own_scales(every: Sequence[_Belonging]) -> list[str]:
    """The scales that some result belongs to alone; if there are none, the first that any belongs to."""
    of: dict[str, set[str]] = {}
    for each in every:
        of.setdefault(each.scale.name, set()).update(each.keys)
    alone = [name for name, keys in of.items() if keys.difference(*(of[other] for other in of if other != name))]
    return alone or [name for name, keys in of.items() if keys][:1]
