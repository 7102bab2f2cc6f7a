"""`phinets list`."""

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from phinets.cli.command import Outcome, parse_words, show_rows
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
    options = parse_words(List, "list", words)
    rows = _rows(options.kind)
    return Outcome(rows, show_rows(rows))


def _rows(kind: Kind) -> dict[str, str]:
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
