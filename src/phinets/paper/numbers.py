"""The paper's own numbers, by table, row and column: read from numbers.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperNumber:
    """A number as the paper prints it."""

    mean: float | None
    """None where the paper prints nan."""
    spread: float | None
    """None where the paper prints none."""
    bold: bool = False


def paper_numbers(table: str) -> Mapping[tuple[str, str], PaperNumber]:
    """The paper's numbers of a table by row and column; empty where it prints none."""
    of_table = _document().get(table, {"columns": [], "rows": {}})
    return {
        (str(row), str(column)): _number(text)
        for row, cells in of_table["rows"].items()
        for column, text in zip(of_table["columns"], cells, strict=True)
    }


@cache
def _document() -> Mapping[str, Any]:
    """The file as it stands."""
    document: Mapping[str, Any] = yaml.safe_load(files("phinets.paper").joinpath("numbers.yaml").read_text("utf-8"))
    return document


def _number(text: float | str | None) -> PaperNumber:
    """From `87.46 ± 0.14*`, `87.46`, or nothing (the paper prints nan)."""
    if text is None:
        return PaperNumber(mean=None, spread=None)
    words = str(text).removesuffix("*")  # printed bold
    mean, _, spread = words.partition("±")
    return PaperNumber(mean=float(mean), spread=float(spread) if spread else None, bold=words != str(text))
