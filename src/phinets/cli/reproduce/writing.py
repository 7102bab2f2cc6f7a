"""Tables and claims as a document for machines, and as files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from phinets.cli.output import require_free, save_lines
from phinets.config.errors import UserError
from phinets.config.plain import to_plain
from phinets.config.result import Result
from phinets.config.work import work_to_plain
from phinets.paper.findings import CellFound, ClaimFound, TargetFound
from phinets.paper.plan import Target
from phinets.paper.scales import Scale
from phinets.reports.paper_tables import claim_csv_lines, csv_lines, latex, markdown
from phinets.runtime.files import atomic_write


def document(found: Sequence[TargetFound]) -> list[dict[str, Any]]:
    """Every table with its values by seed, and every claim with its verdict."""
    return [
        {
            "name": one.target.name,
            "place": one.target.place,
            "title": one.target.title,
            "notes": one.target.notes,
            "tables": [
                {
                    "name": table.table.name,
                    "title": table.table.title,
                    "unit": table.table.unit,
                    "cells": [_cell(cell) for cell in table.cells],
                }
                for table in one.tables
            ],
            "claims": [_claim(claim) for claim in one.claims],
        }
        for one in found
    ]


def failed(results: Mapping[str, Result]) -> list[dict[str, Any]]:
    """What has failed, and why."""
    return [
        {"key": name, "work": work_to_plain(result.work), "reason": result.failed}
        for name, result in results.items()
        if result.failed is not None
    ]


def _cell(cell: CellFound) -> dict[str, Any]:
    return {
        "row": cell.cell.row,
        "column": cell.cell.column,
        "measure": cell.cell.measure,
        "values": list(cell.values),
        **{name: getattr(cell, name) for name in ("mean", "spread", "n", "lost", "failed", "missing", "best")},
        "paper": to_plain(cell.printed),
    }


def _claim(found: ClaimFound) -> dict[str, Any]:
    return {
        "name": found.claim.name,
        "says": found.claim.says,
        "where": found.claim.where,
        "rule": found.claim.rule.describe(),
        "verdict": found.verdict,
        "why": found.why,
        "lost": found.lost,
        "effect": to_plain(found.effect),
    }


def require_files_free(folder: Path | None, targets: Sequence[Target], scale: Scale, overwrite: bool) -> None:
    """Refuse, before the work, files of --out that are there."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--out '{folder}' is a file, but the tables need a folder. Choose another --out.")
    for name in (name for target in targets for name in _names(target, scale)):
        if folder.is_dir():
            require_free(folder / name, overwrite)


def _names(target: Target, scale: Scale) -> list[str]:
    tables = [f"{table.name}.csv" for table in target.tables(scale)]
    claims = [f"{target.name}-claims.csv"] if target.claims else []
    return [f"{target.name}.md", f"{target.name}.tex", *tables, *claims]


def write_files(folder: Path, found: Sequence[TargetFound]) -> None:
    """TARGET.md and TARGET.tex with all of a target, TABLE.csv for each table, TARGET-claims.csv."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{folder}' can't be made: {error.strerror or error}. Choose another --out.") from error
    for one in found:
        atomic_write(folder / f"{one.target.name}.md", markdown([one]).encode())
        atomic_write(folder / f"{one.target.name}.tex", latex([one]).encode())
        for table in one.tables:
            save_lines(folder / f"{table.table.name}.csv", csv_lines([replace(one, tables=(table,))]))
        if one.claims:
            save_lines(folder / f"{one.target.name}-claims.csv", claim_csv_lines([one]))
