"""What was found, in writing: Markdown, CSV, LaTeX, the terminal."""

import csv
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from phinets.config.jobs import Result
from phinets.paper.findings import TargetResult, target_result
from phinets.paper.rules import Collapse, Higher
from phinets.paper.targets import TARGETS
from phinets.reports.paper_tables import (
    claim_csv_lines,
    csv_lines,
    escape,
    latex,
    lines,
    markdown,
    quote_words,
    report_markdown,
    show,
)
from tests.paper.targets import POCKET, SMOKE, Numbers, results, table, target

BYOL, OTHER, THIRD = ("CIFAR-5m", "BYOL"), ("CIFAR-5m", "SimSiam"), ("CIFAR-5m", "X-PhiNet (Cos)")
NUMBERS: Numbers = {BYOL: (1 / 3, 2 / 3, None), OTHER: (70.123456789, 71.0, 72.0), THIRD: (None, None, None)}
RULES = (
    Higher(table="cifar5m", over=("SimSiam",), under=("BYOL",), along="columns"),
    Higher(table="cifar5m", over=("SimSiam",), under=("X-PhiNet (Cos)",), along="columns"),
    Collapse(table="cifar5m", names=("BYOL", "SimSiam"), along="columns"),
)


def made() -> TargetResult:
    """Of BYOL one seed collapsed and one failed; of the third all diverged but one that is missing."""
    grid = table(NUMBERS, name="cifar5m", best_in="row", columns_are="method")
    health: Mapping[tuple[str, str], Sequence[str | None]] = {
        BYOL: ("healthy", "collapsed", None), THIRD: ("diverged", "diverged", None),
    }  # fmt: skip
    done = results(grid, NUMBERS, health)  # type: ignore[arg-type]
    broken = grid.at[BYOL].jobs[2]
    return target_result(target(grid, rules=RULES), POCKET, {**done, broken.key: Result(job=broken, failed="no data")})


@cache
def empty(name: str) -> TargetResult:
    """A target of the paper before anything is run."""
    return target_result(TARGETS[name], SMOKE, {})


def read_back(written: list[list[str]]) -> list[dict[str, str]]:
    file = StringIO(newline="")
    csv.writer(file).writerows(written)
    return list(csv.DictReader(StringIO(file.getvalue(), newline="")))


def number(text: str) -> float | None:
    return float(text) if text else None


def row_after(text: str, name: str, lines_below: int = 0) -> list[str]:
    """The cells of a Markdown row."""
    rows = text.splitlines()
    at = next(n for n, row in enumerate(rows) if row.startswith(f"| {name} |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", rows[at + lines_below])[1:-1]]


def test_a_csv_read_back_gives_the_same_numbers() -> None:
    one = made()
    rows = read_back(csv_lines([one]))
    cells = [(table.table, cell) for table in one.tables for cell in table.cells]
    assert len(rows) == 2 * 3 * len(NUMBERS), "by both readouts, the runs and two baselines"
    for row, (grid, cell) in zip(rows, cells, strict=True):
        assert row["baseline"] == ("yes" if cell.cell.row in grid.baselines else "no")
        assert row["measure"] == cell.cell.measure
    for row, cell in zip(rows, one.tables[0].cells[: len(NUMBERS)], strict=False):
        assert (row["row"], row["column"], row["table"], row["target"]) == (*place(cell), "cifar5m", "made")
        assert (number(row["mean"]), number(row["spread"])) == (cell.mean, cell.spread)
        assert tuple(map(number, row["values"].split(";"))) == cell.values
        counts = [int(row[name]) for name in ("n", "seeds", "lost", "failed", "missing")]
        assert counts == [cell.n, 3, cell.lost, cell.failed, cell.missing]
        assert row["best"] == ("yes" if cell.best else "no")
        assert cell.printed is not None
        assert (number(row["paper_mean"]), number(row["paper_spread"])) == (cell.printed.mean, cell.printed.spread)
        assert row["paper_bold"] == ("yes" if cell.printed.bold else "no")


def place(cell: object) -> tuple[str, str]:
    of = cell.cell  # type: ignore[attr-defined]
    return of.row, of.column


