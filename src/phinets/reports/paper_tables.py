"""Results beside the paper's tables and claims in words, as Markdown, CSV and LaTeX (booktabs), and on the terminal."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phinets.config.jobs import DynamicsJob
from phinets.paper.findings import CellResult, ClaimResult, ReadoutResult, TableResult, TargetResult
from phinets.paper.measures import READOUT_NAMES
from phinets.paper.numbers import PaperNumber
from phinets.paper.rules import Claim, VerdictWord
from phinets.paper.statistics import Effect

NONE = "–"
LOST_MARK, FAILED_MARK = "†", "‡"
PAPER_PLACES = 2
"""Decimals that the paper prints."""
VERDICTS: Mapping[VerdictWord, str] = {
    "holds": "hold", "does not hold": "do not hold", "can't tell": "can't be told", "uninformative": "uninformative",
}  # fmt: skip
CLAIM_HEADINGS = (
    "verdict", "the paper says", "tested", "effect [95 % interval]", "seeds", "collapsed", "by the other readout",
    "on the paper's numbers", "rule",
)  # fmt: skip
SINGLE_QUOTES = str.maketrans("“”", "‘’")


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
    baseline: bool = False
    """Whether it is the untrained encoder or raw pixels."""


def lines(result: TableResult) -> tuple[Line, ...]:
    """The rows, in the paper's order, then the baselines that have a number."""
    table, places = result.table, _places(result)
    texts = {place: _cell_text(cell, places) for place, cell in result.at.items()}
    numbers = {cell.cell.row for cell in result.cells if cell.n}
    return tuple(
        Line(row, tuple(texts.get((row, column)) for column in table.columns), row in table.baselines)
        for row in table.rows
        if row not in table.baselines or row in numbers
    )


def second_readout(result: TableResult) -> str | None:
    """The readout of a table that repeats the one before it by another; None of the paper's own."""
    _, slash, readout = result.table.name.partition("/")
    return READOUT_NAMES[readout] if slash else None


def shown_tables(result: TargetResult) -> tuple[TableResult, ...]:
    """The paper's tables, and by the other readout those that have a number."""
    return tuple(
        table for table in result.tables if second_readout(table) is None or any(cell.n for cell in table.cells)
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
        texts.append(f"{LOST_MARK}k: k seeds collapsed or diverged{lost_words(result)}")
    if any(cell.failed for cell in result.cells):
        texts.append(f"{FAILED_MARK}k: k seeds failed")
    if any(cell.printed is not None for cell in result.cells):
        texts.append("below: the paper's")
    if any(line.baseline for line in lines(result)):
        texts.append("italic: baselines")
    return "; ".join(texts) + "."


def lost_words(result: TableResult) -> str:
    """What collapsed and diverged seeds count as; empty where the numbers are no accuracies."""
    return ", which counts as chance" if any(cell.cell.chance is not None for cell in result.cells) else ""


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
    return (
        result.verdict,
        quote_words(claim),
        claim.tests,
        effect_words(effect),
        NONE if effect is None else str(effect.seeds),
        str(result.lost),
        second_words(result.second),
        printed_words(result),
        f"{claim.rule.describe()}. {result.why}",
    )


def quote_words(claim: Claim) -> str:
    """The paper's sentence with its place; only the place where the claim quotes none."""
    return f"{quote(claim)} ({claim.where})" if claim.quote else claim.where


def quote(claim: Claim) -> str:
    """The paper's sentence in quotation marks, those within it single."""
    return f"“{claim.quote.translate(SINGLE_QUOTES)}”"


def second_words(reading: ReadoutResult | None) -> str:
    """By kNN: holds, +1.32 [+0.40, +2.21] points; a dash where there is no other readout."""
    if reading is None:
        return NONE
    effect = f", {effect_words(reading.effect)}" if reading.effect else ""
    return f"by {reading.readout}: {reading.verdict}{effect}"


def printed_words(result: ClaimResult) -> str:
    """Whether the paper's own means agree, with their effect."""
    return f"{result.printed}, {effect_words(result.printed_effect)}" if result.printed_effect else result.printed


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
    missing = len(target.target.jobs(target.scale)) - len(target.results)
    texts = [target.target.place, f"scale {target.scale.name}", f"runs done: {len(target.results) - failed}"]
    texts += [f"failed: {failed}"] * bool(failed) + [f"still to run: {missing}"] * bool(missing)
    return "; ".join(texts) + "."


CELL_COLUMNS = (
    "target", "scale", "table", "row", "column", "measure", "unit", "mean", "spread", "n", "seeds", "lost", "failed",
    "missing", "best", "baseline", "paper_mean", "paper_spread", "paper_bold", "values",
)  # fmt: skip
READING_COLUMNS = ("readout", "verdict", "effect", "low", "high", "unit", "seeds", "p", "why")
CLAIM_COLUMNS = (
    "target", "scale", "claim", "where", "quote", "tests", "rule", "lost", *READING_COLUMNS,
    *(f"second_{name}" for name in READING_COLUMNS), "printed", "printed_effect",
)  # fmt: skip
MAX_WIDTH = 10_000
"""Letters of a line that no table needs."""
STYLES = {"holds": "green", "does not hold": "red", "can't tell": "yellow", "uninformative": "magenta"}
BASELINE = "italic dim"
HEAD = "% Needs \\usepackage{booktabs,graphicx}. Written by `phinets reproduce`.\n"
CLAIM_WIDTHS = r"lp{.3\linewidth}p{.22\linewidth}p{.15\linewidth}rrp{.18\linewidth}p{.12\linewidth}p{.3\linewidth}"
NARROW = 2
"""Columns of numbers up to which a table fits on a page as it is."""
SIGNS = {
    "±": r"\pm", "×": r"\times", "−": "-", "→": r"\to", "≤": r"\leq", "≥": r"\geq", "·": r"\cdot", "†": r"\dagger",
    "‡": r"\ddagger", "²": "^2", "½": r"\frac{1}{2}", "β": r"\beta", "γ": r"\gamma", "λ": r"\lambda", "ρ": r"\rho",
    "σ": r"\sigma", "τ": r"\tau", "φ": r"\phi", "ψ": r"\psi", "<": "<", ">": ">", "|": "|",
    "≈": r"\approx", "≪": r"\ll", "≫": r"\gg", "★": r"\star",
}  # fmt: skip
"""Signs that stand in math mode."""
ESCAPES = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#{}"},
        **{sign: f"${name}$" for sign, name in SIGNS.items()},
        "\\": r"\textbackslash{}", "_": r"\_\allowbreak{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        '"': "''", "“": "``", "”": "''", "‘": "`", "–": "--", "—": "---", "’": "'",
        "…": r"\ldots{}", "§": r"\S{}", "[": "{[}", "]": "{]}",
    }
)  # fmt: skip
"""Letters that mean something to LaTeX, or nothing; brackets, since after a line's end they would be its options."""


