"""No test of the data reaches for the network."""

import socket
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody asked for the network")

    monkeypatch.setattr(socket, "socket", refuse)
