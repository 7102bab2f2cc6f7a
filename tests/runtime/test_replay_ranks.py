"""What is remembered and distilled does not depend on how many processes there are."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.runtime.replay_ranks import BORDER, FAMILIES, trajectory
from tests.runtime.test_distributed import TORCHRUN

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes has at the end."""
    found = tmp_path_factory.mktemp("two") / "found.pt"
    subprocess.run([*TORCHRUN, Path(__file__).with_name("replay_ranks.py"), found], check=True, timeout=300)
    return list(torch.load(found, weights_only=True))


@pytest.mark.parametrize("name", FAMILIES)
def test_two_processes_remember_and_distil_what_one_does(name: str, by_two: list[dict[str, Any]]) -> None:
    alone = trajectory(name)
    assert (alone["losses"][:BORDER, -1] == 0).all()
    assert (alone["losses"][BORDER:, -1] != 0).all()
    for process in by_two:
        theirs = process[name]
        assert torch.equal(theirs["buffer"]["images"], alone["buffer"]["images"])
        assert torch.equal(theirs["buffer"]["views"], alone["buffer"]["views"])
        assert torch.allclose(theirs["losses"], alone["losses"], atol=1e-6)
        for key, value in alone["learner"].items():
            assert torch.allclose(value.double(), theirs["learner"][key].double(), atol=1e-6), key
