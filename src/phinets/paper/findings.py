"""Results of a target: its tables with the numbers of the runs, its claims with verdicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from phinets.config.jobs import Result
from phinets.paper.numbers import PaperNumber, paper_numbers
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import AllHold, Claim, Effect, Evidence, Place, VerdictWord
from phinets.paper.scales import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """A cell with the numbers of its runs, by seed."""

    cell: Cell
    values: tuple[float | None, ...]
    """None where a seed has no number."""
    lost: int
    """Seeds that collapsed or diverged. Collapsed ones keep their numbers; diverged ones have none."""
    failed: int
    """Seeds whose job failed."""
    missing: int
    """Seeds without a result."""
    best: bool
    printed: PaperNumber | None
    """The paper's number."""

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
    """A table with its numbers."""

    table: Table
    cells: tuple[CellResult, ...]

    @property
    def at(self) -> Mapping[tuple[str, str], CellResult]:
        """The cells by row and column."""
        return {(cell.cell.row, cell.cell.column): cell for cell in self.cells}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """A claim with its verdict."""

    claim: Claim
    effect: Effect | None
    """None where cells have no number."""
    verdict: VerdictWord
    why: str
    """One sentence."""
    lost: int
    """Collapsed and diverged seeds in the cells that it depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """A target at a scale: all that a report needs."""

    target: Target
    scale: Scale
    tables: tuple[TableResult, ...]
    claims: tuple[ClaimResult, ...]
    results: Mapping[str, Result]
    """By key; of all jobs of the target that are done or have failed."""


def target_result(target: Target, scale: Scale, results: Mapping[str, Result]) -> TargetResult:
    """A target's tables and claims from results by key; jobs without a result are missing."""
    tables = target.tables(scale)
    cells = {(table.name, cell.row, cell.column): cell for table in tables for cell in table.cells}
    seeds = {place: [results.get(job.key) for job in cell.jobs] for place, cell in cells.items()}
    evidence = Evidence(
        values={place: tuple(_number(one, cells[place].measure) for one in some) for place, some in seeds.items()},
        lost={place: tuple(one.lost if one and one.health else None for one in some) for place, some in seeds.items()},
    )
    return TargetResult(
        target=target,
        scale=scale,
        tables=tuple(_table_result(table, seeds, evidence) for table in tables),
        claims=tuple(_claim_result(claim, evidence, tables, scale) for claim in target.claims),
        results={name: results[name] for name in target.jobs(scale) if name in results},
    )


def _number(result: Result | None, measure: str) -> float | None:
    """The number of a seed; one that is not finite counts as none."""
    value = None if result is None else result.numbers.get(measure)
    return value if value is not None and math.isfinite(value) else None


def _table_result(table: Table, seeds: Mapping[Place, Sequence[Result | None]], evidence: Evidence) -> TableResult:
    printed = paper_numbers(table.name)

    def cell_result(cell: Cell) -> CellResult:
        place = (table.name, cell.row, cell.column)
        return CellResult(
            cell=cell,
            values=evidence.values[place],
            lost=sum(lost is True for lost in evidence.lost[place]),
            failed=sum(one is not None and one.failed is not None for one in seeds[place]),
            missing=sum(one is None for one in seeds[place]),
            best=False,
            printed=printed.get((cell.row, cell.column)),
        )

    return TableResult(table=table, cells=_with_best([cell_result(cell) for cell in table.cells], table))


def _with_best(cells: Sequence[CellResult], table: Table) -> tuple[CellResult, ...]:
    """The cells, the best marked: those whose mean ± spread overlaps with that of the best mean of the row or column.

    One number has no spread: it counts as 0. Where nothing is better, nothing is best.
    """

    def is_best(cell: CellResult) -> bool:
        better = table.better_in(cell.cell.row)
        sign = 1 if better == "higher" else -1
        here = _competition(cell, table)
        rivals = [rival for rival in cells if rival.mean is not None and _competition(rival, table) == here]
        top = max(rivals, key=lambda rival: sign * (rival.mean or 0.0), default=cell)
        return better is not None and _overlap(cell, top)

    return tuple(replace(cell, best=is_best(cell)) for cell in cells)


def _competition(cell: CellResult, table: Table) -> str:
    """The row or column in which it competes."""
    return cell.cell.row if table.best_in == "row" else cell.cell.column


def _overlap(one: CellResult, other: CellResult) -> bool:
    if one.mean is None or other.mean is None:
        return False
    return abs(one.mean - other.mean) <= (one.spread or 0.0) + (other.spread or 0.0)


def _claim_result(claim: Claim, evidence: Evidence, tables: tuple[Table, ...], scale: Scale) -> ClaimResult:
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
    unit = next((table.unit for table in tables if places and table.name == places[0][0]), "%")
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
