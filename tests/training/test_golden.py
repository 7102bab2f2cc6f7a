"""Loss curves of two tiny runs, as they have always been.

`python -m tests.training.test_golden` writes them anew, after a change that is meant to change them.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from phinets.runs.trainer import run
from tests.runs.test_pretrain import TINY

METHODS = ("simsiam", "x-phinet")
CURVES = Path(__file__).parent / "curves.json"


def curve(name: str, folder: Path) -> list[float]:
    """The losses of a tiny run."""
    record = run(replace(TINY, method=name), folder)
    return [row["loss"] for row in record.journal if row["kind"] == "step"]


@pytest.mark.parametrize("name", METHODS)
def test_a_tiny_run_goes_as_it_always_went(name: str, tmp_path: Path) -> None:
    """To 1e-3: the last bits of a convolution depend on the processor."""
    assert curve(name, tmp_path / "run") == pytest.approx(json.loads(CURVES.read_text())[name], abs=1e-3)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        curves = {name: curve(name, Path(home) / name) for name in METHODS}
    CURVES.write_text(json.dumps(curves, indent=1) + "\n")
