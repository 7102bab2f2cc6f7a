"""Results of a target: its tables with the numbers of the runs, its claims with verdicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Literal

from phinets.config.jobs import Result
from phinets.paper.measures import READOUT_NAMES, accuracy, other_readout, pixels, readout_of, untrained
from phinets.paper.numbers import PaperNumber, paper_numbers
from phinets.paper.plan import Cell, Table, Target
from phinets.paper.rules import AllHold, Claim, Evidence, Place, Rule, VerdictWord
from phinets.paper.scales import Scale
from phinets.paper.statistics import MIN_SEEDS, Effect, holm

MIN_GAIN = 5.0
"""Points above the untrained encoder below which runs say nothing about what they learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """A cell with the numbers of its runs, by seed."""

    cell: Cell
    values: tuple[float | None, ...]
    """None where a seed has no number."""
    lost: int
    """Seeds that collapsed or diverged; an accuracy counts as chance then."""
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
class ReadoutResult:
    """A claim by one readout."""

    readout: str
    """kNN, linear probe, …; empty where the numbers are no accuracies."""
    effect: Effect | None
    """None where no seed has a number in every cell."""
    verdict: VerdictWord
    why: str
    """One sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """A claim with its verdict."""

    claim: Claim
    first: ReadoutResult
    """By the readout of the paper."""
    second: ReadoutResult | None
    """By the other readout; None where the numbers are no accuracies."""
    printed: Literal["agree", "disagree", "not printed"]
    """Whether the paper's own numbers agree with the claim."""
    printed_effect: Effect | None
    lost: int
    """Collapsed and diverged seeds in the cells that it depends on."""

    @property
    def effect(self) -> Effect | None:
        return self.first.effect

    @property
    def verdict(self) -> VerdictWord:
        return self.first.verdict

    @property
    def why(self) -> str:
        return self.first.why


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetResult:
    """A target at a scale: all that a report needs."""

    target: Target
    scale: Scale
    tables: tuple[TableResult, ...]
    """Each by the readout of the paper, then by the other one, with the baselines below."""
    claims: tuple[ClaimResult, ...]
    results: Mapping[str, Result]
    """By key; of all jobs of the target that are done or have failed."""


def target_result(target: Target, scale: Scale, results: Mapping[str, Result]) -> TargetResult:
    """A target's tables and claims from results by key; jobs without a result are missing."""
    tables = target.tables(scale)
    shown = tuple(with_baselines(table) for each in tables for table in _readouts(each))
    by_readout = tuple(_readouts_of_claims(target, scale, tables, results, second) for second in (False, True))
    return TargetResult(
        target=target,
        scale=scale,
        tables=tuple(_table_result(table, results) for table in shown),
        claims=tuple(
            _claim_result(claim, tables, first, second, results)
            for claim, first, second in zip(target.claims, *by_readout, strict=True)
        ),
        results={name: results[name] for name in target.jobs(scale) if name in results},
    )


def _readouts(table: Table) -> tuple[Table, ...]:
    """The table, and the same by the other readout where its numbers are accuracies."""
    twin = _by_other_readout(table)
    if twin is None or len({cell.measure for cell in table.cells} & {cell.measure for cell in twin.cells}):
        return (table,)
    readout = readout_of(twin.cells[0].measure)
    assert readout is not None
    return table, replace(
        twin, name=f"{table.name}/{readout}", title=f"{table.title}; here by {READOUT_NAMES[readout]}"
    )


def _by_other_readout(table: Table) -> Table | None:
    """The same cells by the other readout; None where one of them has none."""
    measures = [other_readout(cell.measure) for cell in table.cells]
    cells = tuple(
        replace(cell, measure=measure) for cell, measure in zip(table.cells, measures, strict=True) if measure
    )
    return replace(table, cells=cells) if len(cells) == len(table.cells) else None


def with_baselines(table: Table) -> Table:
    """With rows of the untrained encoder and of raw pixels, as the runs measured them."""
    rows = {row: next(cell for cell in table.cells if cell.row == row) for row in table.rows}
    # Where methods are columns, every row of accuracies has baselines of its own.
    some = rows if table.best_in == "row" else dict(list(rows.items())[:1])
    cells: list[Cell] = []
    for row, first in some.items():
        if accuracy(first.measure) != first.measure:
            continue
        prefix = f"{row}, " if table.best_in == "row" else ""
        measures = {"untrained": untrained(first.measure), "raw pixels": pixels(first.measure)}
        cells += (
            replace(cell, row=f"{prefix}{name}", measure=measure, chance=None)
            for name, measure in measures.items()
            if measure is not None
            for cell in table.cells
            if cell.row == row
        )
    baselines = tuple(dict.fromkeys(cell.row for cell in cells))
    return replace(table, cells=(*table.cells, *cells), baselines=baselines)


