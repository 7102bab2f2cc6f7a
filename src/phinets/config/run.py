"""One run as one value: everything that decides what a training gives, and nothing else.

`TrainConfig` is what every training decides, `PretrainConfig` a training on one body of images, `ContinualConfig`
(config/continual.py) one on a stream of tasks.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from phinets.config.errors import UserError, look_up, require_finite
from phinets.config.methods import LearnerOptions, default_projector, has_slow, method, require_work
from phinets.config.views import PLANS, ViewPlan

HealthMetric = Literal["alignment", "spectrum", "stable-rank", "slow-gap"]


def _at_least(least: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= least:
            raise UserError(f"{name} is {value}, but must be at least {least:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Where the data lie, how much of them, and at which size."""

    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a data set that is not there may be fetched from the net."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    train_images: int | None = None
    """How many training images; unset: all there are (shapes: 50,000; stream:shapes: 180,000)."""
    test_images: int | None = None
    """How many test images; unset: all there are (shapes: 10,000)."""
    image_size: int = 32
    """Side of the images that the encoder sees, in pixels."""
    shapes_seed: int = 0
    """Which world `shapes` draws; apart from the run's seed, so that all seeds of a run see the same data."""
    max_bad_images: int = 10
    """How many images that can't be used are reported and skipped; one more, and the run stops."""

    def __post_init__(self) -> None:
        for name in ("train_images", "test_images"):
            value = getattr(self, name)
            if value is not None:
                _at_least(1, **{name: value})
        _at_least(8, image_size=self.image_size)
        _at_least(0, shapes_seed=self.shapes_seed, max_bad_images=self.max_bad_images)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """How weights follow gradients."""

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
        _at_least(0, weight_decay=self.weight_decay, momentum=self.momentum, warmup_epochs=self.warmup_epochs)
        if not 0 < self.lr <= 1e3:
            raise UserError(f"lr is {self.lr}, but a learning rate lies above 0 and below 1000. The paper uses 0.03.")
        if self.momentum >= 1:
            raise UserError(f"momentum is {self.momentum}, but must be below 1. The paper uses 0.9.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalConfig:
    """How the encoder is judged, while it learns and at the end."""

    eval_every: int = 500
    """Steps between two looks at collapse and kNN; 0 looks only at the end."""
    eval_at_images: tuple[int, ...] = ()
    """Looks when so many images have been seen, beside eval_every: rising numbers, e.g. 1000 10000 100000."""
    online_bank: int = 5000
    """Training images in the bank of the live kNN."""
    online_queries: int = 1000
    """Test images that the live kNN asks about."""
    final_bank: int | None = None
    """Training images for the final kNN and linear probe, in a stream those of each task; unset: all."""
    num_neighbors: int = 200
    """Neighbors that vote."""
    knn_temperature: float = 0.1
    """Votes weigh exp(cosine / temperature)."""
    encoder: Literal["fast", "slow", "both"] = "fast"
    """Whose features are judged: the encoder's that learns by gradients, the slow one's that follows it, or both."""
    health_metrics: tuple[HealthMetric, ...] = ()
    """What a look writes into the journal beside kNN and the collapse meter: alignment (with uniformity), spectrum (of
    codes and features), stable-rank (of each layer of h and g), slow-gap (between fast and slow weights)."""

    def __post_init__(self) -> None:
        require_finite(self)
        _at_least(0, eval_every=self.eval_every)
        if list(self.eval_at_images) != sorted({count for count in self.eval_at_images if count > 0}):
            raise UserError(
                f"eval_at_images is {' '.join(map(str, self.eval_at_images))}, but must be rising numbers of images above 0, "
                "e.g. 1000 2000 5000."
            )
        _at_least(1, online_queries=self.online_queries, num_neighbors=self.num_neighbors)
        _at_least(20, online_bank=self.online_bank, final_bank=20 if self.final_bank is None else self.final_bank)
        if not self.knn_temperature > 0:
            raise UserError(f"knn_temperature is {self.knn_temperature}, but must be above 0. The paper uses 0.1.")
        for name, bank in (("online_bank", self.online_bank), ("final_bank", self.final_bank)):
            if bank is not None and bank < self.num_neighbors:
                raise UserError(
                    f"{name} holds {bank} images, but num_neighbors asks for {self.num_neighbors} neighbors among them."
                )

    def eval_steps(self, batch: int) -> frozenset[int]:
        """The steps by which the numbers of `eval_at_images` have been seen, in steps of so many images."""
        return frozenset(-(-count // batch) for count in self.eval_at_images)

    def unreached_evals(self, images: int) -> tuple[int, ...]:
        """The numbers of `eval_at_images` that a run of so many images does not come to."""
        return tuple(count for count in self.eval_at_images if count > images)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Where and how the arithmetic is done."""

    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    precision: Literal["auto", "fp32", "bf16", "fp16", "fp64"] = "auto"
    """Autocast; auto takes bf16 (else fp16) on CUDA and fp32 elsewhere. fp64 is slow, and for checking."""
    channels_last: bool = True
    """Keep images channels-last in memory, which convolutions like."""
    compile: bool = False
    """Compile the encoder with torch.compile."""
    threads: int | None = None
    """CPU threads; unset: as many as torch chooses."""
    accumulate: int = 1
    """Parts that a batch is computed in, one after another, to save memory; batch norm then sees one part at a time."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Further places for the metrics, beside metrics.jsonl."""

    def __post_init__(self) -> None:
        _at_least(1, accumulate=self.accumulate)
        if self.threads is not None:
            _at_least(1, threads=self.threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """When the run is kept."""

    checkpoint_every: str = "300s"
    """Time or steps between two checkpoints: 300s, 200steps. There is one at the end in any case."""
    keep_epochs: int = 0
    """Keep every k-th epoch's checkpoint for good, beside the last two; 0 keeps the last two only."""
    pictures: bool = True
    """Draw the run's curves at its end."""

    def __post_init__(self) -> None:
        _at_least(0, keep_epochs=self.keep_epochs)
        _ = self.interval

    @property
    def interval(self) -> tuple[float | None, int | None]:
        """`checkpoint_every` as (seconds, steps), of which one is None."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|steps?)", self.checkpoint_every.strip())
        seconds = found is not None and found[2] == "s"
        if found is None or float(found[1]) == 0 or not (seconds or found[1].isdigit()):
            raise UserError(
                f"checkpoint_every is '{self.checkpoint_every}', but must be a time such as 300s or a number of steps "
                "such as 200steps."
            )
        return (float(found[1]), None) if seconds else (None, int(found[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(ABC):
    """Who learns, from what, and how; for how long is said by what is derived from it."""

    method: str = "x-phinet"
    """Which learner; `phinets list methods` shows all."""
    backbone: str = "resnet18-cifar"
    """Which encoder; `phinets list backbones` shows all."""
    data: str = "shapes"
    """What to learn from; `phinets list data` shows all."""
    views: str = "simsiam-cifar"
    """Which augmentations; a plan's name."""
    batch: int = 512
    """Images per step."""
    seed: int = 0
    """The one seed: weights, order and views are drawn from it, each from its own stream."""
    source: DataOptions = field(default_factory=DataOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    optimization: Optimization = field(default_factory=Optimization)
    evaluation: EvalConfig = field(default_factory=EvalConfig)
    compute: Compute = field(default_factory=Compute)
    saving: Saving = field(default_factory=Saving)

    def __post_init__(self) -> None:
        require_work(method(self.method), self.learner)
        asks_slow = self.evaluation.encoder != "fast" or "slow-gap" in self.evaluation.health_metrics
        if asks_slow and not has_slow(method(self.method)):
            raise UserError(
                f"'{self.method}' has no slow encoder to judge or to measure. Use --encoder fast without the "
                "measure slow-gap, or a method that has one: x-phinet, byol, moco-v2, rm-simsiam."
            )
        plan = self.plan
        if plan.first is None and plan.second is None:
            raise UserError(
                f"the view plan '{self.views}' augments neither view: both would be the same image and there would be "
                "nothing to predict. Use --views simsiam-cifar, or another plan that augments."
            )
        _at_least(1, batch=self.batch)
        if self.batch < 2:
            raise UserError("batch is 1, but batch norm needs at least two images. Use --batch 2 or more.")
        if self.batch < 2 * self.compute.accumulate or self.batch % self.compute.accumulate:
            raise UserError(
                f"a batch of {self.batch} can't be computed in {self.compute.accumulate} equal parts of at least two "
                "images. Use an --accumulate that divides --batch."
            )
        if not 0 <= self.seed < 2**63:
            raise UserError(f"the seed is {self.seed}, but must be a whole number from 0 to 2^63 − 1.")

    @property
    def resolved(self) -> Self:
        """The same run with nothing left to the method's own choice: what config.yaml keeps."""
        widths = self.learner.projector or default_projector(method(self.method))
        return replace(self, learner=replace(self.learner, projector=widths))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all data that are learned from."""
        return (self.data,)

    @property
    def learned_from(self) -> str:
        """What is learned from, in words."""
        return ", ".join(self.sources)

    @property
    def command(self) -> str:
        """The command that runs it."""
        return "train"

    @property
    @abstractmethod
    def length(self) -> str:
        """How long it is, in words."""

    def lasting(self, ends: tuple[int, ...]) -> frozenset[int]:
        """At which of the tasks' last steps the checkpoint stays for good."""
        return frozenset()

    @property
    def plan(self) -> ViewPlan:
        """The view plan that `views` names."""
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
        """How long it is, in words."""
        return f"{self.epochs} epochs"


def require_warmup(of: str, optimization: Optimization, epochs: int, option: str) -> None:
    """Refuse a training without a pass, and a warm-up that is longer than it."""
    if epochs < 1:
        raise UserError(f"{option} is {epochs}, but must be at least 1.")
    if optimization.warmup_epochs > epochs:
        raise UserError(
            f"the warm-up of {optimization.warmup_epochs:g} epochs is longer than the {of} of {epochs}. "
            f"Use --warmup-epochs {epochs / 10:g}, or more {option}."
        )
