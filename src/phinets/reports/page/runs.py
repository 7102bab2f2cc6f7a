"""The runs behind the numbers: each listed once, beside those that are like it, with what sets it apart."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phinets.config.identity import FREE
from phinets.config.plain import flat, to_plain, without
from phinets.config.result import Result
from phinets.config.work import Deriving, kind, seed
from phinets.reports.page.tables import state
from phinets.reports.page.targets import TargetShown
from phinets.reports.page.writing import number
from phinets.reports.seeds import value_words

UNSAID = "–"
SHORT_COMMIT = 9
SAID_ALONE = ("knn", "linear", "spread", "ap", "ap50", "ap75")
"""Numbers that are told of a run that no table asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShown:
    """A line of the list of runs."""

    result: Result
    key: str
    seed: int
    apart: tuple[tuple[str, str], ...]
    """Settings in which it is not like most of its group."""
    numbers: tuple[tuple[str, str], ...]
    """Those that tables ask for."""
    used: tuple[tuple[str, str], ...]
    """(anchor, name) of the targets that it counts for."""
    state: str
    protocol: int | None
    """Which of the group's protocols, from 1."""
    made_with: int | None
    """Which of the group's machines, from 1."""

    @property
    def commit(self) -> str:
        """Of the code that made it, short."""
        return str(self.result.environment.get("commit") or UNSAID)[:SHORT_COMMIT]

    @property
    def device(self) -> str:
        """Where it was computed."""
        return str(self.result.environment.get("device") or UNSAID)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """Runs of one kind on the same data at one scale."""

    name: str
    anchor: str
    shared: tuple[tuple[str, str], ...]
    """What most of them have: with what sets a run apart, its whole config."""
    protocols: tuple[str, ...]
    machines: tuple[str, ...]
    runs: tuple[RunShown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What the page wants of results: the scale that they stand under, who asks them what."""

    scale: Mapping[str, str]
    targets: Mapping[str, tuple[tuple[str, str], ...]]
    health_metrics: Mapping[str, tuple[str, ...]]


def uses(targets: Iterable[TargetShown]) -> Uses:
    """By key."""
    scale: dict[str, str] = {}
    used: dict[str, dict[tuple[str, str], None]] = {}
    health_metrics: dict[str, dict[str, None]] = {}
    for target in targets:
        for name in target.found.results:
            scale.setdefault(name, target.found.scale.name)
            used.setdefault(name, {})[target.anchor, target.found.target.name] = None
        for cell in (cell for table in target.tables for cell in table.cells):
            for name in cell.keys:
                health_metrics.setdefault(name, {})[cell.found.cell.measure] = None
    return Uses(
        scale=scale,
        targets={name: tuple(every) for name, every in used.items()},
        health_metrics={name: tuple(every) for name, every in health_metrics.items()},
    )


def groups(results: Mapping[str, Result], asked: Uses) -> list[RunGroup]:
    """Every result in one group, in the order of the page."""
    together: dict[str, dict[str, Result]] = {}
    for name, result in results.items():
        data = "" if isinstance(result.work, Deriving) else f" on {result.work.run.learned_from}"
        words = (asked.scale.get(name, ""), f"{kind(result.work)}{data}")
        together.setdefault(", ".join(filter(None, words)), {})[name] = result
    return [_group(name, f"runs-{n}", of, asked) for n, (name, of) in enumerate(together.items(), 1)]


def _group(name: str, at: str, results: Mapping[str, Result], asked: Uses) -> RunGroup:
    settings = [_settings(result) for result in results.values()]
    shared = most_common(settings)
    protocols = tuple(dict.fromkeys(result.protocol for result in results.values() if result.protocol))
    machines = tuple(dict.fromkeys(filter(None, map(machine, results.values()))))
    runs = [
        RunShown(
            result=result,
            key=known,
            seed=seed(result.work),
            apart=tuple((name, value_words(value)) for name, value in own.items() if value != shared.get(name)),
            numbers=_numbers(result, asked.health_metrics.get(known, ())),
            used=asked.targets.get(known, ()),
            state=state(result),
            protocol=protocols.index(result.protocol) + 1 if result.protocol else None,
            made_with=machines.index(machine(result)) + 1 if machine(result) else None,
        )
        for (known, result), own in zip(results.items(), settings, strict=True)
    ]
    said = tuple((setting, value_words(value)) for setting, value in shared.items())
    return RunGroup(name=name, anchor=at, shared=said, protocols=protocols, machines=machines, runs=tuple(runs))


def most_common(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The value that most have of each setting; of two that are as common, the one that came first."""
    found = {}
    for name in dict.fromkeys(name for own in settings for name in own):
        counted = Counter(json.dumps(own.get(name), sort_keys=True) for own in settings)
        found[name] = json.loads(counted.most_common(1)[0][0])
    return found


def machine(result: Result) -> str:
    """What a result was made with, in a line; empty where it does not say."""
    made = result.environment
    if not made:
        return ""
    torch = made.get("packages", {}).get("torch")
    words = {
        "phinets": made.get("phinets"),
        "torch": torch,
        "python": made.get("python"),
        "on": made.get("device_name"),
        "device": made.get("device"),
        "precision": made.get("precision"),
        "threads": made.get("threads"),
        "system": made.get("platform"),
    }
    return ", ".join(f"{word} {said}" for word, said in words.items() if said)


def _settings(result: Result) -> dict[str, Any]:
    """All that decides the result but the seed, dotted key → value."""
    plain = to_plain(result.work)
    if isinstance(result.work, Deriving):
        return flat(plain)
    rest = {name: value for name, value in plain.items() if name != "run"}
    return flat({**without(to_plain(result.work.run.resolved), (*FREE, "seed")), **rest})


def _numbers(result: Result, asked: Sequence[str]) -> tuple[tuple[str, str], ...]:
    names = asked or SAID_ALONE
    return tuple((name, number(result.numbers[name])) for name in names if result.numbers.get(name) is not None)
