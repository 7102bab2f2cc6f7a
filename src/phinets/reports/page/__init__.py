"""The living paper as one page: a file that opens offline, with everything inside."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from phinets.config.result import Result
from phinets.config.work import Deriving
from phinets.paper.findings import TargetFound
from phinets.reports.page import heading, writing
from phinets.reports.page.chart import Chart
from phinets.reports.page.contents import Contents, OwnRun
from phinets.reports.page.learning import Panels, learning, own_charts
from phinets.reports.page.lines import lines
from phinets.reports.page.runs import groups, uses
from phinets.reports.page.state_spaces import StateSpace, state_spaces
from phinets.reports.page.tables import TableShown, tables
from phinets.reports.page.verdicts import ClaimShown, anchor, claims, tally

__all__ = ["Contents", "OwnRun", "page"]


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
    failures: tuple[Result, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleShown:
    """A scale's part of the page."""

    name: str
    claims: tuple[ClaimShown, ...]
    targets: tuple[TargetShown, ...]


def page(contents: Contents) -> str:
    """The whole page as HTML: style, script and pictures inside, nothing fetched from anywhere.

    The same contents give the same bytes.
    """
    scales = [_scale(name, tuple(of)) for name, of in groupby(contents.found, lambda found: found.scale.name)]
    made = Environment(
        loader=PackageLoader("phinets.reports", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"number": writing.number, "duration": writing.duration, "counted": writing.counted}
    made.globals |= {"tally": tally, "own_charts": own_charts}
    return made.get_template("page.html.j2").render(
        contents=contents,
        scales=scales,
        facts=heading.facts(contents),
        counts=heading.counts(contents),
        groups=groups(contents),
        used=uses(contents).targets,
        style=_inside("style.css"),
        script=_inside("script.js"),
    )


def _inside(name: str) -> Markup:
    """A file beside this one, as it is."""
    return Markup((files(__name__) / name).read_text(encoding="utf-8"))


def _scale(name: str, found: Sequence[TargetFound]) -> ScaleShown:
    shown = claims(found)
    return ScaleShown(
        name=name,
        claims=tuple(shown),
        targets=tuple(_target(each, [claim for claim in shown if claim.at == anchor(each)]) for each in found),
    )


def _target(found: TargetFound, of_it: Sequence[ClaimShown]) -> TargetShown:
    drawn, results = found.target.drawn, found.results.values()
    notes = {name: said for r in results if isinstance(r.work, Deriving) for name, said in r.notes.items()}
    return TargetShown(
        found=found,
        anchor=anchor(found),
        claims=tuple(of_it),
        tables=tuple(tables(found)),
        charts=tuple(made for table in found.tables for made in lines(table)) if drawn == "lines" else (),
        panels=tuple(learning(found, large=drawn == "curves")),
        spaces=tuple(state_spaces(found)) if drawn == "dynamics" else (),
        statements=tuple(notes.items()),
        failures=tuple(result for result in results if result.failed is not None),
    )
