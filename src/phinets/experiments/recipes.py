"""Recipes: functions that return a whole run."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from phinets.config.errors import look_up
from phinets.config.methods import LearnerOptions
from phinets.config.run import DataOptions, Judging, Optimisation, RunConfig

SMALL_HEADS = LearnerOptions(projector=(256, 256), h_hidden=(64,), g_hidden=(64,))


def default() -> RunConfig:
    """X-PhiNet on shapes with resnet-tiny: the main job, about five minutes on two CPU cores."""
    return RunConfig(
        backbone="resnet-tiny",
        epochs=9,
        batch=128,
        source=DataOptions(train_images=20_000, test_images=5_000),
        learner=SMALL_HEADS,
        optimisation=Optimisation(lr=0.24, warmup_epochs=1.0),
        judging=Judging(look_every=156, live_bank=2_000, live_queries=1_000, final_bank=5_000, knn_k=50),
    )


def smoke() -> RunConfig:
    """The same job on a tenth of the images, in seconds: for tests and for a first look."""
    return replace(
        default(),
        epochs=2,
        source=DataOptions(train_images=2_000, test_images=500),
        optimisation=Optimisation(lr=0.24, warmup_epochs=0.5),
        judging=Judging(look_every=10, live_bank=1_000, live_queries=500, final_bank=1_000, knn_k=50),
    )


def paper() -> RunConfig:
    """The paper's CIFAR-10 settings (ResNet-18, batch 512, 800 epochs, wd 5e-4): for a GPU."""
    return RunConfig(data="cifar10")


RECIPES: Mapping[str, Callable[[], RunConfig]] = {"default": default, "smoke": smoke, "paper": paper}


def recipe(name: str) -> RunConfig:
    """The recipe called `name`."""
    return look_up("recipe", name, RECIPES)()


def describe_recipe(name: str) -> str:
    """A recipe in one line."""
    return (look_up("recipe", name, RECIPES).__doc__ or "").splitlines()[0].rstrip(".")