def _value(result: Result | None, cell: Cell) -> float | None:
    """The number of a seed; chance where it collapsed or diverged; none where it is not finite."""
    if result is None or result.failed is not None:
        return None
    if result.lost and cell.chance is not None:
        return cell.chance
    value = result.numbers.get(cell.measure)
    return value if value is not None and math.isfinite(value) else None


def _gain(result: Result | None, cell: Cell) -> float | None:
    """Accuracy of the run less that of the untrained encoder; None where nothing is learned or measured."""
    measure = accuracy(cell.measure)
    if result is None or measure is None:
        return None
    before = result.numbers.get(untrained(measure))
    after = _value(result, replace(cell, measure=measure))
    return None if before is None or after is None else after - before


def _evidence(tables: Sequence[Table], results: Mapping[str, Result]) -> Evidence:
    cells = {(table.name, cell.row, cell.column): cell for table in tables for cell in table.cells}
    seeds = {place: [results.get(job.key) for job in cell.jobs] for place, cell in cells.items()}
    return Evidence(
        values={place: tuple(_value(one, cells[place]) for one in some) for place, some in seeds.items()},
        lost={place: tuple(one.lost if one and one.health else None for one in some) for place, some in seeds.items()},
        gains={place: tuple(_gain(one, cells[place]) for one in some) for place, some in seeds.items()},
    )


def printed_evidence(tables: Sequence[Table]) -> Evidence:
    """The paper's own numbers, as of one seed; a mean within a point of chance, or nan, counts as collapsed."""
    cells = {(table.name, cell.row, cell.column): cell for table in tables for cell in table.cells}
    numbers = {table.name: paper_numbers(table.name) for table in tables}
    known = {place: numbers[place[0]][place[1:]] for place in cells if place[1:] in numbers[place[0]]}
    means = {place: cells[place].chance if number.mean is None else number.mean for place, number in known.items()}

    def lost(place: Place) -> bool:
        mean, guess = known[place].mean, cells[place].chance
        return mean is None or (guess is not None and mean < guess + 1)

    return Evidence(
        values={place: (means.get(place),) for place in cells}, lost={place: (lost(place),) for place in known}
    )


def _table_result(table: Table, results: Mapping[str, Result]) -> TableResult:
    printed = paper_numbers(table.name)

    def cell_result(cell: Cell) -> CellResult:
        seeds = [results.get(job.key) for job in cell.jobs]
        return CellResult(
            cell=cell,
            values=tuple(_value(one, cell) for one in seeds),
            lost=sum(one is not None and one.lost for one in seeds) if cell.row not in table.baselines else 0,
            failed=sum(one is not None and one.failed is not None for one in seeds),
            missing=sum(one is None for one in seeds),
            best=False,
            printed=printed.get((cell.row, cell.column)),
        )

    return TableResult(table=table, cells=_with_best([cell_result(cell) for cell in table.cells], table))


def _with_best(cells: Sequence[CellResult], table: Table) -> tuple[CellResult, ...]:
    """The cells, the best marked: those whose mean ± spread overlaps with that of the best mean of the row or column.

    One number has no spread: it counts as 0. Where nothing is better, nothing is best; baselines do not compete.
    """

    def is_best(cell: CellResult) -> bool:
        better = table.better_in(cell.cell.row)
        sign = 1 if better == "higher" else -1
        here = _competition(cell, table)
        rivals = [rival for rival in cells if rival.mean is not None and _competition(rival, table) == here]
        top = max(rivals, key=lambda rival: sign * (rival.mean or 0.0), default=cell)
        return better is not None and here is not None and _overlap(cell, top)

    return tuple(replace(cell, best=is_best(cell)) for cell in cells)


def _competition(cell: CellResult, table: Table) -> str | None:
    """The row or column in which it competes."""
    if cell.cell.row in table.baselines:
        return None
    return cell.cell.row if table.best_in == "row" else cell.cell.column


def _overlap(one: CellResult, other: CellResult) -> bool:
    if one.mean is None or other.mean is None:
        return False
    return abs(one.mean - other.mean) <= (one.spread or 0.0) + (other.spread or 0.0)


