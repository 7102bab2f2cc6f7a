"""Two processes learn what one learns."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from phinets.config.methods import METHODS
from phinets.config.run import Compute
from phinets.engine.journal import read_journal
from phinets.experiments.folder import write_config
from phinets.experiments.run import run
from tests.experiments.test_run import TINY, newest

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
HERE = Path(__file__).parent
TWENTY = replace(
    TINY,
    source=replace(TINY.source, train_images=160),
    judging=replace(TINY.judging, look_every=10),
    compute=Compute(device="cpu", threads=1, precision="fp64"),
)
"""Twenty steps, with a look after the tenth and the last.

In double precision: in single, two orders of the same sum differ by 1e-7, and where that moves one activation over
the kink of its ReLU, gradients jump by 1e-2. A single process whose weights are changed by 1e-7 drifts away as fast.
"""

pytestmark = pytest.mark.slow


def losses(folder: Path) -> list[list[float]]:
    names = ("kind", "step", "epoch", "lr")
    rows = [row for row in read_journal(folder / "metrics.jsonl") if row["kind"] == "step"]
    return [[value for name, value in row.items() if name not in names] for row in rows]


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every method, run by two processes."""
    home = tmp_path_factory.mktemp("two")
    write_config(home, TWENTY)
    subprocess.run([*TORCHRUN, HERE / "every_method.py", home / "config.yaml", home], check=True, timeout=500)
    return home


@pytest.mark.parametrize("name", METHODS)
def test_two_processes_learn_what_one_learns(name: str, by_two: Path, tmp_path: Path) -> None:
    alone = run(replace(TWENTY, method=name), tmp_path / "alone")
    together = by_two / name.replace("/", "-")
    ours, theirs = losses(Path(alone.folder)), losses(together)
    assert len(ours) == len(theirs) == 20
    for one, two in zip(ours, theirs, strict=True):
        assert two == pytest.approx(one, abs=1e-6)
    a, b = newest(tmp_path / "alone")["learner"], newest(together)["learner"]
    assert a.keys() == b.keys()
    for key in a:
        assert torch.allclose(a[key].double(), b[key].double(), atol=1e-6), key
