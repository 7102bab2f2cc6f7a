"""`phinets list`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from phinets.cli.command import Outcome, parse_words
from phinets.config.methods import METHODS, describe
from phinets.config.views import PLANS
from phinets.runs.recipes import BENCHMARKS, RECIPES, describe_benchmark, describe_recipe

Kind = Literal["methods", "backbones", "data", "views", "recipes", "benchmarks"]


@dataclass(frozen=True)
class List:
    """What there is, one line each.

    Example: phinets list methods
    """

    kind: Annotated[Kind, tyro.conf.Positional]
    """What to list."""
    json: bool = False
    """Print one JSON document: names and what they are."""


def command(words: list[str]) -> Outcome:
    """The names of a kind, and a line on each."""
    options = parse_words(List, "list", words)
    rows = LISTS[options.kind]()
    return Outcome(rows, lambda console: _show(console, rows))


def _show(console: Console, rows: Mapping[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, what in rows.items():
        table.add_row(name, what)
    console.print(table, highlight=False, markup=False)


def _methods() -> dict[str, str]:
    return {name: describe(value) for name, value in METHODS.items()}


def _backbones() -> dict[str, str]:
    from phinets.backbones import BACKBONES, describe_backbone

    further = {
        "timm:NAME": "any timm model, when timm is installed",
        "package.module.callable": "your own: whatever returns an nn.Module that gives features (n, d)",
    }
    return {name: describe_backbone(name) for name in BACKBONES} | further


def _data() -> dict[str, str]:
    from phinets.data import describe_data

    return describe_data()


def _views() -> dict[str, str]:
    return {name: plan.describe() for name, plan in PLANS.items()}


def _recipes() -> dict[str, str]:
    return {name: describe_recipe(name) for name in RECIPES}


def _benchmarks() -> dict[str, str]:
    return {name: describe_benchmark(name) for name in BENCHMARKS}


LISTS: Mapping[Kind, Callable[[], dict[str, str]]] = {
    "methods": _methods,
    "backbones": _backbones,
    "data": _data,
    "views": _views,
    "recipes": _recipes,
    "benchmarks": _benchmarks,
}