class Style(NamedTuple):
    """How a format writes a text."""

    plain: Callable[[str], str]
    bold: Callable[[str], str]
    italic: Callable[[str], str]


MARKDOWN = Style(str, "**{}**".format, lambda text: f"*{text}*" if text else "")


def report_markdown(results: Sequence[TargetResult]) -> str:
    """A whole document: how many claims hold, by target, and then every target."""
    claims = [claim for one in results for claim in one.claims]
    overview = [(f"{one.target.title} ({one.scale.name})", str(len(one.claims)), tally(one.claims)) for one in results]
    head = ("# The paper, re-run", f"Of {len(claims)} claims {tally(claims)}.")
    return "\n\n".join((*head, _markdown_table(("target", "claims", "verdicts"), overview), markdown(results)))


def markdown(results: Sequence[TargetResult]) -> str:
    """A section for each target: its tables, ours above the paper's, and its claims with their verdicts."""
    return "\n".join(_section(one) for one in results)


def _section(result: TargetResult) -> str:
    blocks = [f"## {sentence(result.target.title)}", f"`{result.target.name}`: {about(result)}"]
    blocks += [result.target.notes] if result.target.notes else []
    for table in shown_tables(result):
        rows = _rows(table, MARKDOWN, "*paper*")
        blocks += [f"**{title(table)}**", _markdown_table(headings(table), rows), legend(table)]
    if result.claims:
        blocks.append(_markdown_table(CLAIM_HEADINGS, [claim_line(claim) for claim in result.claims]))
    return "\n\n".join(blocks) + "\n"


def _rows(result: TableResult, style: Style, paper: str) -> Iterator[Sequence[str]]:
    """Rows of text, the paper's numbers below ours."""
    for line in lines(result):
        texts = [(cell.ours, cell.result.best, cell.marks) if cell else ("", False, "") for cell in line.cells]
        if line.baseline:
            yield style.italic(line.name), *(style.italic(ours) for ours, _, _ in texts)
            continue
        write = (style.plain, style.bold)
        yield style.plain(line.name), *(write[best](ours) + style.plain(marks) for ours, best, marks in texts)
        if any(cell is not None and cell.paper for cell in line.cells):
            yield paper, *("" if cell is None else write[cell.paper_bold](cell.paper) for cell in line.cells)


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    every = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in every)


def sentence(text: str) -> str:
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]


def csv_lines(results: Sequence[TargetResult]) -> list[list[str]]:
    """A line for each cell, numbers in full: one table of all tables."""
    cells = [(one, table, cell) for one in results for table in one.tables for cell in table.cells]
    return [list(CELL_COLUMNS), *([_plain(value) for value in _cell_values(*place)] for place in cells)]


