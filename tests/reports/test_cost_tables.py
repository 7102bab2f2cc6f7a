"""The two tables of computational costs, beside the paper's."""

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from phinets.config.jobs import Cost
from phinets.config.methods import METHODS
from phinets.reports.cost import cost_rows, memory_table, paper_costs, time_table

MEMORY_COLUMNS = ("byol", "simsiam", "barlow-twins", "phinet", "rm-simsiam", "x-phinet", "x-phinet/cosine")
MEMORY = {
    128: "4.3 (GB)  & 3.26 (GB) & 2.79 (GB) & 3.25 (GB)  & 4.06 (GB) & 3.44 (GB)  & 3.44 (GB)",
    1024: "22.28 (GB) & 17.10 (GB) & 12.23 (GB) & 17.18 (GB) & 21.96 (GB) & 17.11 (GB) & 17.11 (GB)",
}
TIME_COLUMNS = ("simsiam", "byol", "barlow-twins", "rm-simsiam", "phinet", "x-phinet")
TIME = {
    128: "6.89 (h)  & 7.09 (h)  & 21.38 (h) & 7.76 (h)  & 6.89 (h)  & 7.04 (h)",
    1024: "6.74 (h)  & 6.51 (h)  & 7.68 (h)  & 7.03 (h)  & 6.44 (h)  & 6.52 (h)",
}


def numbers(line: str) -> list[float]:
    return [float(found) for found in re.findall(r"[\d.]+(?= \()", line)]


def one(method: str = "phinet", batch: int = 128, seconds: float | None = 0.1, **more: Any) -> Cost:
    figures = {"time_to_simsiam": 1.5, "bytes": 50_400_000, "memory_to_simsiam": 1.25, **more}
    return Cost(method=method, batch=batch, seconds=seconds, **figures)


def drawn(table: Table, width: int = 80) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


def line_of(text: str, method: str) -> list[str]:
    return next(line.split()[1:] for line in text.splitlines() if line.split()[:1] == [method])


@pytest.mark.parametrize("batch", [128, 1024])
def test_the_paper_s_tables_are_its_own_line_by_line(batch: int) -> None:
    figures = {name: paper_costs(batch, name) for name in METHODS}
    known = {name: found for name, found in figures.items() if found is not None}
    memory = {name: found["gigabytes"] for name, found in known.items()}
    hours = {name: found["hours"] for name, found in known.items() if found["hours"] is not None}
    assert memory == dict(zip(MEMORY_COLUMNS, numbers(MEMORY[batch]), strict=True))
    assert hours == dict(zip(TIME_COLUMNS, numbers(TIME[batch]), strict=True))


def test_the_paper_s_ratios_are_to_its_own_simsiam_at_the_same_batch() -> None:
    found = paper_costs(1024, "phinet")
    assert found == {
        "gigabytes": 17.18,
        "memory_to_simsiam": pytest.approx(17.18 / 17.10),
        "hours": 6.44,
        "time_to_simsiam": pytest.approx(6.44 / 6.74),
    }
    assert paper_costs(256, "phinet") is None
    assert paper_costs(128, "moco-v2") is None


def test_a_row_carries_the_cost_its_extrapolation_and_the_paper_s_figures() -> None:
    (row,) = cost_rows([one()])
    assert (row["method"], row["batch"], row["seconds"], row["out_of_memory"]) == ("phinet", 128, 0.1, False)
    assert row["hours_800_epochs"] == pytest.approx(0.1 * 800 * 390 / 3600)
    assert row["paper"] == paper_costs(128, "phinet")


def test_the_tables_show_the_numbers_and_the_paper_s_beside_them() -> None:
    rows = cost_rows([one(), one("moco-v2")])
    assert line_of(drawn(memory_table(rows)), "phinet") == ["50.4", "1.25", "3.25", "1.00"]
    assert line_of(drawn(time_table(rows)), "phinet") == ["100.0", "1.50", "8.67", "6.89", "1.00"]
    assert line_of(drawn(memory_table(rows)), "moco-v2") == ["50.4", "1.25"]


def test_batches_have_their_sections_and_the_paper_is_named_only_where_it_has_figures() -> None:
    text = drawn(memory_table(cost_rows([one(batch=64), one(batch=32)])))
    assert text.index("batch 64") < text.index("batch 32")
    assert "paper" not in text


def test_memory_is_told_in_the_unit_of_its_largest() -> None:
    text = drawn(memory_table(cost_rows([one(), one("byol", bytes=2_500_000_000)])))
    assert line_of(text, "byol")[0] == "2.50"
    assert line_of(text, "phinet")[0] == "0.05"


def test_what_does_not_fit_and_what_is_not_measured_are_told_apart() -> None:
    missing: dict[str, Any] = {"bytes": None, "memory_to_simsiam": None}
    rows = cost_rows([one("byol", seconds=None, time_to_simsiam=None, out_of_memory=True, **missing), one(**missing)])
    for table in (memory_table(rows), time_table(rows)):
        assert line_of(drawn(table), "byol")[:3] == ["out", "of", "memory"]
    assert line_of(drawn(memory_table(rows)), "phinet")[:2] == ["–", "–"]


@pytest.mark.parametrize("table", [memory_table, time_table])
def test_every_learner_fits_on_a_terminal_of_80_columns(table: Any) -> None:
    rows: Sequence[dict[str, Any]] = cost_rows([one(name, batch=1024, seconds=10.0, bytes=10**9) for name in METHODS])
    text = drawn(table(rows))
    assert "…" not in text
    assert all(line_of(text, name) for name in METHODS)
