"""Results for the paper's tables and claims as Markdown, CSV, LaTeX (tables by booktabs), and on the terminal."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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


HEAD = "% Needs \\usepackage{booktabs,graphicx}. Written by `phinets reproduce`.\n"
CLAIM_WIDTHS = r"lp{.26\linewidth}p{.19\linewidth}p{.18\linewidth}rrp{.3\linewidth}"
NARROW = 2
"""Columns of numbers up to which a table fits on a page as it is."""
SIGNS = {
    "±": r"\pm", "×": r"\times", "−": "-", "→": r"\to", "≤": r"\leq", "≥": r"\geq", "·": r"\cdot", "†": r"\dagger",
    "‡": r"\ddagger", "²": "^2", "½": r"\frac{1}{2}", "β": r"\beta", "γ": r"\gamma", "λ": r"\lambda", "ρ": r"\rho",
    "σ": r"\sigma", "τ": r"\tau", "φ": r"\phi", "ψ": r"\psi", "<": "<", ">": ">", "|": "|",
}  # fmt: skip
"""Signs that stand in math mode."""
ESCAPES = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#{}"},
        **{sign: f"${name}$" for sign, name in SIGNS.items()},
        "\\": r"\textbackslash{}", "_": r"\_\allowbreak{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        '"': "''", "–": "--", "—": "---", "’": "'", "…": r"\ldots{}", "§": r"\S{}", "[": "{[}", "]": "{]}",
    }
)  # fmt: skip
"""Letters that mean something to LaTeX, or nothing; brackets, since after a line's end they would be its options."""


def report_markdown(results: Sequence[TargetResult]) -> str:
    """A whole document: how many claims hold, by target, and then every target."""
    claims = [claim for one in results for claim in one.claims]
    overview = [(f"{one.target.title} ({one.scale.name})", str(len(one.claims)), tally(one.claims)) for one in results]
    return "\n\n".join(
        (
            "# The paper, re-run",
            f"Of {len(claims)} claims {tally(claims)}.",
            _markdown_table(("target", "claims", "verdicts"), overview),
            markdown(results),
        )
    )


def markdown(results: Sequence[TargetResult]) -> str:
    """A section for each target: its tables, ours above the paper's, and its claims with their verdicts."""
    return "\n".join(_section(one) for one in results)


def _section(result: TargetResult) -> str:
    blocks = [f"## {_capital(result.target.title)}", f"`{result.target.name}`: {about(result)}"]
    blocks += [result.target.notes] if result.target.notes else []
    for table in result.tables:
        rows = _rows(table, lambda text, bold: f"**{text}**" if bold else text, "*paper*")
        blocks += [f"**{title(table)}**", _markdown_table(headings(table), rows), legend(table)]
    if result.claims:
        blocks.append(_markdown_table(CLAIM_HEADINGS, [claim_line(claim) for claim in result.claims]))
    return "\n\n".join(blocks) + "\n"


def _rows(result: TableResult, write: Callable[[str, bool], str], paper: str) -> Iterator[Sequence[str]]:
    """Rows of text, the paper's numbers below ours; `write` takes a text and whether it is bold."""
    for line in lines(result):
        texts = [(cell.ours, cell.result.best, cell.marks) if cell else ("", False, "") for cell in line.cells]
        yield write(line.name, False), *(write(ours, best) + write(marks, False) for ours, best, marks in texts)
        if line.has_paper:
            yield paper, *("" if cell is None else write(cell.paper, cell.paper_bold) for cell in line.cells)


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    every = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in every)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def csv_lines(results: Sequence[TargetResult]) -> list[list[str]]:
    """A line for each cell, numbers in full: one table of all tables."""
    cells = [(one, table, cell) for one in results for table in one.tables for cell in table.cells]
    return [list(CELL_COLUMNS), *([_plain(value) for value in _cell_values(*place)] for place in cells)]


def _cell_values(result: TargetResult, table: TableResult, cell: CellResult) -> tuple[object, ...]:
    of, paper = cell.cell, cell.printed
    printed = (None, None, None) if paper is None else (paper.mean, paper.spread, paper.bold)
    where = (result.target.name, result.scale.name, table.table.name, of.row, of.column, of.measure, table.table.unit)
    counts = (cell.n, len(cell.values), cell.lost, cell.failed, cell.missing, cell.best)
    return (*where, cell.mean, cell.spread, *counts, *printed, ";".join(map(_plain, cell.values)))


def claim_csv_lines(results: Sequence[TargetResult]) -> list[list[str]]:
    """A line for each claim, numbers in full."""
    claims = [(one, claim) for one in results for claim in one.claims]
    return [list(CLAIM_COLUMNS), *([_plain(value) for value in _claim_values(*place)] for place in claims)]