def _cell_values(result: TargetResult, table: TableResult, cell: CellResult) -> tuple[object, ...]:
    of, paper = cell.cell, cell.printed
    printed = (None, None, None) if paper is None else (paper.mean, paper.spread, paper.bold)
    where = (result.target.name, result.scale.name, table.table.name, of.row, of.column, of.measure, table.table.unit)
    counts = (
        cell.n,
        len(cell.values),
        cell.lost,
        cell.failed,
        cell.missing,
        cell.best,
        of.row in table.table.baselines,
    )
    return (*where, cell.mean, cell.spread, *counts, *printed, ";".join(map(_plain, cell.values)))


def claim_csv_lines(results: Sequence[TargetResult]) -> list[list[str]]:
    """A line for each claim, numbers in full."""
    claims = [(one, claim) for one in results for claim in one.claims]
    return [list(CLAIM_COLUMNS), *([_plain(value) for value in _claim_values(*place)] for place in claims)]


def _claim_values(result: TargetResult, of: ClaimResult) -> tuple[object, ...]:
    claim = of.claim
    where = (result.target.name, result.scale.name, claim.name, claim.where, claim.quote, claim.tests)
    printed = None if of.printed_effect is None else of.printed_effect.size
    readings = (*_reading_values(of.first), *_reading_values(of.second))
    return (*where, claim.rule.describe(), of.lost, *readings, of.printed, printed)


def _reading_values(reading: ReadoutResult | None) -> tuple[object, ...]:
    """What stands below `READING_COLUMNS`."""
    if reading is None:
        return (None,) * len(READING_COLUMNS)
    of = reading.effect
    measured = (None,) * 6 if of is None else (of.size, of.low, of.high, of.unit, of.seeds, of.p)
    return (reading.readout, reading.verdict, *measured, reading.why)


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
        blocks += [_latex_table(table) for table in shown_tables(one)]
        if one.claims:
            rows = [[escape(word) for word in claim_line(claim)] for claim in one.claims]
            blocks.append(_latex_float(f"Claims: {one.target.title}.", CLAIM_WIDTHS, CLAIM_HEADINGS, rows, fit=True))
    return "\n".join(blocks)


def escape(text: str) -> str:
    """Words as LaTeX prints them; the hyphen before a number becomes a minus, ψ̇ the dot over a sign."""
    plain = re.sub(r"(?<!\w)-(?=\d)", "−", text).translate(ESCAPES)
    return re.sub("\\$([^$]+)\\$\u0307", r"$\\dot{\1}$", plain)


LATEX = Style(escape, lambda text: rf"\textbf{{{escape(text)}}}", lambda text: rf"\textit{{{escape(text)}}}")


def _latex_table(result: TableResult) -> str:
    paper, n = r"\quad\textit{paper}", len(result.table.columns)
    rows = list(_rows(result, LATEX, paper))
    baselines = sum(line.baseline for line in lines(result))
    if baselines:
        rows[-baselines] = ["\\midrule\n" + rows[-baselines][0], *rows[-baselines][1:]]
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
        console.print(Text(sentence(one.target.title), style="bold"))
        console.print(Text(about(one), style="dim"))
        for table in shown_tables(one):
            console.print(_terminal_table(console, table))
        if one.claims:
            console.print(_terminal_claims(one))


def _terminal_table(console: Console, result: TableResult) -> Table:
    """As the paper has it; rows as columns where that is narrower and the terminal too narrow."""
    first, *names = headings(result)
    rows = {line.name: tuple(_terminal_cell(cell, line.baseline) for cell in line.cells) for line in lines(result)}
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
        table.add_row(Text(row, style=BASELINE if row in result.table.baselines else ""), *cells)
    return table


def _terminal_cell(cell: CellText | None, baseline: bool) -> Text:
    """Ours, and the paper's in the line below."""
    if cell is None:
        return Text()
    if baseline:
        return Text(cell.ours, style=BASELINE)
    text = Text.assemble((cell.ours, "bold" if cell.result.best else ""), cell.marks)
    if cell.paper:
        text.append("\n" + cell.paper, style="bold dim" if cell.paper_bold else "dim")
    return text


def _terminal_claims(result: TargetResult) -> Table:
    """As narrow as a terminal is: the rules are in the files."""
    table = Table(title=Text(f"Of {len(result.claims)} claims {tally(result.claims)}."), title_justify="left")
    for heading in ("verdict", "claim", "effect [95 % interval]"):
        table.add_column(Text(heading), overflow="fold")
    for claim in result.claims:
        says = Text.assemble(claim.claim.tests, "\n", (quote_words(claim.claim), "dim"))
        table.add_row(Text(claim.verdict, style=STYLES[claim.verdict]), says, _terminal_effect(claim))
    return table


def _terminal_effect(claim: ClaimResult) -> Text:
    """With its seeds; then by the other readout, and on the paper's numbers."""
    seeds = f", n = {claim.effect.seeds}" if claim.effect is not None else ""
    lost = f", {claim.lost} collapsed" if claim.lost else ""
    second = f"\n{second_words(claim.second)}" if claim.second is not None else ""
    return Text(f"{effect_words(claim.effect)}{seeds}{lost}{second}\npaper's numbers: {printed_words(claim)}")
