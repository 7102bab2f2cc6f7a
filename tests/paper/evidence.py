"""Evidence made by hand."""

from collections.abc import Mapping, Sequence

from phinets.paper.rules import Evidence

Cells = Mapping[str, Mapping[str, Sequence[float | None]]]


def evidence(cells: Cells, lost: Mapping[str, Mapping[str, Sequence[bool | None]]] | None = None) -> Evidence:
    """One table, `t`: row → column → by seed."""
    return Evidence(
        values={("t", row, column): tuple(seeds) for row, of in cells.items() for column, seeds in of.items()},
        lost={("t", row, column): tuple(seeds) for row, of in (lost or {}).items() for column, seeds in of.items()},
    )


def turned(cells: Cells) -> Cells:
    """Rows as columns."""
    columns = dict.fromkeys(column for of in cells.values() for column in of)
    return {column: {row: of[column] for row, of in cells.items()} for column in columns}
