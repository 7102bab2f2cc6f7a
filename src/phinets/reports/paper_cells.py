"""The paper's tables and claims in words, ours beside the paper's: for Markdown, LaTeX and the terminal alike."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from phinets.config.jobs import DynamicsJob
from phinets.paper.findings import CellResult, ClaimResult, TableResult, TargetResult
from phinets.paper.numbers import PaperNumber
from phinets.paper.rules import Effect, VerdictWord

NONE = "–"
LOST_MARK, FAILED_MARK = "†", "‡"
PAPER_PLACES = 2
"""Decimals that the paper prints."""
VERDICTS: Mapping[VerdictWord, str] = {"holds": "hold", "does not hold": "do not hold", "can't tell": "can't be told"}
CLAIM_HEADINGS = ("verdict", "claim", "place", "effect [95 % interval]", "seeds", "collapsed", "rule")


class CellText(NamedTuple):
    """A cell in words."""

    result: CellResult
    keys: tuple[str, ...]
    """Of its jobs, by seed."""
    value: str
    """Mean ± spread, whether a statement holds, or a dash."""
    seeds: str
    """How many have a number, of how many if not all; empty for statements and missing numbers."""
    marks: str
    """†k for k lost seeds, ‡k for k that failed."""
    paper: str
    """Empty where the paper prints nothing."""

    @property
    def paper_bold(self) -> bool:
        """Whether the paper prints it bold."""
        return self.result.printed is not None and self.result.printed.bold

    @property
    def ours(self) -> str:
        """Mean ± spread (seeds), or why there is none."""
        return f"{self.value} ({self.seeds})" if self.seeds else self.value


class Line(NamedTuple):
    """A row of a table."""

    name: str
    cells: tuple[CellText | None, ...]
    """None where the table has no cell."""

    @property
    def has_paper(self) -> bool:
        """Whether the paper prints any of it."""
        return any(cell is not None and cell.paper for cell in self.cells)


def lines(result: TableResult) -> tuple[Line, ...]:
    """The rows, in the paper's order."""
    at, places = result.at, _places(result)
    texts = {place: _cell_text(cell, places) for place, cell in at.items()}
    columns = result.table.columns
    return tuple(
        Line(name=row, cells=tuple(texts.get((row, column)) for column in columns)) for row in result.table.rows
    )


def title(result: TableResult) -> str:
    """With the unit."""
    return f"{result.table.title} ({result.table.unit})" if result.table.unit else result.table.title


def headings(result: TableResult) -> tuple[str, ...]:
    """What the columns are, then their names."""
    return f"{result.table.columns_are} →" if result.table.columns_are else "", *result.table.columns


def legend(result: TableResult) -> str:
    """How to read the cells, as far as there is something to read."""
    if isinstance(result.cells[0].cell.jobs[0], DynamicsJob):
        return "Whether each statement holds."
    texts = ["Mean ± standard deviation over seeds (their number)"]
    if any(cell.best for cell in result.cells):
        texts.append(f"bold: overlaps with the best of its {result.table.best_in}")
    if any(cell.lost for cell in result.cells):
        texts.append(f"{LOST_MARK}k: k seeds collapsed or diverged; collapsed ones are in the mean")
    if any(cell.failed for cell in result.cells):
        texts.append(f"{FAILED_MARK}k: k seeds failed")
    if any(cell.printed is not None for cell in result.cells):
        texts.append("below: the paper's")
    return "; ".join(texts) + "."


def _places(result: TableResult) -> int:
    """Decimals of ours: as many as the paper's, more where all numbers are small."""
    largest = max((abs(cell.mean) for cell in result.cells if cell.mean is not None), default=1.0)
    return PAPER_PLACES - (math.floor(math.log10(largest)) if 0 < largest < 1 else 0)


def _cell_text(cell: CellResult, places: int) -> CellText:
    marks = ((LOST_MARK, cell.lost), (FAILED_MARK, cell.failed))
    seeds = len(cell.values)
    counts = cell.mean is not None and not isinstance(cell.cell.jobs[0], DynamicsJob)
    return CellText(
        result=cell,
        keys=tuple(job.key for job in cell.cell.jobs),
        value=_value(cell, places),
        seeds=(str(seeds) if cell.n == seeds else f"{cell.n} of {seeds}") if counts else "",
        marks="".join(f" {mark}{count}" for mark, count in marks if count),
        paper=_paper(cell.printed),
    )


def _value(cell: CellResult, places: int) -> str:
    if cell.mean is None:
        return NONE
    if isinstance(cell.cell.jobs[0], DynamicsJob):
        return "holds" if cell.mean == 1 else "does not hold"
    return _with_spread(cell.mean, cell.spread, places)


def _paper(printed: PaperNumber | None) -> str:
    if printed is None:
        return ""
    return "nan" if printed.mean is None else _with_spread(printed.mean, printed.spread, PAPER_PLACES)


def _with_spread(mean: float, spread: float | None, places: int) -> str:
    return f"{mean:.{places}f}" if spread is None else f"{mean:.{places}f} ± {spread:.{places}f}"


def claim_line(result: ClaimResult) -> tuple[str, ...]:
    """What stands below `CLAIM_HEADINGS`."""
    claim, effect = result.claim, result.effect
    seeds = NONE if effect is None else str(effect.seeds)
    rule = f"{claim.rule.describe()}. {result.why}"
    return result.verdict, claim.says, claim.where, effect_words(effect), seeds, str(result.lost), rule


def effect_words(effect: Effect | None) -> str:
    """+1.32 [+0.40, +2.21] points; without an interval where nothing varies."""
    if effect is None:
        return NONE
    if effect.seeds < 2:
        return f"{_signed(effect.size)} {effect.unit}".strip()
    return f"{_signed(effect.size)} [{_signed(effect.low)}, {_signed(effect.high)}] {effect.unit}".strip()


def _signed(value: float) -> str:
    return f"{value:+.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:+.2g}"


def tally(claims: Sequence[ClaimResult]) -> str:
    """How many claims have each verdict."""
    words = [claim.verdict for claim in claims]
    return ", ".join(f"{words.count(word)} {text}" for word, text in VERDICTS.items())


def about(target: TargetResult) -> str:
    """Where the paper has it, at which scale it was run, and how much of it there is."""
    failed = sum(result.failed is not None for result in target.results.values())
    missing = sum(cell.missing for table in target.tables for cell in table.cells)
    texts = [target.target.place, f"scale {target.scale.name}", f"runs done: {len(target.results) - failed}"]
    texts += [f"failed: {failed}"] * bool(failed) + [f"numbers still to come: {missing}"] * bool(missing)
    return "; ".join(texts) + "."
