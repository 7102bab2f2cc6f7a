"""What was found of a target: its tables filled with what the runs came to, its claims judged."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from phinets.config.result import Result
from phinets.config.work import key
from phinets.paper.claims import Claim, Effect, Evidence, Place, VerdictWord
from phinets.paper.numbers import Printed, printed
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import Stated
from phinets.paper.scales import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class CellFound:
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
    printed: Printed | None
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
class TableFound:
    """A table, filled."""

    table: Table
    cells: tuple[CellFound, ...]

    @property
    def at(self) -> Mapping[tuple[str, str], CellFound]:
        """The cells by row and column."""
        return {(found.cell.row, found.cell.column): found for found in self.cells}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFound:
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
class TargetFound:
    """A target at a scale: all that a report needs."""

    target: Target
    scale: Scale
    tables: tuple[TableFound, ...]
    claims: tuple[ClaimFound, ...]
    results: Mapping[str, Result]
    """By key; of all work of the target that is done or has failed."""


def found(target: Target, scale: Scale, results: Mapping[str, Result]) -> TargetFound:
    """A target's tables and claims, given results by key; those that are not there are missing."""
    tables = target.tables(scale)
    evidence = gathered(tables, results)
    return TargetFound(
        target=target,
        scale=scale,
        tables=tuple(_filled(table, results) for table in tables),
        claims=tuple(_judged(claim, evidence, tables, scale) for claim in target.claims),
        results={name: results[name] for name in target.works(scale) if name in results},
    )


def gathered(tables: tuple[Table, ...], results: Mapping[str, Result]) -> Evidence:
    """What rules look at: the number and the health of every seed of every cell."""
    cells = {(table.name, cell.row, cell.column): cell for table in tables for cell in table.cells}
    return Evidence(
        values={place: _values(cell, results) for place, cell in cells.items()},
        lost={place: tuple(_is_lost(result) for result in _of(cell, results)) for place, cell in cells.items()},
    )


def _of(cell: Cell, results: Mapping[str, Result]) -> Iterator[Result | None]:
    return (results.get(key(work)) for work in cell.works)


def _values(cell: Cell, results: Mapping[str, Result]) -> tuple[float | None, ...]:
    """The cell's number by seed; one that is not finite is none."""
    said = (None if result is None else result.numbers.get(cell.measure) for result in _of(cell, results))
    return tuple(value if value is not None and math.isfinite(value) else None for value in said)


def _is_lost(result: Result | None) -> bool | None:
    return None if result is None or result.health is None else result.lost


def _filled(table: Table, results: Mapping[str, Result]) -> TableFound:
    own = printed(table.name)
    cells = tuple(_cell(cell, results, own.get((cell.row, cell.column))) for cell in table.cells)
    return TableFound(table=table, cells=tuple(replace(cell, best=_is_best(cell, cells, table)) for cell in cells))


def _cell(cell: Cell, results: Mapping[str, Result], own: Printed | None) -> CellFound:
    done = list(_of(cell, results))
    return CellFound(
        cell=cell,
        values=_values(cell, results),
        lost=sum(result is not None and result.lost for result in done),
        failed=sum(result is not None and result.failed is not None for result in done),
        missing=sum(result is None for result in done),
        best=False,
        printed=own,
    )


def _is_best(found: CellFound, cells: tuple[CellFound, ...], table: Table) -> bool:
    """Whether mean ± spread overlaps with that of the best mean of its row or column."""
    if found.mean is None or table.better is None:
        return False
    rivals = [
        (other.mean, other.spread or 0.0)
        for other in cells
        if getattr(other.cell, table.best_in) == getattr(found.cell, table.best_in) and other.mean is not None
    ]
    sign = 1 if table.better == "higher" else -1
    mean, spread = max(rivals, key=lambda rival: sign * rival[0])
    return abs(mean - found.mean) <= spread + (found.spread or 0.0)


def _judged(claim: Claim, evidence: Evidence, tables: tuple[Table, ...], scale: Scale) -> ClaimFound:
    effect = claim.rule.effect(evidence)
    places = claim.rule.places(evidence)
    verdict: VerdictWord = "can't tell"
    if effect is not None and (scale.name != "smoke" or isinstance(claim.rule, Stated)):
        effect = _in_its_unit(effect, tables, places)
        verdict = claim.rule.verdict(effect)
    return ClaimFound(
        claim=claim,
        effect=effect,
        verdict=verdict,
        why=_why(claim, effect, verdict, evidence, scale),
        lost=sum(lost is True for place in places for lost in evidence.lost.get(place, ())),
    )


def _in_its_unit(effect: Effect, tables: tuple[Table, ...], places: tuple[Place, ...]) -> Effect:
    """Points are of percent; other tables have their own unit."""
    unit = next((table.unit for table in tables if places and table.name == places[0][0]), "%")
    return effect if unit == "%" else replace(effect, unit=effect.unit.replace("points", unit))


def _why(claim: Claim, effect: Effect | None, verdict: VerdictWord, evidence: Evidence, scale: Scale) -> str:
    """One sentence."""
    places = claim.rule.places(evidence)
    empty = [place for place in places if all(value is None for value in evidence.values.get(place, ()))]
    if effect is None:
        return f"{len(empty)} of {len(places)} cells have no number." if empty else "The table has too few settings."
    if isinstance(claim.rule, Stated):
        return f"{effect.size:.0%} of the statements hold."
    if scale.name == "smoke":
        return "The runs are too short to learn anything."
    if effect.seeds < 2:
        return "There is a cell with a single seed, which says nothing of chance."
    return f"{SIDES[verdict]} ({claim.rule.describe()})."


SIDES: Mapping[VerdictWord, str] = {
    "holds": "The whole interval is where the claim has it",
    "does not hold": "The whole interval is where the claim does not have it",
    "can't tell": "The interval reaches to both sides of the claim's limit",
}
