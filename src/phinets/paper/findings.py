"""What was found of a target: its tables filled with what the runs came to, its claims judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from phinets.config.jobs import Result
from phinets.paper.numbers import PaperNumber, paper_numbers
from phinets.paper.plan import Better, Cell, Table, Target
from phinets.paper.rules import AllHold, Claim, Effect, Evidence, Place, VerdictWord
from phinets.paper.scales import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """A cell with what its runs came to, by seed."""

    cell: Cell
    values: tuple[float | None, ...]
    """None where a seed has no number."""
    lost: int
    """Seeds that collapsed or diverged. Collapsed ones keep their numbers; diverged ones have none."""
    failed: int
    """Seeds whose work failed."""
    missing: int
    """Seeds that nobody has run yet."""
    best: bool
    printed: PaperNumber | None
    """What the paper has here."""

    @property
    def numbers(self) -> tuple[float, ...]:
        """Of the seeds that have one."""
        return tuple(value for value in self.values if value is not None)

    @property
    def n(self) -> int:
        """Seeds with a number."""
        return len(self.numbers)

    @property
    def mean(self) -> float | None:
        """None without a number."""
        return fmean(self.numbers) if self.n else None

    @property
    def spread(self) -> float | None:
        """Sample standard deviation; None with fewer than two numbers."""
        return stdev(self.numbers) if self.n > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableResult:
    """A table, filled."""

    table: Table
    cells: tuple[CellResult, ...]

    @property
    def at(self) -> Mapping[tuple[str, str], CellResult]:
        """The cells by row and column."""
        return {(found.cell.row, found.cell.column): found for found in self.cells}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """A claim, judged."""

    claim: Claim
    effect: Effect | None
    """None where cells have no number."""
    verdict: VerdictWord
    why: str
    """One sentence."""
    lost: int
    """Collapsed and diverged seeds among the cells that it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """A target at a scale: all that a report needs."""

    target: Target
    scale: Scale
    tables: tuple[TableResult, ...]
    claims: tuple[ClaimResult, ...]
    results: Mapping[str, Result]
    """By key; of all work of the target that is done or has failed."""


CellJobs = Mapping[Place, tuple[Result | None, ...]]
"""The results behind each cell, by seed; None where there is none yet."""


def target_result(target: Target, scale: Scale, results: Mapping[str, Result]) -> TargetResult:
    """A target's tables and claims, given results by key; those that are not there are missing."""
    tables = target.tables(scale)
    done = {
        (table.name, cell.row, cell.column): tuple(results.get(job.key) for job in cell.jobs)
        for table in tables
        for cell in table.cells
    }
    evidence = collect_evidence(tables, done)
    return TargetResult(
        target=target,
        scale=scale,
        tables=tuple(_filled(table, done, evidence) for table in tables),
        claims=tuple(_judged(claim, evidence, tables, scale) for claim in target.claims),
        results={name: results[name] for name in target.jobs(scale) if name in results},
    )


def collect_evidence(tables: tuple[Table, ...], done: CellJobs) -> Evidence:
    """What rules look at: the number and the health of every seed of every cell."""
    health_metrics = {(table.name, cell.row, cell.column): cell.measure for table in tables for cell in table.cells}
    return Evidence(
        values={place: tuple(_number(one, health_metrics[place]) for one in seeds) for place, seeds in done.items()},
        lost={place: tuple(map(_is_lost, seeds)) for place, seeds in done.items()},
    )


def _number(result: Result | None, measure: str) -> float | None:
    """What a seed came to; a number that is not finite is none."""
    value = None if result is None else result.numbers.get(measure)
    return value if value is not None and math.isfinite(value) else None


def _is_lost(result: Result | None) -> bool | None:
    return None if result is None or result.health is None else result.lost


