"""The paper's tables and claims as LaTeX: tables by booktabs, to be read in by `\\input`."""

import re
from collections.abc import Sequence

from phinets.paper.findings import TableResult, TargetResult
from phinets.reports.paper_cells import CLAIM_HEADINGS, CellText, about, claim_line, headings, legend, lines, title

HEAD = "% Needs \\usepackage{booktabs,graphicx}. Written by `phinets reproduce`.\n"
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


def latex(found: Sequence[TargetResult]) -> str:
    """All tables, and a table of the claims, of some targets."""
    parts = [HEAD]
    for one in found:
        parts.append(f"% {one.target.name}: {_comment(about(one))}\n")
        parts += [_table(table) for table in one.tables]
        parts += [_claims(one)] if one.claims else []
    return "\n".join(parts)


def escape(text: str) -> str:
    """Words as LaTeX prints them; the minus of a number is one."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text).translate(ESCAPES)


def _comment(text: str) -> str:
    return " ".join(text.split())


def _table(found: TableResult) -> str:
    body = []
    for line in lines(found):
        body.append(_row([escape(line.name), *map(_ours, line.cells)]))
        if line.has_paper:
            body.append(_row([r"\quad\textit{paper}", *map(_paper, line.cells)]))
    columns = "l" + "r" * len(found.table.columns)
    head = _row([escape(name) for name in headings(found)])
    tabular = _tabular(columns, head, body)
    return _float(f"{title(found)}. {legend(found)}", tabular, fitted=len(found.table.columns) > NARROW)


def _claims(found: TargetResult) -> str:
    columns = r"lp{.26\linewidth}p{.19\linewidth}p{.18\linewidth}rrp{.3\linewidth}"
    head = _row([escape(name) for name in CLAIM_HEADINGS])
    body = [_row([escape(word) for word in claim_line(claim)]) for claim in found.claims]
    return _float(f"Claims: {found.target.title}.", _tabular(columns, head, body), fitted=True)


def _tabular(columns: str, head: str, body: Sequence[str]) -> str:
    inside = "\n".join((r"\toprule", head, r"\midrule", *body, r"\bottomrule"))
    return f"\\begin{{tabular}}{{{columns}}}\n{inside}\n\\end{{tabular}}"


def _float(caption: str, tabular: str, *, fitted: bool) -> str:
    """A table with its caption; a wide one is made as wide as the page."""
    placed = f"\\resizebox{{\\linewidth}}{{!}}{{%\n{tabular}%\n}}" if fitted else tabular
    head = "\\begin{table}[htbp]\n\\centering\n\\footnotesize"
    return f"{head}\n\\caption{{{escape(caption)}}}\n{placed}\n\\end{{table}}\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _ours(cell: CellText | None) -> str:
    return "" if cell is None else _bold(cell.ours, cell.result.best) + escape(cell.marks)


def _paper(cell: CellText | None) -> str:
    return "" if cell is None else _bold(cell.paper, cell.paper_bold)


def _bold(text: str, bold: bool) -> str:
    return rf"\textbf{{{escape(text)}}}" if bold else escape(text)
