"""`phinets list`."""

from collections.abc import Mapping
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
    """List what a kind of option accepts, one line each.

    Example: phinets list methods
    """

    kind: Annotated[Kind, tyro.conf.Positional]
    """What to list."""
    json: bool = False
    """Print one JSON document: names and what they are."""


def command(words: list[str]) -> Outcome:
    """List the names of a kind with a line on each."""
    options = parse_words(List, "list", words)
    rows = _rows(options.kind)
    return Outcome(rows, lambda console: _show(console, rows))


def _show(console: Console, rows: Mapping[str, str]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, what in rows.items():
        table.add_row(name, what)
    console.print(table, highlight=False, markup=False)


def _rows(kind: Kind) -> dict[str, str]:
    """Names and what they are."""
    match kind:
        case "methods":
            return {name: describe(value) for name, value in METHODS.items()}
        case "backbones":
            from phinets.backbones import BACKBONES, describe_backbone

            return {name: describe_backbone(name) for name in BACKBONES} | {
                "timm:NAME": "any timm model, when timm is installed",
                "package.module.callable": "your own: a callable that returns an nn.Module with features (n, d)",
            }
        case "data":
            from phinets.data import describe_data

            return describe_data()
        case "views":
            return {name: plan.describe() for name, plan in PLANS.items()}
        case "recipes":
            return {name: describe_recipe(name) for name in RECIPES}
        case "benchmarks":
            return {name: describe_benchmark(name) for name in BENCHMARKS}
