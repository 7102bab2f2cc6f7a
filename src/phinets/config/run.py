"""The settings of one run.

`TrainConfig` holds those of every training, `PretrainConfig` is a training on one data set, `ContinualConfig`
(config/continual.py) one on a stream of tasks.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from phinets.config.errors import UserError, look_up, require_at_least, require_finite, require_in
from phinets.config.methods import (
    EncoderName,
    LearnerOptions,
    default_projector,
    has_slow,
    method,
    methods_with_slow_encoder,
    require_work,
)
from phinets.config.plain import to_plain, without
from phinets.config.views import PLANS, ViewPlan

HealthMetric = Literal["alignment", "spectrum", "stable-rank", "slow-gap", "code-scale"]
SEEDS = "[0, 9223372036854775808)"
"""The seeds of torch's generators: 0 to 2^63 − 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Where the data are, how many images, and at which size."""

    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a missing data set may be downloaded."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    train_images: int | None = None
    """Number of training images; unset: all (shapes: 50,000; stream:shapes: 180,000)."""
    test_images: int | None = None
    """Number of test images; unset: all (shapes: 10,000)."""
    image_size: int = 32
    """Side of the images that the encoder sees, in pixels."""
    shapes_seed: int = 0
    """Which world `shapes` draws; apart from the run's seed, so that all seeds of a run see the same data."""
    max_bad_images: int = 10
    """Number of bad images that are reported and skipped; with one more the run stops."""
    max_pixels: int | None = None
    """Largest image file, in pixels; unset: 500 million for a JPEG, which is decoded at a fraction, else 89,478,485."""

    def __post_init__(self) -> None:
        require_at_least(self, train_images=1, test_images=1, image_size=8, max_pixels=1)
        require_at_least(self, shapes_seed=0, max_bad_images=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """Optimizer and learning rate."""

    optimizer: Literal["sgd", "adamw", "lars"] = "sgd"
    """The rule: SGD with momentum, AdamW, or LARS for very large batches."""
    lr: float = 0.03
    """Learning rate per 256 images of the batch: the peak is lr · batch / 256."""
    momentum: float = 0.9
    """Momentum of SGD and LARS; the first β of AdamW."""
    weight_decay: float = 5e-4
    """Weight decay, on all parameters."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """After the warm-up: half a cosine down to 0, step by step, or no change."""
    warmup_epochs: float = 10.0
    """Epochs of linear rise from 0."""
    constant_h: bool = True
    """Whether the predictor h keeps the peak rate while all else follows the schedule (SimSiam's rule)."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_at_least(self, warmup_epochs=0)
        require_in(self, lr="(0, 1000]", momentum="[0, 1)", weight_decay="[0, 1000]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalConfig:
    """How the encoder is evaluated, during training and at the end."""

    eval_every: int = 500
    """Steps between two evaluations (collapse meter and kNN); 0: only at the end."""
    eval_at_images: tuple[int, ...] = ()
    """Evaluate also after these numbers of images, ascending, e.g. 1000 10000 100000."""
    online_bank: int = 5000
    """Training images in the bank of kNN during training."""
    online_queries: int = 1000
    """Test images of kNN during training."""
    final_bank: int | None = None
    """Training images for the final kNN and linear probe, in a stream those of each task; unset: all."""
    num_neighbors: int = 200
    """Neighbors that vote."""
    knn_temperature: float = 0.1
    """Votes weigh exp(cosine / temperature)."""
    encoder: Literal["fast", "slow", "both"] = "fast"
    """Which encoder is evaluated: fast (trained by gradients), slow (its moving average), or both."""
    health_metrics: tuple[HealthMetric, ...] = ()
    """Further metrics of an evaluation, beside kNN and the collapse meter: alignment (with uniformity), spectrum (of
    codes and features), stable-rank (of each layer of h and g), slow-gap (between fast and slow weights), code-scale
    (RMS of z, and Sim-2's share of f's gradient)."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_at_least(self, eval_every=0, online_queries=1, num_neighbors=1, online_bank=20, final_bank=20)
        if list(self.eval_at_images) != sorted({count for count in self.eval_at_images if count > 0}):
            raise UserError(
                f"eval_at_images is {' '.join(map(str, self.eval_at_images))}, but must be ascending numbers above 0, "
                "e.g. 1000 2000 5000."
            )
        require_in(self, knn_temperature="(0, inf)")
        for name, bank in (("online_bank", self.online_bank), ("final_bank", self.final_bank)):
            if bank is not None and bank < self.num_neighbors:
                raise UserError(
                    f"{name} holds {bank} images, but num_neighbors asks for {self.num_neighbors} neighbors among them."
                )

    def eval_steps(self, batch: int) -> frozenset[int]:
        """The steps after which the numbers of `eval_at_images` are reached."""
        return frozenset(-(-count // batch) for count in self.eval_at_images)

    def unreached_evals(self, images: int) -> tuple[int, ...]:
        """The numbers of `eval_at_images` beyond a run's number of images."""
        return tuple(count for count in self.eval_at_images if count > images)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Where and how the arithmetic is done."""

    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    precision: Literal["auto", "fp32", "bf16", "fp16", "fp64"] = "auto"
    """Autocast; auto takes bf16 (else fp16) on CUDA and fp32 elsewhere. fp64 is slow, and for checking."""
    channels_last: bool = True
    """Keep images channels-last in memory: faster convolutions."""
    compile: bool = False
    """Compile the encoder with torch.compile."""
    threads: int | None = None
    """CPU threads; unset: as many as torch chooses."""
    accumulate: int = 1
    """Micro-batches per batch, to save memory; batch norm then sees one micro-batch at a time."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Further places for the metrics, beside metrics.jsonl."""

    def __post_init__(self) -> None:
        require_at_least(self, accumulate=1, threads=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOptions:
    """Checkpoints and figures."""

    checkpoint_every: str = "300s"
    """Time or steps between two checkpoints: 300s, 200steps. There is always one at the end."""
    keep_epochs: int = 0
    """Keep the checkpoint of every k-th epoch, beside the last two; 0: the last two only."""
    pictures: bool = True
    """Draw figures at the end."""

    def __post_init__(self) -> None:
        require_at_least(self, keep_epochs=0)
        _ = self.interval

    @property
    def interval(self) -> tuple[float | None, int | None]:
        """`checkpoint_every` as (seconds, steps), of which one is None."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|steps?)", self.checkpoint_every.strip())
        seconds = match is not None and match[2] == "s"
        if match is None or float(match[1]) == 0 or not (seconds or match[1].isdigit()):
            raise UserError(f"checkpoint_every is '{self.checkpoint_every}', but must be e.g. 300s or 200steps.")
        return (float(match[1]), None) if seconds else (None, int(match[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(ABC):
    """The settings that every kind of training has."""

    command: ClassVar[str] = "train"
    """The command that runs it."""
    SLOW_CHOICES: ClassVar[tuple[str, ...]] = ("slow", "both")
    """Choices of `evaluation.encoder` that need a slow encoder."""
    method: str = "x-phinet"
    """Which learner; `phinets list methods` shows all."""
    backbone: str = "resnet18-cifar"
    """Which encoder; `phinets list backbones` shows all."""
    data: str = "shapes"
    """Training data; `phinets list data` shows all."""
    views: str = "simsiam-cifar"
    """Which augmentations; a plan's name."""
    batch: int = 512
    """Images per step."""
    seed: int = 0
    """The seed of weights, order and views, which have a random stream each."""
    source: DataOptions = field(default_factory=DataOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    optimization: Optimization = field(default_factory=Optimization)
    evaluation: EvalConfig = field(default_factory=EvalConfig)
    compute: Compute = field(default_factory=Compute)
    saving: SaveOptions = field(default_factory=SaveOptions)

    def __post_init__(self) -> None:
        require_work(method(self.method), self.learner)
        self._require_slow_encoder()
        plan = self.plan
        if plan.first is None and plan.second is None:
            raise UserError(
                f"the view plan '{self.views}' augments neither view, so both would be the same image. "
                "Use --views simsiam-cifar, or another plan that augments."
            )
        if self.batch < 2:
            raise UserError(f"batch is {self.batch}, but batch norm needs at least two images. Use --batch 2 or more.")
        if self.batch < 2 * self.compute.accumulate or self.batch % self.compute.accumulate:
            raise UserError(
                f"a batch of {self.batch} can't be divided into {self.compute.accumulate} equal micro-batches of at "
                "least two images. Use an --accumulate that divides --batch."
            )
        require_in(self, seed=SEEDS)

    def _require_slow_encoder(self) -> None:
        """Refuse to evaluate a slow encoder that the method does not have."""
        needs_slow = self.evaluation.encoder in self.SLOW_CHOICES or "slow-gap" in self.evaluation.health_metrics
        if needs_slow and not has_slow(method(self.method)):
            raise UserError(
                f"'{self.method}' has no slow encoder to evaluate. Use --encoder fast without --health-metrics "
                f"slow-gap, or a method that has one: {methods_with_slow_encoder()}."
            )

    @property
    def encoders(self) -> tuple[EncoderName, ...]:
        """The encoders that are evaluated; "both" means fast, and slow where the method has it."""
        choice = self.evaluation.encoder
        if choice != "both":
            return (choice,)
        return ("fast", "slow") if has_slow(method(self.method)) else ("fast",)

    @property
    def resolved(self) -> Self:
        """The run with the method's defaults filled in, as config.yaml stores it."""
        widths = self.learner.projector or default_projector(method(self.method))
        return replace(self, learner=replace(self.learner, projector=widths))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all training data."""
        return (self.data,)

    @property
    def data_names(self) -> str:
        """The names of all training data, joined."""
        return ", ".join(self.sources)

    @property
    @abstractmethod
    def length(self) -> str:
        """Its length in words."""

    def permanent_checkpoints(self, ends: tuple[int, ...]) -> frozenset[int]:
        """The steps whose checkpoint is never deleted; `ends` are the last steps of the tasks."""
        return frozenset()

    @property
    def plan(self) -> ViewPlan:
        return look_up("view plan", self.views, PLANS)

    @property
    def peak_lr(self) -> float:
        """The learning rate at the end of the warm-up: lr · batch / 256."""
        return self.optimization.lr * self.batch / 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainConfig(TrainConfig):
    """A whole pretraining run."""

    epochs: int = 800
    """Passes over the training images."""

    def __post_init__(self) -> None:
        TrainConfig.__post_init__(self)
        require_warmup("run", self.optimization, self.epochs, "--epochs")

    @property
    def length(self) -> str:
        return f"{self.epochs} epochs"


def require_warmup(of: str, optimization: Optimization, epochs: int, option: str) -> None:
    """Refuse a training of no epochs, and a warm-up that is longer than the training."""
    if epochs < 1:
        raise UserError(f"{option} is {epochs}, but must be at least 1.")
    if optimization.warmup_epochs > epochs:
        raise UserError(
            f"the warm-up of {optimization.warmup_epochs:g} epochs is longer than the {of} of {epochs}. "
            f"Use --warmup-epochs {epochs / 10:g}, or more {option}."
        )


FREE = (
    "compute", "saving", "keep_tasks", "source.max_bad_images", "source.max_pixels", "source.root", "source.download",
)  # fmt: skip
"""Settings that may change when a run is resumed: they do not affect the learned weights."""


def learning_settings(config: TrainConfig) -> dict[str, Any]:
    """The settings that affect the learned weights, as plain values."""
    return without(to_plain(config), FREE)
