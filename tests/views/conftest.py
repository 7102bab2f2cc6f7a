"""Views are made in two ways on a CPU, and what holds for one holds for the other."""

import pytest

from phinets.views import augment


@pytest.fixture(params=["torch", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test runs twice: with torch, as on a GPU, and with the compiled kernel."""
    if request.param == "torch":
        monkeypatch.setattr(augment, "kernel", lambda: None)
    elif augment.kernel() is None:
        pytest.skip("the compiled kernel needs numba")
    return str(request.param)
