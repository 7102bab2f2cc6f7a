"""What learners cost, as the paper's two tables of computational costs: memory, and training time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from phinets.config.jobs import REFERENCE, Cost
from phinets.config.plain import to_plain
from phinets.paper.grids import LEARNERS
from phinets.paper.numbers import paper_numbers
from phinets.reports.figures import decimal


def paper_costs(batch: int, method: str) -> dict[str, float | None] | None:
    """The paper's figures of a learner (ResNet-18 on its GPU), and their ratios to its SimSiam; None without any.

    The table of times has a single X-PhiNet, which counts as the MSE one; the other one has its memory alone.
    """
    costs: dict[str, float | None] = {}
    for table, unit in (("memory", "gigabytes"), ("time", "hours")):
        cells = paper_numbers(table).items()
        numbers = {LEARNERS[name]: cell.mean for (row, name), cell in cells if row == f"batch {batch}"}
        own, reference = numbers.get(method), numbers.get(REFERENCE)
        costs |= {unit: own, f"{table}_to_simsiam": None if own is None or reference is None else own / reference}
    return None if set(costs.values()) == {None} else costs


def cost_rows(costs: Iterable[Cost]) -> list[dict[str, Any]]:
    """The costs as plain rows, the paper's figures beside them."""
    return [
        {**to_plain(cost), "hours_800_epochs": cost.hours_800_epochs, "paper": paper_costs(cost.batch, cost.method)}
        for cost in costs
    ]


Column = tuple[str, Callable[[Mapping[str, Any]], str]]
"""A heading, and the text below it for a row."""


def memory_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Memory at the worst moment of a step, by batch size and learner."""
    unit, size = ("GB", 1e9) if max((row["bytes"] or 0 for row in rows), default=0) >= 1e9 else ("MB", 1e6)

    def memory(row: Mapping[str, Any]) -> str:
        return _measured_number(row, row["bytes"] and row["bytes"] / size, 2 if unit == "GB" else 1)

    columns: list[Column] = [(unit, memory), ("× SimSiam", lambda row: decimal(row["memory_to_simsiam"], 2))]
    return _table("Memory of a step", rows, columns + _paper_columns(rows, "GB", "gigabytes", "memory_to_simsiam"))


def time_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Time of a step, and of the paper's run if all its steps took as long, by batch size and learner."""
    columns: list[Column] = [
        ("ms", lambda row: _measured_number(row, row["seconds"] and 1000 * row["seconds"], 1)),
        ("× SimSiam", lambda row: decimal(row["time_to_simsiam"], 2)),
        ("extra-\npolated h", lambda row: decimal(row["hours_800_epochs"], 2)),
    ]
    return _table("Time of a step", rows, columns + _paper_columns(rows, "h", "hours", "time_to_simsiam"))


def _paper_columns(rows: Sequence[Mapping[str, Any]], unit: str, figure: str, ratio: str) -> list[Column]:
    """The paper's figures and their ratios to its SimSiam, where it has any of these rows."""
    if not any(row["paper"] for row in rows):
        return []

    def cell(name: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: "" if row["paper"] is None else decimal(row["paper"][name], 2)

    return [(f"paper\n{unit}", cell(figure)), ("paper\n×", cell(ratio))]


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> Table:
    """One line per learner, in a section per batch size."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("learner", no_wrap=True)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for batch, group in groupby(rows, key=lambda row: row["batch"]):
        table.add_row(Text(f"batch {batch}", style="bold"))
        for row in group:
            table.add_row(f"  {row['method']}", *(cell(row) for _, cell in columns))
    return table


def _measured_number(row: Mapping[str, Any], value: float | None, places: int) -> str:
    """A measured number, or why there is none."""
    return "out of memory" if row["out_of_memory"] else decimal(value, places)
