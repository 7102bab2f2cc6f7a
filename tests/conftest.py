"""What several tests share: tiny learners and tiny batches."""

import os
from pathlib import Path
from typing import Any

import pytest

from phinets.runtime.process import share_cores

share_cores()  # before torch is loaded
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # one core a process: the tests run side by side
    os.environ.setdefault(name, "1")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import phinets  # noqa: E402
from phinets.config.methods import LearnerOptions  # noqa: E402
from phinets.config.record import RunRecord  # noqa: E402
from phinets.config.run import Compute, DataOptions, EvalConfig, Optimization, PretrainConfig, Saving  # noqa: E402
from phinets.methods import Learner  # noqa: E402
from phinets.runs.trainer import run  # noqa: E402
from phinets.runtime.devices import Precision  # noqa: E402
from phinets.training.optimizers import build_optimizer  # noqa: E402
from phinets.training.step import TrainState  # noqa: E402
from tests.data import making  # noqa: E402

torch.set_num_threads(1)  # for tensors this small, more threads only wait for each other


class TinyEncoder(nn.Module):
    """The smallest encoder with a batch norm in it: 5 features of an 8 × 8 image."""

    num_features = 5

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.bn(self.conv(x))).mean((2, 3))


SMALL: dict[str, Any] = {"projector": (8, 6), "h_hidden": (4,), "g_hidden": (4,), "queue": 16}


def tiny_learner(name: str, seed: int = 0, dtype: torch.dtype = torch.float64, **options: Any) -> Learner:
    """A learner in miniature, with weights that depend on the seed alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        learner = phinets.learner(name, backbone=TinyEncoder(), **{**SMALL, **options})
    return learner.to(dtype)


def tiny_train_state(learner: Learner, **optimization: Any) -> TrainState:
    """A learner with its optimizer, on the CPU."""
    return TrainState(
        learner=learner,
        optimizer=build_optimizer(learner, Optimization(**optimization)),
        precision=Precision("fp32", torch.device("cpu")),
        model=learner,
    )


def tiny_views(n: int = 12, seed: int = 1, dtype: torch.dtype = torch.float64) -> phinets.Views:
    """Three views that have nothing but their size in common."""
    generator = torch.Generator().manual_seed(seed)
    x1, x2, x0 = torch.randn(3, n, 3, 8, 8, generator=generator, dtype=dtype)
    return phinets.Views(x1, x2, x0)


@pytest.fixture
def views() -> phinets.Views:
    return tiny_views()


MINIATURE = PretrainConfig(
    method="x-phinet",
    backbone="resnet-tiny",
    epochs=2,
    batch=16,
    source=DataOptions(train_images=96, test_images=50, image_size=16),
    learner=LearnerOptions(projector=(16, 12), h_hidden=(8,), g_hidden=(8,)),
    optimization=Optimization(lr=0.24, warmup_epochs=0.5),
    evaluation=EvalConfig(
        eval_every=6,
        online_bank=96,
        online_queries=50,
        num_neighbors=7,
        encoder="both",
        health_metrics=("alignment", "spectrum", "stable-rank", "slow-gap"),
    ),
    compute=Compute(device="cpu"),
    saving=Saving(checkpoint_every="6steps"),
)


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A finished run that several tests look at: X-PhiNet in miniature, judged both ways, with every measure."""
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
