"""What the head of the page says: what was run, where, with which code, and what became of it."""

from collections import Counter

from phinets.config.work import key
from phinets.reports.page.contents import Contents
from phinets.reports.page.runs import SHORT_COMMIT
from phinets.reports.page.tables import state
from phinets.reports.page.writing import counted, duration


def facts(contents: Contents) -> list[tuple[str, str]]:
    """(what, how much or which) for the head, in its order; what nobody knows is left out."""
    results = list(contents.results.values())
    environments = [result.environment for result in results if result.environment]
    devices = Counter(str(made.get("device_name") or made.get("device")) for made in environments)
    commits = Counter(str(made.get("commit"))[:SHORT_COMMIT] for made in environments if made.get("commit"))
    versions = Counter(str(made.get("phinets")) for made in environments if made.get("phinets"))
    said = {
        "scale": ", ".join(dict.fromkeys(found.scale.name for found in contents.found)),
        "machine": ", ".join(devices),
        "phinets": ", ".join(versions),
        "commit": ", ".join(commits),
        "written": "" if contents.dates is None else " to ".join(dict.fromkeys(contents.dates)),
        "computing time": duration(sum(result.seconds for result in results)),
    }
    return [(what, words) for what, words in said.items() if words]


def counts(contents: Contents) -> list[tuple[str, int]]:
    """(word, how many) of the results: those that are there, and of them those that went wrong; then what is missing."""
    results = contents.results
    states = Counter(state(result) for result in results.values())
    wanted = {
        key(work)
        for found in contents.found
        for table in found.tables
        for cell in table.cells
        for work in cell.cell.works
    }
    return [
        (counted(len(results), "run").partition(" ")[2], len(results)),
        ("collapsed", states["collapsed"] + states["diverged"]),
        ("failed", states["failed"]),
        ("not run yet", len(wanted - results.keys())),
    ]
