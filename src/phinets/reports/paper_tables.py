"""What was found of the paper's tables and claims, as Markdown, as CSV, as LaTeX, and on the terminal."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phinets.paper.findings import CellResult, ClaimResult, TableResult, TargetResult
from phinets.reports.paper_cells import (
    CLAIM_HEADINGS,
    CellText,
    about,
    claim_line,
    headings,
    legend,
    lines,
    tally,
    title,
)
from phinets.reports.paper_latex import latex

__all__ = ["claim_csv_lines", "csv_lines", "latex", "markdown", "report_markdown", "show"]

CELL_COLUMNS = (
    "target", "scale", "table", "row", "column", "measure", "unit", "mean", "spread", "n", "seeds", "lost", "failed",
    "missing", "best", "paper_mean", "paper_spread", "paper_bold", "values",
)  # fmt: skip
CLAIM_COLUMNS = (
    "target", "scale", "claim", "says", "where", "verdict", "effect", "low", "high", "unit", "seeds", "lost", "rule",
    "why",
)  # fmt: skip
TERMINAL_COLUMNS = ("verdict", "claim", "effect [95 % interval]", "seeds", "collapsed")
"""Of a claim, on the terminal."""
MAX_WIDTH = 10_000
"""Letters of a line that no table needs."""
STYLES = {"holds": "green", "does not hold": "red", "can't tell": "yellow"}


def report_markdown(found: Sequence[TargetResult]) -> str:
    """A whole document: how many claims hold, by target, and then every target."""
    claims = [claim for one in found for claim in one.claims]
    overview = [(f"{one.target.title} ({one.scale.name})", str(len(one.claims)), tally(one.claims)) for one in found]
    return "\n\n".join(
        (
            "# The paper, re-run",
            f"Of {len(claims)} claims {tally(claims)}.",
            _markdown_table(("target", "claims", "verdicts"), overview),
            markdown(found),
        )
    )


def markdown(found: Sequence[TargetResult]) -> str:
    """A section for each target: its tables, ours above the paper's, and its claims with their verdicts."""
    return "\n".join(_section(one) for one in found)


def _section(found: TargetResult) -> str:
    parts = [f"## {_capital(found.target.title)}", f"`{found.target.name}`: {about(found)}"]
    parts += [found.target.notes] if found.target.notes else []
    for table in found.tables:
        parts += [f"**{title(table)}**", _markdown_table(headings(table), _rows(table)), legend(table)]
    if found.claims:
        parts.append(_markdown_table(CLAIM_HEADINGS, [claim_line(claim) for claim in found.claims]))
    return "\n\n".join(parts) + "\n"


def _rows(found: TableResult) -> Iterable[Sequence[str]]:
    for line in lines(found):
        yield (
            line.name,
            *("" if cell is None else _bold(cell.ours, cell.result.best) + cell.marks for cell in line.cells),
        )
        if line.has_paper:
            yield ("*paper*", *("" if cell is None else _bold(cell.paper, cell.paper_bold) for cell in line.cells))


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    drawn = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in drawn)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def csv_lines(found: Sequence[TargetResult]) -> list[list[str]]:
    """A line for each cell, numbers in full: one table of all tables."""
    cells = [(one, table, cell) for one in found for table in one.tables for cell in table.cells]
    return [list(CELL_COLUMNS), *([_plain(value) for value in _cell_values(*place)] for place in cells)]


def _cell_values(found: TargetResult, table: TableResult, cell: CellResult) -> tuple[object, ...]:
    of, paper = cell.cell, cell.printed
    printed = (None, None, None) if paper is None else (paper.mean, paper.spread, paper.bold)
    where = (found.target.name, found.scale.name, table.table.name, of.row, of.column, of.measure, table.table.unit)
    counts = (cell.n, len(cell.values), cell.lost, cell.failed, cell.missing, cell.best)
    return (*where, cell.mean, cell.spread, *counts, *printed, ";".join(map(_plain, cell.values)))


def claim_csv_lines(found: Sequence[TargetResult]) -> list[list[str]]:
    """A line for each claim, numbers in full."""
    claims = [(one, claim) for one in found for claim in one.claims]
    return [list(CLAIM_COLUMNS), *([_plain(value) for value in _claim_values(*place)] for place in claims)]


def _claim_values(found: TargetResult, judged: ClaimResult) -> tuple[object, ...]:
    claim, effect = judged.claim, judged.effect
    measured = (None,) * 5 if effect is None else (effect.size, effect.low, effect.high, effect.unit, effect.seeds)
    where = (found.target.name, found.scale.name, claim.name, claim.says, claim.where, judged.verdict)
    return (*where, *measured, judged.lost, claim.rule.describe(), judged.why)


def _plain(value: object) -> str:
    """For a machine: empty for what is not there, yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def show(console: Console, found: Sequence[TargetResult]) -> None:
    """Tables and claims on the terminal."""
    for one in found:
        console.print()
        console.print(Text(_capital(one.target.title), style="bold"))
        console.print(Text(about(one), style="dim"))
        for table in one.tables:
            console.print(_drawn(console, table))
        if one.claims:
            console.print(_drawn_claims(one))


def _drawn(console: Console, found: TableResult) -> Table:
    """As the paper has it; rows as columns where that is narrower and the terminal too narrow."""
    first, *names = headings(found)
    rows = {line.name: tuple(map(_drawn_cell, line.cells)) for line in lines(found)}
    table = _grid(found, first, names, rows)
    needed = console.measure(table, options=console.options.update(width=MAX_WIDTH)).maximum
    if needed <= console.width or len(rows) >= len(names):
        return table
    turned = {name: tuple(cells[n] for cells in rows.values()) for n, name in enumerate(names)}
    return _grid(found, first.replace("→", "↓"), list(rows), turned)


def _grid(found: TableResult, first: str, names: Sequence[str], rows: Mapping[str, Sequence[Text]]) -> Table:
    table = Table(title=Text(title(found)), caption=Text(legend(found)), title_justify="left", caption_justify="left")
    table.add_column(Text(first), overflow="fold")
    for name in names:
        table.add_column(Text(name), justify="right", overflow="fold")
    for row, cells in rows.items():
        table.add_row(Text(row), *cells)
    return table


def _drawn_cell(cell: CellText | None) -> Text:
    """Ours, and the paper's in the line below."""
    if cell is None:
        return Text()
    text = Text.assemble((cell.ours, "bold" if cell.result.best else ""), cell.marks)
    if cell.paper:
        text.append("\n" + cell.paper, style="bold dim" if cell.paper_bold else "dim")
    return text


def _drawn_claims(found: TargetResult) -> Table:
    """As narrow as a terminal is: the rules are in the files."""
    table = Table(title=Text(f"Of {len(found.claims)} claims {tally(found.claims)}."), title_justify="left")
    for heading in TERMINAL_COLUMNS:
        table.add_column(Text(heading), overflow="fold")
    for claim in found.claims:
        said = dict(zip(CLAIM_HEADINGS, claim_line(claim), strict=True))
        verdict = Text(claim.verdict, style=STYLES[claim.verdict])
        table.add_row(verdict, *(Text(said[heading]) for heading in TERMINAL_COLUMNS[1:]))
    return table
