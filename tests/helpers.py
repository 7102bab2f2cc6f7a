"""What several tests share: tiny learners, tiny batches and the settings of a run in miniature."""

from typing import Any

import torch
from torch import Tensor, nn

import phinets
from phinets.config.methods import LearnerOptions
from phinets.config.run import Compute, DataOptions, EvalConfig, Optimization, PretrainConfig, SaveOptions
from phinets.methods import Learner
from phinets.runtime.devices import Precision
from phinets.training.optimizers import build_optimizer
from phinets.training.step import TrainState


def assert_features_close(actual: Tensor, expected: Tensor) -> None:
    """Features of the same images by two code paths, batch shapes or memory layouts, equal up to float32 rounding.

    Each of L ≤ 20 layers sums K ≤ 9 · 512 products. Another order of summation changes a sum by about √K · eps of its
    scale. These changes are independent, so together they are about √(L · K) · eps ≈ 300 eps of the features' scale.
    """
    assert actual.shape == expected.shape
    bound = 300 * torch.finfo(torch.float32).eps * float(expected.abs().max())
    difference = float((actual - expected).abs().max())
    assert difference <= bound, f"features differ by {difference:.3g}, more than {bound:.3g}"


class TinyEncoder(nn.Module):
    """The smallest encoder with a batch norm in it: 5 features of an 8 × 8 image."""

    num_features = 5

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.bn(self.conv(x))).mean((2, 3))


SMALL = LearnerOptions(projector=(8, 6), h_hidden=(4,), g_hidden=(4,), queue=16)


def tiny_learner(name: str, seed: int = 0, dtype: torch.dtype = torch.float64, **options: Any) -> Learner:
    """A learner in miniature, with weights that depend on the seed alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        learner = phinets.learner(name, backbone=TinyEncoder(), options=SMALL, **options)
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
        health_metrics=("alignment", "spectrum", "stable-rank", "slow-gap", "code-scale"),
    ),
    compute=Compute(device="cpu"),
    saving=SaveOptions(checkpoint_every="6steps"),
)
