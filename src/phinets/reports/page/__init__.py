"""The living paper as one page: a file that opens offline, with everything inside."""

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from phinets.reports.page import heading, writing
from phinets.reports.page.contents import Contents, OwnRun
from phinets.reports.page.learning import own_charts
from phinets.reports.page.runs import groups, uses
from phinets.reports.page.targets import scales_shown
from phinets.reports.page.verdicts import tally

__all__ = ["Contents", "OwnRun", "page"]


def page(contents: Contents) -> str:
    """The whole page as HTML: style, script and pictures inside, nothing fetched from anywhere.

    The same contents give the same bytes.
    """
    scales = scales_shown(contents.found)
    targets = [target for scale in scales for target in scale.targets]
    asked, results = uses(targets), contents.results
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            contents=contents,
            scales=scales,
            facts=heading.facts(contents, results),
            counts=heading.counts(results, asked),
            groups=groups(results, asked),
            used=asked.targets,
            style=_inside("style.css"),
            script=_inside("script.js"),
        )
    )


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("phinets.reports", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {name: getattr(writing, name) for name in ("number", "duration", "counted", "sentence", "signed")}
    made.globals |= {"tally": tally, "own_charts": own_charts}
    return made


def _inside(name: str) -> Markup:
    """A file beside this one, as it is."""
    return Markup((files(__name__) / name).read_text(encoding="utf-8"))
