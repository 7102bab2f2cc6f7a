"""The results as one HTML file that opens offline, with style, script and figures inside."""

from importlib.resources import files
from itertools import count

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from phinets.reports.page.charts import run_charts
from phinets.reports.page.contents import Contents, OwnRun
from phinets.reports.page.sections import build_scales, collect_uses, counts, facts, groups
from phinets.reports.page.svg import inline_svg
from phinets.reports.page.tables import count_noun, duration, interval, number, seed_runs, tally, with_minus_sign
from phinets.reports.paper_tables import lost_words, quote, sentence

__all__ = ["Contents", "OwnRun", "page"]


def page(contents: Contents) -> str:
    """The whole page as HTML: style, script and pictures inside, nothing fetched from anywhere.

    The same contents give the same bytes.
    """
    scales = build_scales(contents.targets)
    targets = [target for scale in scales for target in scale.targets]
    uses, results = collect_uses(targets), contents.results
    template = _environment().get_template("page.html.j2")
    return template.render(
        contents=contents,
        scales=scales,
        facts=facts(contents, results),
        counts=counts(results, uses),
        groups=groups(results, uses),
        used=uses.targets,
        style=_read_file("style.css"),
        script=_read_file("script.js"),
    )


def _environment() -> Environment:
    loader = PackageLoader("phinets.reports", "page")
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    filters = (number, duration, count_noun, interval, quote, sentence, with_minus_sign)
    environment.filters |= {each.__name__: each for each in filters}
    numbers = count(1)
    environment.filters["svg"] = lambda chart: Markup(inline_svg(chart.figure, f"f{next(numbers)}-", chart.title))
    environment.globals |= {"tally": tally, "lost_words": lost_words, "seed_runs": seed_runs, "run_charts": run_charts}
    return environment


def _read_file(name: str) -> Markup:
    """A file beside this one, as it is."""
    return Markup((files(__name__) / name).read_text(encoding="utf-8"))