def test_claims_read_back_are_the_same_too() -> None:
    one = made()
    rows = read_back(claim_csv_lines([one]))
    for row, claim in zip(rows, one.claims, strict=True):
        assert row["claim"] == claim.claim.name
        assert (row["where"], row["quote"], row["tests"]) == ("§ 1", "It is so.", "so it is")
        assert row["rule"] == claim.claim.rule.describe()
        assert int(row["lost"]) == claim.lost
        assert claim.second is not None
        for prefix, reading in (("", claim.first), ("second_", claim.second)):
            effect = reading.effect
            sizes = (None,) * 4 if effect is None else (effect.size, effect.low, effect.high, effect.p)
            assert tuple(number(row[f"{prefix}{name}"]) for name in ("effect", "low", "high", "p")) == sizes
            words = (reading.readout, reading.verdict, reading.why)
            assert tuple(row[f"{prefix}{name}"] for name in ("readout", "verdict", "why")) == words
        assert row["printed"] == claim.printed
        assert number(row["printed_effect"]) == (claim.printed_effect.size if claim.printed_effect else None)
    assert [row["lost"] for row in rows] == ["1", "2", "1"]


def test_a_cell_says_mean_spread_seeds_and_what_was_lost_or_failed() -> None:
    assert row_after(markdown([made()]), "CIFAR-5m") == [
        "CIFAR-5m", "0.50 ± 0.24 (2 of 3) †1 ‡1", "**71.04 ± 0.94 (3)**", "– †2",
    ]  # fmt: skip


def test_the_paper_s_row_stands_below_with_its_own_bold() -> None:
    below = row_after(markdown([made()]), "CIFAR-5m", 1)
    assert below == ["*paper*", "81.05 ± 0.04", "77.71 ± 1.97", "**87.46 ± 0.14**"]


def test_marks_are_explained_where_they_stand_and_only_there() -> None:
    text = markdown([made()])
    assert "†k: k seeds collapsed or diverged" in text
    assert "‡k: k seeds failed" in text
    clean: Numbers = {("a", "x"): (1.0, 2.0)}
    grid = table(clean)
    other = markdown([target_result(target(grid), POCKET, results(grid, clean))])
    assert "†" not in other
    assert "‡" not in other
    assert "paper's" not in other


def best_numbers(seeds: int = 3) -> TargetResult:
    numbers: Numbers = {
        (row, column): tuple(10.0 * n + 7 * k + 0.1 * seed for seed in range(seeds))
        for n, row in enumerate("abcd")
        for k, column in enumerate("xyz")
    }
    grid = table(numbers)
    return target_result(target(grid), POCKET, results(grid, numbers))


def test_bold_is_exactly_where_best_is() -> None:
    one = best_numbers()
    best = {place(cell): cell.best for cell in one.tables[0].cells}
    assert 0 < sum(best.values()) < len(best)
    tex = {first: cells for first, *cells in (line.split(" & ") for line in latex([one]).splitlines())}
    for row in "abcd":
        in_markdown = [cell.startswith("**") for cell in row_after(markdown([one]), row)[1:]]
        in_latex = [cell.startswith(r"\textbf{") for cell in tex[row]]
        assert in_markdown == in_latex == [best[row, column] for column in "xyz"]


def test_on_the_terminal_too() -> None:
    one = best_numbers()
    file = StringIO()
    show(Console(file=file, width=100, force_terminal=True, color_system="standard"), [one])
    bold = re.findall(r"\x1b\[1m(\d+\.\d+ ± \d+\.\d+ \(3\))", file.getvalue())
    written = {(line.name, n): cell for line in lines(one.tables[0]) for n, cell in enumerate(line.cells)}
    assert sorted(bold) == sorted(cell.ours for cell in written.values() if cell is not None and cell.result.best)


@pytest.mark.parametrize(
    ("size", "said"), [(70.0, "70.00 (1)"), (0.05, "0.0500 (1)"), (0.5, "0.500 (1)"), (0.0, "0.00 (1)")]
)
def test_small_numbers_have_more_decimals(size: float, said: str) -> None:
    numbers: Numbers = {("a", "x"): (size,)}
    grid = table(numbers)
    assert row_after(markdown([target_result(target(grid), POCKET, results(grid, numbers))]), "a")[1].strip("*") == said


def test_claims_stand_with_verdict_effect_interval_seeds_collapsed_and_rule() -> None:
    one = made()
    text = markdown([one])
    first = one.claims[0]
    assert first.effect is not None
    row = row_after(text, first.verdict)
    effect = first.effect
    assert row[1:3] == ["“It is so.” (§ 1)", "so it is"]
    assert row[3] == f"{effect.size:+.2f} [{effect.low:+.2f}, {effect.high:+.2f}] points"
    assert row[4:7] == ["2", "1", "by linear probe: can't tell"]
    assert row[7] == f"disagree, {77.71 - 81.05:+.2f} points"
    assert row[8].startswith(first.claim.rule.describe())
    assert row_after(text, "can't tell", 1)[3:5] == ["–", "–"]


