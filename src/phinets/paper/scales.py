"""The three scales, as values: a scale says how large everything is, and nothing else.

Targets take a scale's runs and change method, weight decay, batch, seed in them; so all scales use the same code. The
paper's own settings are the defaults of `PretrainConfig`, `ContinualConfig`, `PaperProbe` and `DetectionConfig`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

from phinets.config.continual import ContinualConfig, ReadoutOptions, StreamOptions
from phinets.config.detection import DetectionConfig, ImageOptions
from phinets.config.detection import pocket as pocket_detection
from phinets.config.detection import smoke as smoke_detection
from phinets.config.errors import look_up
from phinets.config.evaluation import PaperProbe
from phinets.config.methods import LearnerOptions
from phinets.config.run import DataOptions, EvalConfig, Optimization, PretrainConfig

T = TypeVar("T")
ScaleName = Literal["paper", "pocket", "smoke"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large everything is."""

    name: ScaleName
    seeds: int
    cifar10: PretrainConfig
    stl10: PretrainConfig
    imagenet: PretrainConfig
    cifar5m: PretrainConfig
    """Eight passes."""
    cifar5m_once: PretrainConfig
    """One pass."""
    split_cifar10: ContinualConfig
    split_cifar100: ContinualConfig
    split_cifar5m: ContinualConfig
    """One pass over each task."""
    probe: PaperProbe
    imagenet_probe: PaperProbe
    short_imagenet_probe: PaperProbe
    """As in the ablation of g on ImageNet."""
    detection: DetectionConfig
    rounds: int
    """Of steps, when costs are measured."""
    batch_divisor: int = 1
    """The factor by which batches are smaller than the paper's."""
    stand_ins: str = ""
    """What replaces what, and which sizes differ beside images and epochs, in words."""
    only_ends: bool = False
    """Whether only the first and the last of a row of weight decays, batch sizes or β run."""

    def batch(self, of_the_paper: int) -> int:
        """The batch that stands for one of the paper's."""
        return max(2, of_the_paper // self.batch_divisor)

    def some(self, values: tuple[T, ...]) -> tuple[T, ...]:
        """The settings of a row that are run."""
        return (values[0], values[-1]) if self.only_ends and len(values) > 1 else values


READOUTS = ReadoutOptions(readouts=("task-knn", "task-linear"))
"""The paper does not name the readout of its streams; UCL, on which it builds, uses kNN within each task."""
HEALTH: Final = ("stable-rank",)
EVAL_AT_IMAGES = (10_000, 100_000, 1_000_000, 5_000_000)


def paper() -> Scale:
    """The exact grid, sizes and seeds: for GPUs, with the data."""
    cifar10 = PretrainConfig(data="cifar10", evaluation=EvalConfig(health_metrics=HEALTH))
    online = replace(
        cifar10,
        data="cifar5m",
        epochs=8,
        optimization=Optimization(warmup_epochs=0.1),
        evaluation=EvalConfig(eval_every=2_000, eval_at_images=EVAL_AT_IMAGES),
    )
    imagenet = PretrainConfig(
        data="imagenet",
        backbone="resnet50/zero-init-residual",  # as facebookresearch/simsiam, which the paper follows
        views="simsiam-imagenet",
        epochs=100,
        source=DataOptions(image_size=224),
        learner=LearnerOptions(projector=(2048, 2048, 2048), projector_affine=False),
        optimization=Optimization(lr=0.05, weight_decay=1e-4, warmup_epochs=0.0),
        evaluation=EvalConfig(eval_every=2_500),
    )
    split = ContinualConfig(data="cifar10", reading=READOUTS)
    return Scale(
        name="paper",
        seeds=3,
        cifar10=cifar10,
        stl10=replace(cifar10, data="stl10"),
        imagenet=imagenet,
        cifar5m=online,
        cifar5m_once=replace(online, epochs=1),
        split_cifar10=split,
        split_cifar100=replace(split, data="cifar100", stream=StreamOptions(tasks="20x5")),
        split_cifar5m=replace(split, data="cifar5m", epochs_per_task=1),
        probe=PaperProbe(),
        imagenet_probe=PaperProbe(rates=(0.1,), epochs=90, batch=4096, optimizer="lars"),
        short_imagenet_probe=PaperProbe(rates=(0.1,), epochs=40, batch=4096, optimizer="lars"),
        detection=DetectionConfig(metric="voc07", images=ImageOptions(data="voc:VOCdevkit")),
        rounds=20,
    )


SMALL = LearnerOptions(projector=(256, 256), h_hidden=(64,), g_hidden=(64,))


def pocket() -> Scale:
    """The same grid on a small encoder and some thousand images of CIFAR-10: an hour or so a target on two cores."""
    cifar10, split = _pocket_pretraining(), _pocket_stream()
    shapes = replace(cifar10, data="shapes")
    probe = PaperProbe(rates=(1.0,), epochs=5, batch=32)  # at lr 30 a head of 128 features does not settle so soon
    return Scale(
        name="pocket",
        seeds=3,
        cifar10=cifar10,
        stl10=shapes,
        imagenet=shapes,
        cifar5m=_with_images(cifar10, images=4_000, epochs=8, warmup=0.8),
        cifar5m_once=_with_images(cifar10, images=30_000, epochs=1, warmup=0.1),
        split_cifar10=split,
        split_cifar100=replace(split, stream=StreamOptions(order_seed=1)),
        split_cifar5m=replace(split, epochs_per_task=1, source=replace(split.source, train_images=16_000)),
        probe=probe,
        imagenet_probe=probe,
        short_imagenet_probe=replace(probe, epochs=2),
        detection=pocket_detection(),
        rounds=10,
        batch_divisor=2,
        stand_ins=(
            "CIFAR-5m and Split CIFAR-5m are CIFAR-10 here, Split CIFAR-100 is Split CIFAR-10 in another order of "
            "classes, STL-10 and ImageNet are shapes, VOC is drawn scenes; batches are half as large, and streams "
            "learn in batches of 64."
        ),
    )


def _pocket_pretraining() -> PretrainConfig:
    """Two passes over 15,000 images."""
    return PretrainConfig(
        data="cifar10",
        backbone="resnet-tiny",
        epochs=2,
        source=DataOptions(train_images=15_000, test_images=4_000, image_size=24),
        learner=SMALL,
        optimization=Optimization(lr=0.6, warmup_epochs=0.2),  # suits SimSiam at batches 64 and 256: docs/results.md
        evaluation=EvalConfig(
            eval_every=100,
            online_bank=1_000,
            online_queries=500,
            final_bank=5_000,
            num_neighbors=50,
            health_metrics=HEALTH,
        ),
    )


def _pocket_stream() -> ContinualConfig:
    """Three passes over each task's share of 8,000 images."""
    return ContinualConfig(
        data="cifar10",
        backbone="resnet-tiny",
        views="simsiam-cifar",
        batch=64,
        epochs_per_task=3,
        source=DataOptions(train_images=8_000, test_images=2_500, image_size=24),
        learner=SMALL,
        optimization=Optimization(lr=0.6, schedule="constant", warmup_epochs=0.0),
        evaluation=EvalConfig(
            encoder="both", eval_every=0, online_bank=300, online_queries=200, final_bank=300, num_neighbors=50
        ),
        reading=READOUTS,
    )


def _with_images(run: PretrainConfig, *, images: int, epochs: int, warmup: float) -> PretrainConfig:
    """The same run over another number of images."""
    return replace(
        run,
        epochs=epochs,
        source=replace(run.source, train_images=images),
        optimization=replace(run.optimization, warmup_epochs=warmup),
    )


def smoke() -> Scale:
    """Seconds for a target: a check that everything works."""
    tiny = PretrainConfig(
        data="shapes",
        backbone="resnet-tiny",
        epochs=1,
        source=DataOptions(train_images=64, test_images=32, image_size=16),
        learner=LearnerOptions(projector=(16, 16), h_hidden=(8,), g_hidden=(8,), queue=64),
        optimization=Optimization(warmup_epochs=0.0),
        evaluation=EvalConfig(
            eval_every=0, online_bank=20, online_queries=20, final_bank=40, num_neighbors=5, health_metrics=HEALTH
        ),
    )
    split = ContinualConfig(
        data="shapes",
        backbone="resnet-tiny",
        views="simsiam-cifar",
        batch=8,
        epochs_per_task=1,
        source=DataOptions(train_images=160, test_images=80, image_size=16),
        learner=tiny.learner,
        stream=StreamOptions(tasks="2x2"),
        evaluation=replace(tiny.evaluation, encoder="both"),
        reading=READOUTS,
    )
    probe = PaperProbe(epochs=1, batch=20)
    return Scale(
        name="smoke",
        seeds=1,
        cifar10=tiny,
        stl10=tiny,
        imagenet=tiny,
        cifar5m=tiny,
        cifar5m_once=tiny,
        split_cifar10=split,
        split_cifar100=split,
        split_cifar5m=split,
        probe=probe,
        imagenet_probe=probe,
        short_imagenet_probe=probe,
        detection=smoke_detection(),
        rounds=1,
        batch_divisor=32,
        stand_ins="All data are shapes, and of every row of settings only the first and the last are run.",
        only_ends=True,
    )


SCALES: Mapping[str, Scale] = {scale.name: scale for scale in (paper(), pocket(), smoke())}


def scale(name: str) -> Scale:
    """The scale called `name`."""
    return look_up("scale", name, SCALES)