def _claim_values(result: TargetResult, claim_result: ClaimResult) -> tuple[object, ...]:
    claim, effect = claim_result.claim, claim_result.effect
    measured = (None,) * 5 if effect is None else (effect.size, effect.low, effect.high, effect.unit, effect.seeds)
    where = (result.target.name, result.scale.name, claim.name, claim.says, claim.where, claim_result.verdict)
    return (*where, *measured, claim_result.lost, claim.rule.describe(), claim_result.why)


def _plain(value: object) -> str:
    """For a machine: empty for what is not there, yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def latex(results: Sequence[TargetResult]) -> str:
    """All tables, and a table of the claims, of some targets, to be read by `\\input`."""
    blocks = [HEAD]
    for one in results:
        blocks.append(f"% {one.target.name}: {' '.join(about(one).split())}\n")
        blocks += [_latex_table(table) for table in one.tables]
        if one.claims:
            rows = [[escape(word) for word in claim_line(claim)] for claim in one.claims]
            blocks.append(_latex_float(f"Claims: {one.target.title}.", CLAIM_WIDTHS, CLAIM_HEADINGS, rows, fit=True))
    return "\n".join(blocks)


def escape(text: str) -> str:
    """Words as LaTeX prints them; the hyphen before a number becomes a minus."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text).translate(ESCAPES)


def _latex_table(result: TableResult) -> str:
    def write(text: str, bold: bool) -> str:
        return rf"\textbf{{{escape(text)}}}" if bold else escape(text)

    rows = _rows(result, write, r"\quad\textit{paper}")
    n = len(result.table.columns)
    return _latex_float(f"{title(result)}. {legend(result)}", "l" + "r" * n, headings(result), rows, fit=n > NARROW)


def _latex_float(caption: str, columns: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, fit: bool) -> str:
    """A table with its caption, as wide as the page where it must `fit`."""
    head, *body = (" & ".join(row) + r" \\" for row in (list(map(escape, heads)), *rows))
    inside = "\n".join((r"\toprule", head, r"\midrule", *body, r"\bottomrule"))
    tabular = f"\\begin{{tabular}}{{{columns}}}\n{inside}\n\\end{{tabular}}"
    tabular = f"\\resizebox{{\\linewidth}}{{!}}{{%\n{tabular}%\n}}" if fit else tabular
    start = "\\begin{table}[htbp]\n\\centering\n\\footnotesize"
    return f"{start}\n\\caption{{{escape(caption)}}}\n{tabular}\n\\end{{table}}\n"


def show(console: Console, results: Sequence[TargetResult]) -> None:
    """Tables and claims on the terminal."""
    for one in results:
        console.print()
        console.print(Text(_capital(one.target.title), style="bold"))
        console.print(Text(about(one), style="dim"))
        for table in one.tables:
            console.print(_terminal_table(console, table))
        if one.claims:
            console.print(_terminal_claims(one))


def _terminal_table(console: Console, result: TableResult) -> Table:
    """As the paper has it; rows as columns where that is narrower and the terminal too narrow."""
    first, *names = headings(result)
    rows = {line.name: tuple(map(_terminal_cell, line.cells)) for line in lines(result)}
    table = _grid(result, first, names, rows)
    needed = console.measure(table, options=console.options.update(width=MAX_WIDTH)).maximum
    if needed <= console.width or len(rows) >= len(names):
        return table
    transposed = {name: tuple(cells[n] for cells in rows.values()) for n, name in enumerate(names)}
    return _grid(result, first.replace("→", "↓"), list(rows), transposed)


def _grid(result: TableResult, first: str, names: Sequence[str], rows: Mapping[str, Sequence[Text]]) -> Table:
    table = Table(title=Text(title(result)), caption=Text(legend(result)), title_justify="left", caption_justify="left")
    table.add_column(Text(first), overflow="fold")
    for name in names:
        table.add_column(Text(name), justify="right", overflow="fold")
    for row, cells in rows.items():
        table.add_row(Text(row), *cells)
    return table


def _terminal_cell(cell: CellText | None) -> Text:
    """Ours, and the paper's in the line below."""
    if cell is None:
        return Text()
    text = Text.assemble((cell.ours, "bold" if cell.result.best else ""), cell.marks)
    if cell.paper:
        text.append("\n" + cell.paper, style="bold dim" if cell.paper_bold else "dim")
    return text


def _terminal_claims(result: TargetResult) -> Table:
    """As narrow as a terminal is: the rules are in the files."""
    table = Table(title=Text(f"Of {len(result.claims)} claims {tally(result.claims)}."), title_justify="left")
    for heading in TERMINAL_COLUMNS:
        table.add_column(Text(heading), overflow="fold")
    for claim in result.claims:
        texts = dict(zip(CLAIM_HEADINGS, claim_line(claim), strict=True))
        verdict = Text(claim.verdict, style=STYLES[claim.verdict])
        table.add_row(verdict, *(Text(texts[heading]) for heading in TERMINAL_COLUMNS[1:]))
    return table