def measured(learned: float = 9.0) -> TargetResult:
    """Two methods by both readouts, five seeds, with the untrained encoder and raw pixels below them."""
    numbers: Numbers = {(row, "x"): tuple(level + 0.1 * seed for seed in range(5)) for row, level in LEVELS.items()}
    grid = table(numbers)
    rule = Higher(table="t", over=("a",), under=("b",))
    done = {
        key: replace(result, numbers=both_readouts(result.numbers["knn"] or 0.0, learned))
        for key, result in results(grid, numbers).items()
    }
    return target_result(target(grid, rules=(rule,)), POCKET, done)


LEVELS = {"a": 62.0, "b": 60.0}


def both_readouts(value: float, learned: float) -> dict[str, float]:
    """By the linear probe the methods are in reverse."""
    both = {"knn": value, "linear": 122 - value}
    before = {f"{name}_{what}": 62.0 - learned for name in both for what in ("untrained", "pixels")}
    return {**both, **before}


def test_a_claim_has_its_verdict_by_the_other_readout_beside_it() -> None:
    (claim,) = measured().claims
    assert claim.verdict == "holds"
    row = row_after(markdown([measured()]), "holds")
    assert row[6].startswith("by linear probe: does not hold, -2.00 [-2.00, -2.00] points")
    assert row[7] == "not printed"
    text = " ".join(shown(measured(), 200).split())
    assert "by linear probe: does not hold, -2.00" in text
    assert "“It is so.” (§ 1)" in text


def test_runs_that_learned_little_are_uninformative() -> None:
    one = measured(learned=1.0)
    assert "1 uninformative" in report_markdown([one])
    assert row_after(markdown([one]), "uninformative")[3] == "+2.00 [+2.00, +2.00] points"


def test_baselines_stand_below_in_italics_apart_and_never_bold() -> None:
    one = measured()
    rows = [row_after(markdown([one]), f"*{name}*") for name in ("untrained", "raw pixels")]
    assert rows == [[f"*{name}*", "*53.00 ± 0.00 (5)*"] for name in ("untrained", "raw pixels")]
    tex = latex([one]).splitlines()
    at = tex.index(r"\textit{untrained} & \textit{53.00 $\pm$ 0.00 (5)} \\")
    assert tex[at - 1] == r"\midrule"
    assert "italic" in markdown([one])
    empty_of_them = target_result(target(best_numbers().tables[0].table), POCKET, {})
    assert "untrained" not in markdown([empty_of_them]), "nor where nothing measured them"


def test_collapsed_seeds_count_as_chance_and_the_legend_says_so() -> None:
    numbers: Numbers = {("a", "x"): (60.0, 62.0)}
    grid = table(numbers)
    grid = replace(grid, cells=tuple(replace(cell, chance=10.0) for cell in grid.cells))
    done = results(grid, numbers, {("a", "x"): ("collapsed", "healthy")})
    text = markdown([target_result(target(grid), POCKET, done)])
    assert row_after(text, "a")[1].startswith("**36.00 ± 36.77 (2)**")
    assert "†k: k seeds collapsed or diverged, which counts as chance" in text


def test_quotation_marks_within_a_quotation_are_single() -> None:
    claim = replace(measured().claims[0].claim, quote="“with aug” is worse")
    assert quote_words(claim) == "“‘with aug’ is worse” (§ 1)"
    assert escape(quote_words(claim)) == r"```with aug' is worse'' ($\S{}$ 1)".replace("$", "")


def test_an_effect_without_a_second_seed_has_no_interval() -> None:
    numbers: Numbers = {("a", "x"): (2.0,), ("b", "x"): (1.0,)}
    grid = table(numbers)
    rule = Higher(table="t", over=("a",), under=("b",))
    text = markdown([target_result(target(grid, rules=(rule,)), POCKET, results(grid, numbers))])
    assert row_after(text, "can't tell")[3] == "+1.00 points"


def test_the_whole_document_counts_the_verdicts() -> None:
    one = made()
    words = [claim.verdict for claim in one.claims]
    text = report_markdown([one, one])
    counts = [2 * words.count(word) for word in ("holds", "does not hold", "can't tell", "uninformative")]
    assert "Of 6 claims {} hold, {} do not hold, {} can't be told, {} uninformative.".format(*counts) in text
    assert text.count("\n## ") == 2


