"""Sections of the page: scales with their targets, the list of runs, and the facts at the head."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from phinets.config.jobs import DynamicsJob, Result, RunJob
from phinets.config.plain import flat, to_plain, without
from phinets.config.run import FREE
from phinets.paper.findings import TargetResult
from phinets.reports.page.charts import Chart, Panels, curve_keys, learning_panels, lines, state_spaces
from phinets.reports.page.contents import Contents
from phinets.reports.page.tables import PageClaim, PageTable, anchor, claims, duration, number, state, tables
from phinets.reports.seeds import value_words


class TargetSection(NamedTuple):
    """The section of a target."""

    result: TargetResult
    anchor: str
    claims: tuple[PageClaim, ...]
    tables: tuple[PageTable, ...]
    charts: tuple[Chart, ...]
    """Lines over columns."""
    panels: tuple[Panels, ...]
    """Learning curves."""
    curves_above: bool
    """Whether all of its learning curves stand at targets above it."""
    spaces: tuple[Chart, ...]
    drawn_at: str
    """Where its state spaces stand: they are the same at every scale, and drawn once."""
    statements: tuple[tuple[str, dict[str, str]], ...]
    """The outcome of each statement on dynamics."""


class ScaleSection(NamedTuple):
    """The section of a scale."""

    name: str
    claims: tuple[PageClaim, ...]
    targets: tuple[TargetSection, ...]


def build_scales(results: Sequence[TargetResult]) -> list[ScaleSection]:
    """Each scale with its targets, in the order in which they come."""
    firsts = {each.target.name: anchor(each) for each in reversed(results)}
    sections = []
    for name, together in groupby(results, lambda each: each.scale.name):
        of = tuple(together)
        verdicts = claims(of)
        mine = {anchor(each): [claim for claim in verdicts if claim.at == anchor(each)] for each in of}
        drawn: set[str] = set()
        targets = tuple(_target(each, mine[anchor(each)], firsts[each.target.name], drawn) for each in of)
        sections.append(ScaleSection(name=name, claims=tuple(verdicts), targets=targets))
    return sections


def _target(target: TargetResult, verdicts: Sequence[PageClaim], first: str, drawn: set[str]) -> TargetSection:
    """`drawn` has the keys of the runs whose learning curves stand above, and gets its own."""
    kind, here = target.target.figure, anchor(target)
    derived = [result for result in target.results.values() if isinstance(result.job, DynamicsJob)]
    page_tables = tuple(tables(target))
    firsts = [table for table in page_tables if table.second_readout is None]
    keys = {key for table in firsts for cell in table.run_cells for key in curve_keys(cell)}
    curves = {key for key in keys if key in target.results and target.results[key].curves}
    above = bool(curves) and curves <= drawn and kind != "curves"
    drawn |= curves
    return TargetSection(
        result=target,
        anchor=here,
        claims=tuple(verdicts),
        tables=page_tables,
        charts=tuple(each for table in firsts for each in lines(table.result)) if kind == "lines" else (),
        panels=() if above else tuple(learning_panels(firsts, target.results, large=kind == "curves")),
        curves_above=above,
        spaces=tuple(state_spaces(target)) if kind == "dynamics" and here == first else (),
        drawn_at=first,
        statements=tuple(note for result in derived for note in result.notes.items()),
    )


SHORT_COMMIT = 9
DEFAULT_METRICS = ("knn", "linear", "spread", "ap", "ap50", "ap75")
"""Numbers of a run that no table uses."""


class PageRun(NamedTuple):
    """A line of the list of runs."""

    result: Result
    key: str
    apart: tuple[tuple[str, str], ...]
    """Settings in which it differs from most of its group."""
    numbers: tuple[tuple[str, str], ...]
    """Those that tables show."""
    uses: tuple[tuple[str, str], ...]
    """(anchor, name) of the targets that it counts for."""
    protocol: int | None
    """Which of the group's protocols, from 1."""
    machine: int | None
    """Which of the group's machines, from 1."""


class RunGroup(NamedTuple):
    """Runs of one kind on the same data at one scale."""

    name: str
    anchor: str
    shared: tuple[tuple[str, str], ...]
    """What most of them have: with what sets a run apart, its whole config."""
    protocols: tuple[str, ...]
    machines: tuple[str, ...]
    runs: tuple[PageRun, ...]


class Uses(NamedTuple):
    """What the page wants of results: the scale that they stand under, who asks them what."""

    scale: Mapping[str, str]
    targets: Mapping[str, tuple[tuple[str, str], ...]]
    measures: Mapping[str, tuple[str, ...]]


