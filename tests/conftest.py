"""Fixtures that several packages share."""

import os
from pathlib import Path

import pytest

from phinets.runtime.process import share_cores

share_cores()  # before torch is loaded
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one core a process: the tests run side by side
    os.environ.setdefault(name, "1")

import torch  # noqa: E402

import phinets  # noqa: E402
from phinets.config.record import RunRecord  # noqa: E402
from phinets.runs.trainer import run  # noqa: E402
from tests.data import making  # noqa: E402
from tests.helpers import MINIATURE, tiny_views  # noqa: E402

torch.set_num_threads(1)  # for tensors this small, more threads only wait for each other


@pytest.fixture
def views() -> phinets.Views:
    return tiny_views()


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A finished run that several tests read: X-PhiNet in miniature, both encoders evaluated, every health metric."""
    return run(MINIATURE, tmp_path_factory.mktemp("runs") / "miniature")


@pytest.fixture(scope="session")
def run_folder(miniature: RunRecord) -> Path:
    """Its folder."""
    return Path(miniature.folder)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twenty-six pictures in two classes, of several sizes."""
    for i in range(26):
        name = f"{('apple', 'pear')[i % 2]}/{i:02d}.{'jpg' if i % 3 else 'png'}"
        making.save(tmp_path / "photos" / name, making.picture(20 + i, 40 - i, seed=i))
    return tmp_path / "photos"


@pytest.fixture
def embed(run_folder: Path, photos: Path) -> list[str]:
    """The command that embeds them, without its --out."""
    return ["embed", str(run_folder), "--data", f"folder:{photos}", "--device", "cpu"]
