"""A page of made-up results, as text and in a browser without a window."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phinets.config.jobs import ContinualJob, Result
from phinets.paper.findings import TargetResult, target_result
from phinets.paper.plan import with_seeds
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from phinets.reports.page import Contents, OwnRun, page
from tests.browser import browser
from tests.page import faking

__all__ = ["browser"]

SCALE = with_seeds(SCALES["pocket"], 5)
TARGET_NAMES = ("dynamics-simsiam", "cifar10-weight-decay-methods", "stl10-early", "split-cifar", "memory")
"""One target of each kind: a figure of dynamics, lines, learning curves, a table of streams, costs."""


@pytest.fixture(scope="session")
def results() -> dict[str, Result]:
    """Of the shown targets at the pocket scale, but for one cell whose work nobody has done yet."""
    undone = {job.key for job in TARGETS["split-cifar"].tables(SCALE)[0].cells[0].jobs}
    every = faking.results([TARGETS[name] for name in TARGET_NAMES], SCALE)
    return {name: result for name, result in every.items() if name not in undone}


@pytest.fixture(scope="session")
def targets(results: dict[str, Result]) -> tuple[TargetResult, ...]:
    """What was found of them."""
    return tuple(target_result(TARGETS[name], SCALE, results) for name in TARGET_NAMES)


@pytest.fixture(scope="session")
def contents(results: dict[str, Result], targets: tuple[TargetResult, ...]) -> Contents:
    """With a run of one's own, a result of no target, and a run that is not finished."""
    stream = next(r for r in results.values() if isinstance(r.job, ContinualJob) and r.failed is None)
    assert isinstance(stream.job, ContinualJob)
    strange = replace(stream, job=ContinualJob(run=replace(stream.job.run, seed=77)))
    own = OwnRun(folder="runs/<mine>", key=stream.key, result=stream)
    return Contents(
        targets=targets,
        own=(own,),
        others={strange.key: strange},
        unfinished=("runs/half",),
        dates=("2025-03-01", "2025-03-04"),
        title="A <title> & more",
    )


@pytest.fixture(scope="session")
def html(contents: Contents) -> str:
    """The page."""
    return page(contents)


@pytest.fixture(scope="session")
def address(html: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page as a file."""
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Any]:
    """The page just opened, as by somebody who was never there; it must complain of nothing and ask nobody."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.get(address)
    browser.execute_script("localStorage.clear()")
    browser.refresh()
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
