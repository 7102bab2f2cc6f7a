"""Benchmarks: functions that return a whole run over a stream."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from phinets.config.continual import ContinualConfig, Reading, Remembering, Tasks
from phinets.config.errors import look_up
from phinets.config.run import DataOptions, Judging, Optimisation
from phinets.experiments.recipes import SMALL_HEADS


def split_shapes() -> ContinualConfig:
    """The embedded world in five tasks of two forms, resnet-tiny: about five minutes on two CPU cores."""
    return ContinualConfig(
        method="x-phinet/cosine",
        backbone="resnet-tiny",
        views="simsiam-cifar",
        batch=128,
        epochs_per_task=8,
        source=DataOptions(train_images=20_000, test_images=3_000),
        memory=Remembering(distil_hidden=(256,)),
        learner=SMALL_HEADS,
        optimisation=Optimisation(lr=0.12, schedule="constant", warmup_epochs=0.0),
        judging=Judging(look_every=124, live_bank=1_000, live_queries=500, final_bank=1_000, knn_k=50),
        reading=Reading(readouts=("task-knn", "task-linear", "class-knn")),
    )


def split_cifar10() -> ContinualConfig:
    """CIFAR-10 in five tasks of two classes, ResNet-18, 200 epochs per task, as in UCL's code: for a GPU."""
    return ContinualConfig(
        method="x-phinet/cosine",
        data="cifar10",
        judging=Judging(look_every=500, live_bank=5_000, live_queries=1_000),
    )


def split_cifar100() -> ContinualConfig:
    """CIFAR-100 in twenty tasks of five classes, as in UCL's code (--tasks 10x10 is common, too): for a GPU."""
    return replace(split_cifar10(), data="cifar100", stream=Tasks(tasks="20x5"))


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
