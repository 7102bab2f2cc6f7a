"""`phinets dynamics equilibria`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from phinets.cli.dynamics.setting import Setting
from phinets.cli.outcome import Outcome
from phinets.cli.parsing import parse_words

if TYPE_CHECKING:
    from phinets.dynamics.equilibria import Equilibrium


@dataclass(frozen=True)
class Options(Setting):
    """All states that a flow leaves where they are, with their kind and the eigenvalues of the Jacobian.

    Example: phinets dynamics equilibria --version published --sigma2 1.5 --rho 0.003
    """

    json: bool = False
    """Print one JSON document; an eigenvalue is a number where it is real, {re, im} where not."""


def command(words: list[str]) -> Outcome:
    """All equilibria."""
    options = parse_words(Options, "dynamics equilibria", words)
    from phinets.dynamics.equilibria import equilibria

    found = equilibria(options.flow())
    document = options.plain() | {
        "equilibria": [each.plain() for each in found],
        "sinks": sum(each.kind == "sink" for each in found),
    }
    return Outcome(document, lambda console: _show(console, found))


def _show(console: Console, found: "Sequence[Equilibrium]") -> None:
    """One line each, never cut short: a number without its end says something else."""
    rows = [[*found[0].variables, "kind", "eigenvalues"]]
    for each in found:
        values = (f"{value:.8g}" for value in each.state)
        kind = each.kind + ", collapsed" * each.collapsed
        rows.append([*values, kind, "  ".join(map(_short, each.eigenvalues))])
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True))
        console.print(line.rstrip(), highlight=False, markup=False, soft_wrap=True)


def _short(value: complex) -> str:
    return f"{value.real:.4g}" if value.imag == 0 else f"{value.real:.4g}{value.imag:+.4g}i"
