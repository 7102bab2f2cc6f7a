"""A run that several tests look at: X-PhiNet in miniature, judged both ways, with every measure."""

from pathlib import Path

import pytest

from phinets.config.methods import LearnerOptions
from phinets.config.record import RunRecord
from phinets.config.run import Compute, DataOptions, Judging, Optimisation, RunConfig, Saving
from phinets.experiments.run import run

MINIATURE = RunConfig(
    method="x-phinet",
    backbone="resnet-tiny",
    epochs=2,
    batch=16,
    source=DataOptions(train_images=96, test_images=50, image_size=16),
    learner=LearnerOptions(projector=(16, 12), h_hidden=(8,), g_hidden=(8,)),
    optimisation=Optimisation(lr=0.24, warmup_epochs=0.5),
    judging=Judging(
        look_every=6,
        live_bank=96,
        live_queries=50,
        knn_k=7,
        judged_encoder="both",
        measures=("alignment", "spectrum", "stable-rank", "slow-gap"),
    ),
    compute=Compute(device="cpu"),
    saving=Saving(checkpoint_every="6steps"),
)


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """The finished run."""
    return run(MINIATURE, tmp_path_factory.mktemp("runs") / "miniature")


@pytest.fixture(scope="session")
def folder(miniature: RunRecord) -> Path:
    """Its folder."""
    return Path(miniature.folder)
