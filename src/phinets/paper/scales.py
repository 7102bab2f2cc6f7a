"""The three scales, as values: a scale says how large everything is, and nothing else.

Targets take a scale's runs and change method, weight decay, batch, seed in them; so all scales use the same code. The
paper's own settings are the defaults of `PretrainConfig`, `ContinualConfig`, `PaperProbe` and `DetectionConfig`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

import numpy as np

from phinets.config.continual import ContinualConfig, ReadoutOptions, StreamOptions
from phinets.config.detection import DetectionConfig, ImageOptions
from phinets.config.detection import pocket as pocket_detection
from phinets.config.detection import smoke as smoke_detection
from phinets.config.errors import look_up
from phinets.config.evaluation import PaperProbe
from phinets.config.methods import LearnerOptions
from phinets.config.run import DataOptions, EvalConfig, Optimization, PretrainConfig, TrainConfig

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
    probe: PaperProbe | None
    """None: the cached linear probe of every run."""
    imagenet_probe: PaperProbe | None
    short_imagenet_probe: PaperProbe | None
    """As in the ablation of g on ImageNet."""
    detection: DetectionConfig
    rounds: int
    """Of steps, when costs are measured."""
    usual_batch: int | None = None
    """The batch of all runs but those that compare batch sizes; None: the paper's of each."""
    batch_divisor: int = 1
    """The factor by which batches are smaller than the paper's where they are compared."""
    matches_decay: bool = False
    """Whether weight decays stand for S, the number of decay times in a run (`decay_times`), not for themselves."""
    stand_ins: str = ""
    """What replaces what, and which sizes differ beside images and epochs, in words."""
    only_ends: bool = False
    """Whether only the first and the last of a row of weight decays, batch sizes or β run."""
    decays: tuple[float, ...] = ()
    """The weight decays of the paper that are run; empty: all."""

    def batch(self, of_the_paper: int) -> int:
        """The batch that stands for one of the paper's where batch sizes are compared."""
        return max(2, of_the_paper // self.batch_divisor)

    def some(self, values: tuple[T, ...]) -> tuple[T, ...]:
        """The settings of a row that are run."""
        return (values[0], values[-1]) if self.only_ends and len(values) > 1 else values

    def some_decays(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """The weight decays of a row that are run."""
        return tuple(value for value in self.some(values) if not self.decays or value in self.decays)

    def weight_decay(self, run: TrainConfig, of_the_paper: float) -> float:
        """The weight decay that stands for one of the paper's in a run of this scale."""
        return decay_times(of_the_paper) / lr_sum(run) if self.matches_decay else of_the_paper


DECAY_TIMES: Mapping[float, float] = {1e-5: 0.23, 1e-4: 1.0, 1e-3: 2.3, 2e-3: 6.0}
"""S at small scales for weight decays of the paper, whose own S on CIFAR-10 is .23, 2.3, 23 and 47."""


def decay_times(weight_decay: float) -> float:
    """S = wd·Σlr/(1−momentum), the number of decay times in a run, at small scales for a weight decay of the paper.

    At fewer steps T the same S needs a larger rotation per step, θ = 2·√(S/T), and from θ ≈ .05 on training fails. So
    small scales keep the order of the paper's decays and the S of the smallest: docs/reproduce.md. Interpolates in
    logarithms.
    """
    if weight_decay == 0:
        return 0.0
    log_decays, log_times = np.log([*DECAY_TIMES]), np.log([*DECAY_TIMES.values()])
    return float(np.exp(np.interp(np.log(weight_decay), log_decays, log_times)))


def lr_sum(run: TrainConfig) -> float:
    """Σ lr/(1−momentum) over all steps of a run, its warm-up aside."""
    images, rule = run.source.train_images, run.optimization
    assert images is not None
    epochs = (
        run.epochs_per_task
        if isinstance(run, ContinualConfig)
        else run.epochs
        if isinstance(run, PretrainConfig)
        else 1
    )
    mean_rate = run.peak_lr * (0.5 if rule.schedule == "cosine" else 1.0)
    return mean_rate * epochs * images / run.batch / (1 - rule.momentum)


READOUTS = ReadoutOptions(readouts=("task-knn", "task-linear"))
"""The paper does not name the readout of its streams; UCL, on which it builds, uses kNN within each task."""
HEALTH: Final = ("stable-rank",)
POCKET_HEALTH: Final = ("stable-rank", "code-scale")
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


NANO = LearnerOptions(projector=(128, 128), h_hidden=(32,), g_hidden=(32,), queue=1024)


def pocket() -> Scale:
    """The same tables on a very small encoder and drawn images: 10,000 small steps, one or two minutes on one core."""
    pretraining, split = _pocket_pretraining(), _pocket_stream()
    return Scale(
        name="pocket",
        seeds=5,
        cifar10=pretraining,
        stl10=_world(pretraining, 1),
        imagenet=_world(pretraining, 2),
        cifar5m=replace(pretraining, epochs=8, source=replace(pretraining.source, train_images=40_000)),
        cifar5m_once=replace(
            pretraining,
            data="stream:shapes/single",
            epochs=1,
            source=replace(pretraining.source, train_images=320_000),
            optimization=replace(pretraining.optimization, warmup_epochs=0.0125),
        ),
        split_cifar10=split,
        split_cifar100=replace(split, stream=StreamOptions(order_seed=1)),
        split_cifar5m=replace(split, epochs_per_task=1, source=replace(split.source, train_images=320_000)),
        probe=None,
        imagenet_probe=None,
        short_imagenet_probe=None,
        detection=pocket_detection(),
        rounds=10,
        usual_batch=32,
        batch_divisor=8,
        matches_decay=True,
        decays=(0.0, 1e-5, 1e-4, 1e-3, 2e-3),
        stand_ins=(
            "All data are drawn: shapes/single at 16 pixels, other images of it for STL-10 and ImageNet, another order "
            "of classes for Split CIFAR-100, scenes for VOC. Batches are 32, and where they are compared an eighth of "
            "the paper's. Weight decays 0, 1e-5, 1e-4, 1e-3 and 2e-3 stand for 0, .23, 1, 2.3 and 6 decay times (S); "
            "others are not compared. The linear probe is the cached one."
        ),
    )


def _pocket_pretraining() -> PretrainConfig:
    """10,000 steps: 16 passes over 20,000 images."""
    return PretrainConfig(
        data="shapes/single",
        backbone="resnet-nano",
        epochs=16,
        batch=32,
        source=DataOptions(train_images=20_000, test_images=4_000, image_size=16),
        learner=NANO,
        optimization=Optimization(lr=0.24, warmup_epochs=0.2),
        evaluation=EvalConfig(
            eval_every=1_000,
            online_bank=1_000,
            online_queries=500,
            final_bank=5_000,
            num_neighbors=50,
            health_metrics=POCKET_HEALTH,
        ),
    )


def _world(run: PretrainConfig, seed: int) -> PretrainConfig:
    """The same on other drawn images."""
    return replace(run, source=replace(run.source, shapes_seed=seed))


def _pocket_stream() -> ContinualConfig:
    """10,000 steps: 16 passes over each task's share of 20,000 images; 2,000 test images a task."""
    run = ContinualConfig(
        data="shapes/single",
        backbone="resnet-nano",
        views="simsiam-cifar",
        batch=32,
        epochs_per_task=16,
        source=DataOptions(train_images=20_000, test_images=10_000, image_size=16),
        learner=NANO,
        optimization=Optimization(lr=0.24, schedule="constant", warmup_epochs=0.0),
        evaluation=EvalConfig(
            encoder="both", eval_every=0, online_bank=300, online_queries=200, final_bank=1_000, num_neighbors=50
        ),
        reading=READOUTS,
    )
    decay = decay_times(run.optimization.weight_decay) / lr_sum(run)
    return replace(run, optimization=replace(run.optimization, weight_decay=decay))


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