def collect_uses(targets: Iterable[TargetSection]) -> Uses:
    """By key."""
    scale: dict[str, str] = {}
    used: dict[str, dict[tuple[str, str], None]] = {}
    measures: dict[str, dict[str, None]] = {}
    for target in targets:
        for name in target.result.results:
            scale.setdefault(name, target.result.scale.name)
            used.setdefault(name, {})[target.anchor, target.result.target.name] = None
        for cell in (cell for table in target.tables for cell in table.run_cells):
            for name in cell.keys:
                measures.setdefault(name, {})[cell.result.cell.measure] = None
    return Uses(
        scale=scale,
        targets={name: tuple(every) for name, every in used.items()},
        measures={name: tuple(every) for name, every in measures.items()},
    )


def groups(results: Mapping[str, Result], uses: Uses) -> list[RunGroup]:
    """Every result in one group, in the order of the page."""
    together: dict[str, dict[str, Result]] = {}
    for name, result in results.items():
        data = f" on {result.job.run.data_names}" if isinstance(result.job, RunJob) else ""
        words = (uses.scale.get(name, ""), f"{result.job.kind}{data}")
        together.setdefault(", ".join(filter(None, words)), {})[name] = result
    return [_group(name, f"runs-{n}", of, uses) for n, (name, of) in enumerate(together.items(), 1)]


def _group(name: str, at: str, results: Mapping[str, Result], uses: Uses) -> RunGroup:
    settings = [_settings(result) for result in results.values()]
    shared = most_common_settings(settings)
    protocols = tuple(dict.fromkeys(result.protocol for result in results.values() if result.protocol))
    machines = tuple(dict.fromkeys(filter(None, map(machine, results.values()))))
    runs = [
        PageRun(
            result=result,
            key=key,
            apart=tuple((name, value_words(value)) for name, value in own.items() if value != shared.get(name)),
            numbers=_numbers(result, uses.measures.get(key, ())),
            uses=uses.targets.get(key, ()),
            protocol=protocols.index(result.protocol) + 1 if result.protocol else None,
            machine=machines.index(machine(result)) + 1 if machine(result) else None,
        )
        for (key, result), own in zip(results.items(), settings, strict=True)
    ]
    words = tuple((setting, value_words(value)) for setting, value in shared.items())
    return RunGroup(name=name, anchor=at, shared=words, protocols=protocols, machines=machines, runs=tuple(runs))


def most_common_settings(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The value that most have of each setting; of two that are as common, the one that came first."""
    common = {}
    for name in dict.fromkeys(name for own in settings for name in own):
        values = Counter(json.dumps(own.get(name), sort_keys=True) for own in settings)
        common[name] = json.loads(values.most_common(1)[0][0])
    return common


def machine(result: Result) -> str:
    """Versions and hardware of a result, in a line; empty where they are unknown."""
    of = result.environment
    values = {**of, **of.get("packages", {}), "on": of.get("device_name"), "system": of.get("platform")}
    order = ("phinets", "torch", "python", "on", "device", "precision", "threads", "system")
    return ", ".join(f"{word} {values[word]}" for word in order if values.get(word))


def _settings(result: Result) -> dict[str, Any]:
    """All that decides the result but the seed, dotted key → value."""
    plain = to_plain(result.job)
    if not isinstance(result.job, RunJob):
        return flat(plain)
    rest = {name: value for name, value in plain.items() if name != "run"}
    return flat({**without(to_plain(result.job.run.resolved), (*FREE, "seed")), **rest})


def _numbers(result: Result, uses: Sequence[str]) -> tuple[tuple[str, str], ...]:
    names = uses or DEFAULT_METRICS
    return tuple((name, number(result.numbers[name])) for name in names if result.numbers.get(name) is not None)


def facts(contents: Contents, results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """(what, value) for the head, in its order; unknown ones are left out."""
    environments = [result.environment for result in results.values() if result.environment]
    values = {
        "scale": _list(target.scale.name for target in contents.targets),
        "machine": _list(str(each.get("device_name") or each.get("device")) for each in environments),
        "phinets": _list(each.get("phinets") for each in environments),
        "commit": _list((each.get("commit") or "")[:SHORT_COMMIT] for each in environments),
        "written": "" if contents.dates is None else " to ".join(dict.fromkeys(contents.dates)),
        "computing time": duration(sum(result.seconds for result in results.values())),
    }
    return [(what, words) for what, words in values.items() if words]


def _list(words: Iterable[str | None]) -> str:
    """Each once, in the order in which they come."""
    return ", ".join(dict.fromkeys(filter(None, words)))


def counts(results: Mapping[str, Result], uses: Uses) -> list[tuple[str, int]]:
    """(word, how many): the results that are there, of them those that went wrong, and what is not there yet."""
    states = Counter(map(state, results.values()))
    return [
        ("run" if len(results) == 1 else "runs", len(results)),
        ("collapsed", states["collapsed"] + states["diverged"]),
        ("failed", states["failed"]),
        ("not run yet", len(uses.measures.keys() - results.keys())),
    ]
