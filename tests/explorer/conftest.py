"""The explorer in a browser without a window."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phinets.reports.explorer import explorer
from tests.browser import browser

__all__ = ["browser"]


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page as a file."""
    path: Path = tmp_path_factory.mktemp("page") / "explorer.html"
    path.write_text(explorer(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page just opened; whatever a test does to it, it must have nothing to complain of and ask nobody.

    Nothing grows slowly: this reader wants no motion.
    """
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(address)
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').map((e) => e.name)") == []
