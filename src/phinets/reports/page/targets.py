"""Targets and scales as the page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

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
    drawn_at: str
    """Where its state spaces stand: they are the same at every scale, and drawn once."""
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


def scales_shown(found: Sequence[TargetFound]) -> list[ScaleShown]:
    """Each scale with its targets, in the order in which they come."""
    firsts = {each.target.name: anchor(each) for each in reversed(found)}
    made = []
    for name, together in groupby(found, lambda each: each.scale.name):
        of = tuple(together)
        judged = claims(of)
        mine = {anchor(each): [claim for claim in judged if claim.at == anchor(each)] for each in of}
        shown = tuple(_target(each, mine[anchor(each)], firsts[each.target.name]) for each in of)
        made.append(ScaleShown(name=name, claims=tuple(judged), targets=shown))
    return made


def _target(found: TargetFound, judged: Sequence[ClaimShown], first: str) -> TargetShown:
    drawn, here = found.target.drawn, anchor(found)
    derived = [result for result in found.results.values() if isinstance(result.work, Deriving)]
    shown = tuple(tables(found))
    return TargetShown(
        found=found,
        anchor=here,
        claims=tuple(judged),
        tables=shown,
        charts=tuple(made for table in found.tables for made in lines(table)) if drawn == "lines" else (),
        panels=tuple(learning(shown, found.results, large=drawn == "curves")),
        spaces=tuple(state_spaces(found)) if drawn == "dynamics" and here == first else (),
        drawn_at=first,
        statements=tuple(said for result in derived for said in result.notes.items()),
        failures=tuple((name, result.failed) for name, result in found.results.items() if result.failed is not None),
    )