def _filled(table: Table, done: CellJobs, evidence: Evidence) -> TableResult:
    own = paper_numbers(table.name)
    cells = []
    for cell in table.cells:
        place = (table.name, cell.row, cell.column)
        seeds = done[place]
        filled = CellResult(
            cell=cell,
            values=evidence.values[place],
            lost=sum(lost is True for lost in evidence.lost[place]),
            failed=sum(one is not None and one.failed is not None for one in seeds),
            missing=sum(one is None for one in seeds),
            best=False,
            printed=own.get((cell.row, cell.column)),
        )
        cells.append(filled)
    return TableResult(table=table, cells=_with_best(cells, table))


def _with_best(cells: Sequence[CellResult], table: Table) -> tuple[CellResult, ...]:
    """The cells, best marked: whose mean ± spread overlaps with that of the best mean of the row or column.

    One number has no spread: it counts as 0. Where nothing is better, nothing is best.
    """
    tops: dict[str, CellResult] = {}
    for cell in cells:
        top = tops.setdefault(_among(cell, table), cell)
        if _ahead(cell, top, table.better_in(cell.cell.row)):
            tops[_among(cell, table)] = cell
    best = (_overlap(cell, tops[_among(cell, table)]) for cell in cells)
    has_best = (table.better_in(cell.cell.row) is not None for cell in cells)
    return tuple(replace(cell, best=a and b) for cell, a, b in zip(cells, best, has_best, strict=True))


def _among(cell: CellResult, table: Table) -> str:
    """The row or column in which it competes."""
    return cell.cell.row if table.best_in == "row" else cell.cell.column


def _ahead(one: CellResult, other: CellResult, better: Better | None) -> bool:
    """Whether the mean of one is better; any is better than none."""
    if one.mean is None or other.mean is None:
        return one.mean is not None
    return one.mean > other.mean if better == "higher" else one.mean < other.mean


def _overlap(one: CellResult, other: CellResult) -> bool:
    if one.mean is None or other.mean is None:
        return False
    return abs(one.mean - other.mean) <= (one.spread or 0.0) + (other.spread or 0.0)


def _judged(claim: Claim, evidence: Evidence, tables: tuple[Table, ...], scale: Scale) -> ClaimResult:
    places = claim.rule.places(evidence)
    effect = _in_its_unit(claim.rule.effect(evidence), tables, places)
    too_short = scale.name == "smoke" and not isinstance(claim.rule, AllHold)
    verdict = "can't tell" if effect is None or too_short else claim.rule.verdict(effect)
    return ClaimResult(
        claim=claim,
        effect=effect,
        verdict=verdict,
        why="The runs are too short to learn anything." if too_short else _why(claim, effect, verdict, evidence),
        lost=sum(lost is True for place in places for lost in evidence.lost.get(place, ())),
    )


def _in_its_unit(effect: Effect | None, tables: tuple[Table, ...], places: tuple[Place, ...]) -> Effect | None:
    """Points are of percent; other tables have their own unit."""
    units = {table.name: table.unit for table in tables}
    unit = units.get(places[0][0], "%") if places else "%"
    return effect if effect is None or unit == "%" else replace(effect, unit=effect.unit.replace("points", unit))


SIDES: Mapping[VerdictWord, str] = {
    "holds": "The whole interval is on the claim's side.",
    "does not hold": "The whole interval is on the other side.",
    "can't tell": "The interval reaches to both sides.",
}


def _why(claim: Claim, effect: Effect | None, verdict: VerdictWord, evidence: Evidence) -> str:
    """One sentence."""
    places = claim.rule.places(evidence)
    if effect is None:
        empty = sum(all(value is None for value in evidence.values.get(place, ())) for place in places)
        return f"{empty} of {len(places)} cells have no number." if empty else "There are too few settings to compare."
    if isinstance(claim.rule, AllHold):
        return f"{round(effect.size * len(places))} of {len(places)} statements hold."
    if effect.seeds < 2:
        return "A cell has a number of one seed alone, which says nothing of chance."
    return SIDES[verdict]