def test_a_bar_in_a_name_breaks_no_markdown_table() -> None:
    numbers: Numbers = {("a|b", "x"): (1.0,)}
    grid = table(numbers)
    text = markdown([target_result(target(grid), POCKET, results(grid, numbers))])
    assert row_after(text, r"a\|b") == [r"a\|b", "**1.00 (1)**"]


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_of_the_paper_is_written_in_whole_tables(name: str) -> None:
    one = empty(name)
    blocks = re.findall(r"(?:^\|.*\n)+", markdown([one]), flags=re.MULTILINE)
    assert len(blocks) == len(one.target.tables(SMOKE)) + bool(one.claims)
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    tex = latex([one])
    assert tex.isascii()
    assert len(re.findall(r"(?<!\\)\{", tex)) == len(re.findall(r"(?<!\\)\}", tex))
    for columns, body in re.findall(r"\\begin\{tabular\}\{(.*)\}\n((?:.*\n)*?)\\end\{tabular\}", tex):
        width = len(re.sub(r"p\{[^}]*\}", "p", columns))
        rows = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {width}


@pytest.mark.parametrize(
    ("plain", "tex"),
    [
        ("50 % & more", r"50 \% \& more"),
        ("a_b", r"a\_\allowbreak{}b"),
        ("{x} # $", r"\{x\} \# \$"),
        ("~^\\", r"\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("-1.5 ± 0.2 †1", r"$-$1.5 $\pm$ 0.2 $\dagger$1"),
        ("X-PhiNet at 5e-05", "X-PhiNet at 5e-05"),
        ("EMA β →", r"EMA $\beta$ $\to$"),
        ("[-1, 2]", "{[}$-$1, 2{]}"),
        ("★: γ = 0, ψ̇ = 0", r"$\star$: $\gamma$ = 0, $\dot{\psi}$ = 0"),
    ],
)
def test_what_latex_would_misread_is_escaped(plain: str, tex: str) -> None:
    assert escape(plain) == tex


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex")
def test_all_of_it_compiles(tmp_path: Path) -> None:
    nasty: Numbers = {("50 % & {x}_y^z~#$\\", "β → [−½]"): (1.0, -2.0)}
    grid = table(nasty, columns_are="a_b")
    every = [*map(empty, TARGETS), made(), target_result(target(grid), POCKET, results(grid, nasty))]
    floats = latex(every).replace(r"\end{table}", r"\end{table}\clearpage")
    whole = rf"\documentclass{{article}}\usepackage{{booktabs,graphicx}}\begin{{document}}{floats}\end{{document}}"
    (tmp_path / "all.tex").write_text(whole.replace(r"\begin{document}", "\\begin{document}\n"))
    done = subprocess.run(
        ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]


def shown(found: TargetResult, width: int) -> str:
    file = StringIO()
    show(Console(file=file, width=width), [found])
    return file.getvalue()


def test_the_terminal_shows_ours_the_paper_s_and_the_claims() -> None:
    text = shown(made(), 120)
    assert "0.50 ± 0.24 (2 of 3) †1 ‡1" in text
    assert "87.46 ± 0.14" in text
    assert "Of 3 claims" in text
    assert all(claim.verdict in text for claim in made().claims)


@pytest.mark.parametrize("name", TARGETS)
def test_on_80_columns_nothing_is_cut_off(name: str) -> None:
    one = empty(name)
    cut = "…" in shown(one, 80)
    assert not cut


def test_a_table_of_many_columns_is_turned_on_a_narrow_terminal() -> None:
    wide, narrow = (shown(made(), width) for width in (120, 60))
    assert "method →" in wide
    assert "method ↓" in narrow
    for text in (wide, narrow):
        assert all(word in text for word in ("BYOL", "SimSiam", "X-PhiNet (Cos)", "71.04 ± 0.94 (3)", "87.46 ± 0.14"))


def test_names_in_brackets_are_no_colors() -> None:
    numbers: Numbers = {("[red]a", "[bold]x"): (1.0,)}
    grid = table(numbers)
    one = target_result(target(replace(grid, title="[blue]t")), POCKET, results(grid, numbers))
    text = shown(one, 100)
    assert all(word in text for word in ("[red]a", "[bold]x", "[blue]t"))
