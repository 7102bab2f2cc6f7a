"""Recipes: functions that return a whole run."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from phinets.config.continual import ContinualConfig, ReadoutOptions, ReplayOptions, StreamOptions
from phinets.config.errors import look_up
from phinets.config.methods import LearnerOptions
from phinets.config.run import DataOptions, EvalConfig, Optimization, PretrainConfig

SMALL_HEADS = LearnerOptions(projector=(256, 256), h_hidden=(64,), g_hidden=(64,))


def default() -> PretrainConfig:
    """X-PhiNet on shapes with resnet-tiny: the main job, one to five minutes on two CPU cores."""
    return PretrainConfig(
        backbone="resnet-tiny",
        epochs=8,
        batch=64,
        source=DataOptions(train_images=20_000, test_images=5_000),
        learner=replace(SMALL_HEADS, sim2_weight=3.0),  # with lr and weight decay chosen over seeds: docs/training.md
        optimization=Optimization(lr=0.96, weight_decay=1e-5, warmup_epochs=1.0),
        evaluation=EvalConfig(
            eval_every=312, online_bank=2_000, online_queries=1_000, final_bank=5_000, num_neighbors=50
        ),
    )


def smoke() -> PretrainConfig:
    """The same job on fewer images, in half a minute: a first look that shows learning."""
    return replace(
        default(),
        source=DataOptions(train_images=4_000, test_images=500),
        learner=SMALL_HEADS,
        optimization=Optimization(lr=0.24, warmup_epochs=0.5),
        evaluation=EvalConfig(eval_every=62, online_bank=1_000, online_queries=500, final_bank=1_000, num_neighbors=50),
    )


def paper() -> PretrainConfig:
    """The paper's CIFAR-10 settings (ResNet-18, batch 512, 800 epochs, wd 5e-4): for a GPU."""
    return PretrainConfig(data="cifar10")


def online() -> PretrainConfig:
    """Online learning: X-PhiNet (cosine) on 120,000 shapes that arrive once each, one to four minutes on two cores."""
    return replace(
        default(),
        method="x-phinet/cosine",
        data="stream:shapes",
        epochs=1,
        batch=128,
        source=DataOptions(train_images=120_000, test_images=5_000),
        learner=SMALL_HEADS,
        optimization=Optimization(lr=0.24, warmup_epochs=0.1),
        evaluation=EvalConfig(
            eval_every=0,
            eval_at_images=(1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000),
            online_bank=2_000,
            online_queries=1_000,
            final_bank=5_000,
            num_neighbors=50,
        ),
    )


def paper_online() -> PretrainConfig:
    """The paper's online learning: CIFAR-5m for 8 epochs, with its CIFAR-10 settings (wd 2e-5): for a GPU.

    As many images as in 800 epochs of CIFAR-10. Weight decay: the best of the paper's table for X-PhiNet. Warm-up: as
    many images as CIFAR-10's ten epochs have. The paper shuffles each epoch, so the data are cifar5m; stream:cifar5m
    shows them as they lie on the disk. Barlow Twins needs --lr 0.003.
    """
    return PretrainConfig(
        method="x-phinet/cosine",
        data="cifar5m",
        epochs=8,
        optimization=Optimization(weight_decay=2e-5, warmup_epochs=0.1),
        evaluation=EvalConfig(
            eval_every=2_000,
            eval_at_images=(*(n * 10**power for power in (4, 5, 6) for n in (1, 2, 5)), 10_000_000),
        ),
    )


def paper_online_one_epoch() -> PretrainConfig:
    """The same in one epoch, each image seen once (wd 1e-4, the best of the paper's table for it): for a GPU."""
    online = paper_online()
    return replace(
        online,
        epochs=1,
        optimization=replace(online.optimization, weight_decay=1e-4),
        evaluation=replace(
            online.evaluation, eval_at_images=online.evaluation.eval_at_images[:-1]
        ),  # an epoch has five million images
    )


RECIPES: Mapping[str, Callable[[], PretrainConfig]] = {
    "default": default,
    "smoke": smoke,
    "online": online,
    "paper": paper,
    "paper-online": paper_online,
    "paper-online/one-epoch": paper_online_one_epoch,
}


def recipe(name: str) -> PretrainConfig:
    """The recipe called `name`."""
    return look_up("recipe", name, RECIPES)()


def describe_recipe(name: str) -> str:
    """A recipe in one line."""
    return (look_up("recipe", name, RECIPES).__doc__ or "").splitlines()[0].rstrip(".")


def split_shapes() -> ContinualConfig:
    """The embedded world in five tasks of two forms, resnet-tiny: about five minutes on two CPU cores."""
    return ContinualConfig(
        method="x-phinet/cosine",
        backbone="resnet-tiny",
        views="simsiam-cifar",
        batch=128,
        epochs_per_task=8,
        source=DataOptions(train_images=20_000, test_images=3_000),
        memory=ReplayOptions(distil_hidden=(256,)),
        learner=SMALL_HEADS,
        optimization=Optimization(lr=0.12, schedule="constant", warmup_epochs=0.0),
        evaluation=EvalConfig(
            encoder="both", eval_every=124, online_bank=1_000, online_queries=500, final_bank=1_000, num_neighbors=50
        ),
        reading=ReadoutOptions(readouts=("task-knn", "task-linear", "class-knn")),
    )


def split_cifar10() -> ContinualConfig:
    """CIFAR-10 in five tasks of two classes, ResNet-18, 200 epochs per task, as in UCL's code: for a GPU."""
    return ContinualConfig(
        method="x-phinet/cosine",
        data="cifar10",
        evaluation=EvalConfig(encoder="both", eval_every=500, online_bank=5_000, online_queries=1_000),
    )


def split_cifar100() -> ContinualConfig:
    """CIFAR-100 in twenty tasks of five classes, as in UCL's code (--tasks 10x10 is common, too): for a GPU."""
    return replace(split_cifar10(), data="cifar100", stream=StreamOptions(tasks="20x5"))


def split_cifar5m() -> ContinualConfig:
    """CIFAR-5m in five tasks of two classes, one pass over each (--epochs-per-task 2 for the paper's other table)."""
    return replace(split_cifar10(), data="cifar5m", epochs_per_task=1)


BENCHMARKS: Mapping[str, Callable[[], ContinualConfig]] = {
    "split-shapes": split_shapes,
    "split-cifar10": split_cifar10,
    "split-cifar100": split_cifar100,
    "split-cifar5m": split_cifar5m,
}


def benchmark(name: str) -> ContinualConfig:
    """The benchmark called `name`."""
    return look_up("benchmark", name, BENCHMARKS)()


def describe_benchmark(name: str) -> str:
    """A benchmark in one line."""
    return (look_up("benchmark", name, BENCHMARKS).__doc__ or "").splitlines()[0].rstrip(".")
