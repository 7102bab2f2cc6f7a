"""What the head of the page says: what was run, where, with which code, and what became of it."""

from collections import Counter
from collections.abc import Mapping

from phinets.config.result import Result
from phinets.reports.page.contents import Contents
from phinets.reports.page.runs import SHORT_COMMIT, Uses
from phinets.reports.page.tables import state
from phinets.reports.page.writing import duration


def facts(contents: Contents, results: Mapping[str, Result]) -> list[tuple[str, str]]:
    """(what, how much or which) for the head, in its order; what nobody knows is left out."""
    environments = [result.environment for result in results.values() if result.environment]
    devices = Counter(str(made.get("device_name") or made.get("device")) for made in environments)
    commits = Counter(str(made.get("commit"))[:SHORT_COMMIT] for made in environments if made.get("commit"))
    versions = Counter(str(made.get("phinets")) for made in environments if made.get("phinets"))
    said = {
        "scale": ", ".join(dict.fromkeys(found.scale.name for found in contents.found)),
        "machine": ", ".join(devices),
        "phinets": ", ".join(versions),
        "commit": ", ".join(commits),
        "written": "" if contents.dates is None else " to ".join(dict.fromkeys(contents.dates)),
        "computing time": duration(sum(result.seconds for result in results.values())),
    }
    return [(what, words) for what, words in said.items() if words]


def counts(results: Mapping[str, Result], asked: Uses) -> list[tuple[str, int]]:
    """(word, how many): the results that are there, of them those that went wrong, and what is not there yet."""
    states = Counter(map(state, results.values()))
    return [
        ("run" if len(results) == 1 else "runs", len(results)),
        ("collapsed", states["collapsed"] + states["diverged"]),
        ("failed", states["failed"]),
        ("not run yet", len(asked.health_metrics.keys() - results.keys())),
    ]