def _readouts_of_claims(
    target: Target, scale: Scale, tables: tuple[Table, ...], results: Mapping[str, Result], second: bool
) -> tuple[ReadoutResult | None, ...]:
    """Every claim by the first or the second readout, with Holm's correction over all that can be decided.

    None for a second readout that its cells do not have.
    """
    if second:
        twins = {table.name: _by_other_readout(table) for table in tables}
        tables = tuple(twins[table.name] or table for table in tables)
    evidence = _evidence(tables, results)
    effects = {claim.name: claim.rule.effect(evidence) for claim in target.claims}
    reasons = {claim.name: _undecided(claim.rule, effects[claim.name], evidence, scale) for claim in target.claims}
    family = {
        claim.name: effect.p
        for claim in target.claims
        if (effect := effects[claim.name]) is not None
        and reasons[claim.name] is None
        and not isinstance(claim.rule, AllHold)
    }
    decided = holm(family) | {claim.name for claim in target.claims if isinstance(claim.rule, AllHold)}

    def result(claim: Claim) -> ReadoutResult | None:
        places = claim.rule.places(evidence)
        measures = {
            cell.measure for table in tables for cell in table.cells if (table.name, cell.row, cell.column) in places
        }
        readouts = dict.fromkeys(filter(None, map(readout_of, sorted(measures))))
        if second and len(readouts) != 1:
            return None
        effect, reason = effects[claim.name], reasons[claim.name]
        word, why = reason or _decide(effect, claim, claim.name in decided)
        unit = _unit(effect, tables, places)
        return ReadoutResult(
            readout=" and ".join(READOUT_NAMES[name] for name in readouts), effect=unit, verdict=word, why=why
        )

    return tuple(map(result, target.claims))


def _undecided(rule: Rule, effect: Effect | None, evidence: Evidence, scale: Scale) -> tuple[VerdictWord, str] | None:
    """Why there is no verdict, whatever the p-value; None where it decides."""
    if effect is None:
        places = rule.places(evidence)
        if not places:
            return "can't tell", "This scale does not run these settings."
        empty = sum(all(value is None for value in evidence.values.get(place, ())) for place in places)
        return "can't tell", f"{empty} of {len(places)} cells have no number." if empty else "No seed has all numbers."
    if isinstance(rule, AllHold):
        return None
    if scale.name == "smoke":
        return "can't tell", "The runs are too short to learn anything."
    gain = _comparison_gain(rule, evidence)
    if gain is not None and gain < MIN_GAIN:
        return "uninformative", f"The best encoders are {gain:.1f} points above untrained ones, less than {MIN_GAIN:g}."
    if effect.seeds < MIN_SEEDS:
        return "can't tell", f"Only {effect.seeds} of at least {MIN_SEEDS} seeds."
    return None


def _comparison_gain(rule: Rule, evidence: Evidence) -> float | None:
    """How far the best cell of each setting is above the untrained encoder, on average over the settings."""
    if not rule.needs_learning:
        return None
    gains = []
    for cells in rule.settings_cells(evidence):
        seeds = [[gain for gain in evidence.gains.get(place, ()) if gain is not None] for place in cells]
        gains += [max(fmean(cell) for cell in seeds if cell)] if any(seeds) else []
    return fmean(gains) if gains else None


def _decide(effect: Effect | None, claim: Claim, rejected: bool) -> tuple[VerdictWord, str]:
    """The verdict of an effect that can be decided."""
    assert effect is not None
    if isinstance(claim.rule, AllHold):
        statements = f"{round(effect.size * len(claim.rule.rows))} of {len(claim.rule.rows)} statements hold."
        return ("holds" if effect.supports else "does not hold"), statements
    if not rejected:
        return "can't tell", f"p = {effect.p:.2g} is not small enough after Holm's correction within the target."
    word: VerdictWord = "holds" if effect.p_holds < effect.p_fails else "does not hold"
    return word, f"p = {effect.p:.2g}, significant after Holm's correction within the target."


def _unit(effect: Effect | None, tables: tuple[Table, ...], places: tuple[Place, ...]) -> Effect | None:
    """Points are of percent; other tables have their own unit."""
    unit = next((table.unit for table in tables if places and table.name == places[0][0]), "%")
    return effect if effect is None or unit == "%" else replace(effect, unit=effect.unit.replace("points", unit))


def _claim_result(
    claim: Claim,
    tables: tuple[Table, ...],
    first: ReadoutResult | None,
    second: ReadoutResult | None,
    results: Mapping[str, Result],
) -> ClaimResult:
    assert first is not None
    evidence = _evidence(tables, results)
    printed = _unit(claim.rule.effect(printed_evidence(tables)), tables, claim.rule.places(evidence))
    return ClaimResult(
        claim=claim,
        first=first,
        second=second,
        printed="not printed" if printed is None else "agree" if printed.supports else "disagree",
        printed_effect=printed,
        lost=sum(lost is True for place in claim.rule.places(evidence) for lost in evidence.lost.get(place, ())),
    )
