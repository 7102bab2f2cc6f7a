"""What `phinets reproduce` prints and writes: progress, tables and claims as JSON and as files."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from rich.console import Console

from phinets.cli.command import print_lines
from phinets.cli.output import create_folder, require_free, save_lines
from phinets.config.errors import UserError
from phinets.config.jobs import Job, Result
from phinets.config.plain import to_plain
from phinets.paper.findings import CellResult, ClaimResult, ReadoutResult, TargetResult
from phinets.paper.plan import Target
from phinets.paper.scales import Scale
from phinets.reports.paper_tables import claim_csv_lines, csv_lines, latex, markdown
from phinets.runtime.files import atomic_write

if TYPE_CHECKING:
    from phinets.reproduce.estimate import Estimator

UNITS = {"years": 31_557_600, "days": 86_400, "h": 3600, "min": 60, "s": 1}
"""Seconds of each."""


def duration(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3.5 h, 12 days."""
    name = next((name for name, length in UNITS.items() if seconds >= 2 * length), "s")
    count = seconds / UNITS[name]
    return f"{count:.1f} {name}" if count < 10 and name in ("h", "days", "years") else f"{count:,.0f} {name}"


def estimate_words(seconds: float, unknown: int) -> str:
    """An estimate in words; `unknown` jobs have none."""
    if not unknown:
        return f"about {duration(seconds)}"
    return f"about {duration(seconds)} and {unknown:,} of unknown time" if seconds else "time unknown"


class Progress:
    """A callback that prints a line for each job."""

    def __init__(self, console: Console, estimator: "Estimator", workers: int = 1) -> None:
        self.console, self.estimator, self.workers = console, estimator, workers
        self.pending: dict[str, float] = {}
        """Estimated seconds of jobs to come, by key; a job without an estimate counts as the mean of the others."""
        self.total, self.done_seconds, self.start = 0, 0.0, 0.0

    def on_start(self, jobs: Sequence[Job]) -> None:
        seconds, unknown = self.estimator.total(jobs)
        mean = seconds / (len(jobs) - unknown) if seconds else 1.0
        estimates = {job.key: self.estimator.seconds(job) for job in jobs}
        self.pending = {key: mean if value is None else value for key, value in estimates.items()}
        self.total, self.start = len(jobs), monotonic()
        print_lines(self.console, f"{self.total} jobs to run; {estimate_words(seconds / self.workers, unknown)}")

    def on_result(self, result: Result) -> None:
        """Print the outcome, and the time left: by the estimates, and by how they held so far."""
        self.done_seconds += self.pending.pop(result.key, 0.0)
        left = (monotonic() - self.start) * sum(self.pending.values()) / self.done_seconds if self.done_seconds else 0.0
        count = f"{self.total - len(self.pending)}/{self.total}"
        print_lines(self.console, f"{count} {result.job.describe()}: {_outcome(result)}; {duration(left)} left")


def _outcome(result: Result) -> str:
    if result.failed is not None:
        lines = result.failed.strip().splitlines()
        return f"failed: {lines[-1] if lines[0].startswith('Traceback') else lines[0]}"
    return f"{result.seconds:.1f} s" + (f" ({result.health})" if result.lost else "")


def document(outcomes: Sequence[TargetResult]) -> list[dict[str, Any]]:
    """Every table with its values by seed, and every claim with its verdict."""
    return [
        {
            **_attributes(one.target, "name", "place", "title", "notes"),
            "tables": [
                _attributes(table.table, "name", "title", "unit")
                | {"baselines": list(table.table.baselines), "cells": [_cell(cell) for cell in table.cells]}
                for table in one.tables
            ],
            "claims": [_claim(claim) for claim in one.claims],
        }
        for one in outcomes
    ]


def _attributes(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _cell(cell: CellResult) -> dict[str, Any]:
    return {
        **_attributes(cell.cell, "row", "column", "measure"),
        "values": list(cell.values),
        **_attributes(cell, "mean", "spread", "n", "lost", "failed", "missing", "best"),
        "paper": to_plain(cell.printed),
    }


def _claim(outcome: ClaimResult) -> dict[str, Any]:
    return {
        **_attributes(outcome.claim, "name", "where", "quote", "tests"),
        "rule": outcome.claim.rule.describe(),
        "lost": outcome.lost,
        **_readout(outcome.first),
        "second": None if outcome.second is None else _readout(outcome.second),
        "printed": outcome.printed,
        "printed_effect": to_plain(outcome.printed_effect),
    }


def _readout(result: ReadoutResult) -> dict[str, Any]:
    effect = result.effect
    of = None if effect is None else {**to_plain(effect), "p": effect.p}
    return {**_attributes(result, "readout", "verdict", "why"), "effect": of}


def require_files_free(folder: Path | None, targets: Sequence[Target], scale: Scale, overwrite: bool) -> None:
    """Refuse existing files of --out before anything runs."""
    if folder is None or not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"--out '{folder}' is a file, but the tables need a folder. Choose another --out.")
    for name in (name for target in targets for name in _names(target, scale)):
        require_free(folder / name, overwrite)


def _names(target: Target, scale: Scale) -> list[str]:
    tables = [f"{table.name}.csv" for table in target.tables(scale)]
    claims = [f"{target.name}-claims.csv"] if target.claims else []
    return [f"{target.name}.md", f"{target.name}.tex", *tables, *claims]


def write_files(folder: Path, outcomes: Sequence[TargetResult]) -> None:
    """TARGET.md and TARGET.tex with all of a target, TABLE.csv for each table by both readouts, TARGET-claims.csv."""
    create_folder(folder, "--out")
    for one in outcomes:
        atomic_write(folder / f"{one.target.name}.md", markdown([one]).encode())
        atomic_write(folder / f"{one.target.name}.tex", latex([one]).encode())
        for name, tables in groupby(one.tables, lambda table: table.table.name.partition("/")[0]):
            save_lines(folder / f"{name}.csv", csv_lines([replace(one, tables=tuple(tables))]))
        if one.claims:
            save_lines(folder / f"{one.target.name}-claims.csv", claim_csv_lines([one]))
