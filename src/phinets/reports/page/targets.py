"""Targets and scales as the page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from phinets.config.work import Deriving
from phinets.paper.findings import TargetFound
from phinets.reports.page.chart import Chart
from phinets.reports.page.learning import Panels, learning
from phinets.reports.page.lines import lines
from phinets.reports.page.state_spaces import StateSpace, state_spaces
from phinets.reports.page.tables import TableShown, tables
from phinets.reports.page.verdicts import ClaimShown, anchor, claims


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShown:
    """A target's part of the page."""

    found: TargetFound
    anchor: str
    claims: tuple[ClaimShown, ...]
    tables: tuple[TableShown, ...]
    charts: tuple[Chart, ...]
    """Lines over columns."""
    panels: tuple[Panels, ...]
    """Learning curves."""
    spaces: tuple[StateSpace, ...]
    statements: tuple[tuple[str, dict[str, str]], ...]
    """What was found of each statement on dynamics."""
    failures: tuple[tuple[str, str], ...]
    """(key, why)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleShown:
    """A scale's part of the page."""

    name: str
    claims: tuple[ClaimShown, ...]
    targets: tuple[TargetShown, ...]


def scale_shown(name: str, found: Sequence[TargetFound]) -> ScaleShown:
    """All of one scale."""
    shown = claims(found)
    return ScaleShown(
        name=name,
        claims=tuple(shown),
        targets=tuple(_target(each, [claim for claim in shown if claim.at == anchor(each)]) for each in found),
    )


def _target(found: TargetFound, of_it: Sequence[ClaimShown]) -> TargetShown:
    drawn = found.target.drawn
    derived = [result for result in found.results.values() if isinstance(result.work, Deriving)]
    shown = tuple(tables(found))
    return TargetShown(
        found=found,
        anchor=anchor(found),
        claims=tuple(of_it),
        tables=shown,
        charts=tuple(made for table in found.tables for made in lines(table)) if drawn == "lines" else (),
        panels=tuple(learning(shown, found.results, large=drawn == "curves")),
        spaces=tuple(state_spaces(found)) if drawn == "dynamics" else (),
        statements=tuple(said for result in derived for said in result.notes.items()),
        failures=tuple((name, result.failed) for name, result in found.results.items() if result.failed is not None),
    )
