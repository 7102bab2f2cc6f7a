"""The runs behind the numbers: each listed once, beside those that are like it, with what sets it apart."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phinets.config.identity import FREE
from phinets.config.plain import flat, to_plain, without
from phinets.config.result import Result
from phinets.config.work import Deriving, key, kind, seed
from phinets.reports.page.contents import Contents
from phinets.reports.page.tables import state
from phinets.reports.page.verdicts import anchor
from phinets.reports.page.writing import number, value_words

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
    measures: Mapping[str, tuple[str, ...]]


def uses(contents: Contents) -> Uses:
    """By key."""
    scale: dict[str, str] = {}
    targets: dict[str, dict[tuple[str, str], None]] = {}
    measures: dict[str, dict[str, None]] = {}
    for found in contents.found:
        for name in found.results:
            scale.setdefault(name, found.scale.name)
            targets.setdefault(name, {})[anchor(found), found.target.name] = None
        for cell in (cell.cell for table in found.tables for cell in table.cells):
            for work in cell.works:
                measures.setdefault(key(work), {})[cell.measure] = None
    return Uses(
        scale=scale,
        targets={name: tuple(every) for name, every in targets.items()},
        measures={name: tuple(every) for name, every in measures.items()},
    )


def groups(contents: Contents) -> list[RunGroup]:
    """Every result in one group, in the order of the page."""
    asked = uses(contents)
    together: dict[str, list[Result]] = {}
    for name, result in contents.results.items():
        data = "" if isinstance(result.work, Deriving) else f" on {result.work.run.learned_from}"
        words = (asked.scale.get(name, ""), f"{kind(result.work)}{data}")
        together.setdefault(", ".join(filter(None, words)), []).append(result)
    return [_group(name, f"runs-{n}", results, asked) for n, (name, results) in enumerate(together.items(), 1)]


def _group(name: str, at: str, results: Sequence[Result], asked: Uses) -> RunGroup:
    settings = [_settings(result) for result in results]
    shared = most_common(settings)
    protocols = tuple(dict.fromkeys(result.protocol for result in results if result.protocol))
    machines = tuple(dict.fromkeys(filter(None, map(machine, results))))
    runs = [
        RunShown(
            result=result,
            key=result.key,
            seed=seed(result.work),
            apart=tuple((name, value_words(value)) for name, value in own.items() if value != shared.get(name)),
            numbers=_numbers(result, asked),
            used=asked.targets.get(result.key, ()),
            state=state(result),
            protocol=protocols.index(result.protocol) + 1 if result.protocol else None,
            made_with=machines.index(machine(result)) + 1 if machine(result) else None,
        )
        for result, own in zip(results, settings, strict=True)
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


def _numbers(result: Result, asked: Uses) -> tuple[tuple[str, str], ...]:
    names: Iterable[str] = asked.measures.get(result.key, ()) or SAID_ALONE
    return tuple((name, number(result.numbers[name])) for name in names if result.numbers.get(name) is not None)
