"""A small target, and results for it, made by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

from phinets.config.jobs import Health, PretrainJob, Result
from phinets.config.run import PretrainConfig
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Claim, Rule
from phinets.paper.scales import SCALES

POCKET, SMOKE = SCALES["pocket"], SCALES["smoke"]
Numbers = Mapping[tuple[str, str], Sequence[float | None]]


def cell(row: str, column: str, seeds: int = 3, chance: float | None = None) -> Cell:
    """Its runs differ from those of all other places in their learning rate."""
    rate = 0.01 + crc32(f"{row}/{column}".encode()) / 2**32
    run = replace(PretrainConfig(), optimization=replace(PretrainConfig().optimization, lr=rate))
    return Cell(
        row=row,
        column=column,
        measure="knn",
        jobs=tuple(PretrainJob(run=replace(run, seed=n)) for n in range(seeds)),
        chance=chance,
    )


def table(numbers: Numbers, name: str = "t", chance: float | None = None, **more: Any) -> Table:
    """A cell for each place, with as many runs as there are numbers."""
    cells = tuple(cell(row, column, len(seeds), chance) for (row, column), seeds in numbers.items())
    return Table(name=name, title="a table", cells=cells, **more)


def target(*tables: Table, rules: Sequence[Rule] = ()) -> Target:
    """With a claim for each rule."""
    claims = tuple(
        Claim(name=f"claim-{n}", where="§ 1", quote="It is so.", tests="so it is", rule=rule)
        for n, rule in enumerate(rules)
    )
    return Target(name="made", place="table tab:made", title="made by hand", tables=lambda scale: tables, claims=claims)


def results(
    filled: Table, numbers: Numbers, health: Mapping[tuple[str, str], Sequence[Health | None]] | None = None
) -> dict[str, Result]:
    """A result for every seed with a number, or with a health."""
    found = []
    for place, seeds in numbers.items():
        ends = (health or {}).get(place, ["healthy" if value is not None else None for value in seeds])
        for job, value, end in zip(filled.at[place].jobs, seeds, ends, strict=True):
            if value is not None or end is not None:
                found.append(Result(job=job, numbers={} if value is None else {"knn": value}, health=end))
    return {one.job.key: one for one in found}
