"""Detection transfer: its configuration, and the record of a finished run, without torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from phinets.config.errors import UserError, look_up, require_at_least, require_finite, require_in
from phinets.config.methods import EncoderName
from phinets.config.run import SEEDS, SaveOptions
from phinets.config.views import Channels

MetricName = Literal["coco", "voc07", "voc12"]
METRIC_WORDS: Mapping[MetricName, str] = {
    "coco": "COCO's: 101 points of recall, at most 100 detections per class and image",
    "voc07": "VOC 2007's: 11 points of recall",
    "voc12": "VOC 2012's: the whole area under the curve",
}
"""Every metric is computed at IoU .50, .55, …, .95 (AP), .50 (AP50) and .75 (AP75)."""
FULL_BATCH = 16
"""The batch size that `lr` is for."""
LR_FACTOR = 0.1
"""The learning rate is multiplied by this at each milestone."""
WARMUP_START = 1e-3
"""First learning rate of the warm-up, relative to the peak: Detectron2's."""
MIN_SIDE = 16
"""Shortest side of an image, in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """Which images, and their size for the detector."""

    data: str = ""
    """Annotated images in VOC's layout: voc:PATH, where PATH holds Annotations, JPEGImages and ImageSets/Main, or
    folders VOC2007, VOC2012 that do. Without ImageSets/Main the images are split by --test-share."""
    images: str = "JPEGImages"
    """The folder in PATH that holds the images; . is PATH itself."""
    annotations: str = "Annotations"
    """The folder in PATH that holds the annotations: one .xml file for each image, with its name."""
    test_share: float | None = None
    """Share of the images of --data that are for the test, whatever the lists; always the same ones. Unset: the lists,
    or a fifth where there are none."""
    extra_data: tuple[str, ...] = ()
    """Further such places to train on; test images come from --data only."""
    train_set: str | None = None
    """The training list in ImageSets/Main; unset: trainval if there is a list test, else train."""
    test_set: str | None = None
    """The test list; unset: test, else val."""
    classes: tuple[str, ...] = ()
    """Only these classes; unset: all names in the annotations, in alphabetical order."""
    train_images: int | None = None
    """Number of training images, sampled by the seed; unset: all."""
    test_images: int | None = None
    """Number of test images, sampled by the seed; unset: all."""
    train_sides: tuple[int, ...] = tuple(range(480, 801, 32))
    """Lengths of the shorter side in training; one is sampled for each image."""
    test_side: int = 800
    """Length of the shorter side in the test."""
    max_side: int = 1333
    """Upper limit of the longer side; the shorter one is reduced with it."""
    flip: float = 0.5
    """Probability of a horizontal flip in training."""
    pixel_mean: Channels | None = None
    """Mean of red, green and blue, from 0 to 1; unset: the encoder's own, else ImageNet's."""
    pixel_std: Channels | None = None
    """Standard deviation of red, green and blue; unset: the encoder's own, else ImageNet's."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_at_least(self, train_images=1, test_images=1, test_side=MIN_SIDE, train_sides=MIN_SIDE)
        if not self.train_sides:
            raise UserError("train_sides names no length. Give e.g. 480 800.")
        require_at_least(self, max_side=max(*self.train_sides, self.test_side))
        require_in(self, flip="[0, 1]")
        if self.test_share is not None:
            require_in(self, test_share="(0, 1)")
            if self.train_set or self.test_set:
                raise UserError("--test-share splits the images without lists. Leave out --train-set and --test-set.")
        if self.pixel_std is not None and min(self.pixel_std) <= 0:
            raise UserError(f"pixel_std is {self.pixel_std}, but pixels are divided by it: it must be above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Anchors and region proposals. The defaults are Detectron2's for C4."""

    anchor_sizes: tuple[int, ...] = (32, 64, 128, 256, 512)
    """Sides of the square anchors, in pixels of the resized image."""
    anchor_ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Height ÷ width of the anchors of each size."""
    anchors_per_image: int = 256
    """Anchors per image in the loss."""
    train_candidates: int = 12_000
    """Best anchors per image before non-maximum suppression, in training."""
    train_proposals: int = 2000
    """Proposals per image after it, in training."""
    test_candidates: int = 6000
    """Best anchors per image before non-maximum suppression, in the test."""
    test_proposals: int = 1000
    """Proposals per image after it, in the test; each goes through the head."""
    regions: int = 512
    """Regions per image in the loss of the head, at most a quarter of them with an object."""

    def __post_init__(self) -> None:
        require_finite(self)
        for name in ("anchor_sizes", "anchor_ratios"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}, but must be one or more numbers above 0.")
        require_at_least(self, train_candidates=1, train_proposals=1, test_candidates=1, test_proposals=1)
        require_at_least(self, anchors_per_image=2, regions=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorOptimization:
    """SGD on all weights, batch norm included."""

    iterations: int = 24_000
    """Steps."""
    batch: int = 16
    """Images per step."""
    lr: float = 0.02
    """Learning rate for a batch of 16; the actual one is lr · batch / 16."""
    momentum: float = 0.9
    """Momentum of SGD."""
    weight_decay: float = 1e-4
    """Weight decay, on all parameters."""
    milestones: tuple[int, ...] = (18_000, 22_000)
    """Steps after which the learning rate drops to a tenth."""
    warmup_steps: int = 100
    """Steps of linear warm-up, from a thousandth."""

    def __post_init__(self) -> None:
        require_finite(self)
        require_at_least(self, iterations=1, batch=1, warmup_steps=0, milestones=0)
        require_in(self, lr="(0, 10]", momentum="[0, 1)", weight_decay="[0, 1000]")

    @property
    def peak_lr(self) -> float:
        return self.lr * self.batch / FULL_BATCH

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0: linear warm-up, then a tenth after each milestone."""
        share = min(1.0, step / self.warmup_steps) if self.warmup_steps else 1.0
        factor = LR_FACTOR ** sum(step >= milestone for milestone in self.milestones)
        return self.peak_lr * factor * (WARMUP_START * (1 - share) + share)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionCompute:
    """Device, memory and files. Only `accumulate` changes the result."""

    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    accumulate: int = 1
    """Micro-batches per batch, to save memory; batch norm then sees one micro-batch at a time."""
    checkpoint_every: str = "300s"
    """Time or steps between two checkpoints: 300s, 200steps. There is always one at the end."""
    figures: bool = True
    """Draw the losses, and detections on some test images, at the end."""

    def __post_init__(self) -> None:
        require_at_least(self, accumulate=1)
        _ = self.saving

    @property
    def saving(self) -> SaveOptions:
        return SaveOptions(checkpoint_every=self.checkpoint_every)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionConfig:
    """A detection transfer. The defaults are the paper's: Detectron2's R50-C4 for 24,000 steps."""

    encoder: EncoderName = "fast"
    """The encoder trained by gradients, or the slow one, where the method has one."""
    backbone: str | None = None
    """For a file of weights: which encoder it fits; `phinets list backbones` shows all."""
    unfinished: bool = False
    """Use the newest checkpoint of an unfinished run."""
    scratch: bool = False
    """Also train a detector from fresh weights in the same way: the baseline of pretraining."""
    metric: MetricName = "coco"
    """The average precision in the tables: COCO's, VOC 2007's 11-point one (which Detectron2 uses on VOC 2007, and so
    the paper), or VOC 2012's. The summary holds all three."""
    seed: int = 0
    """Seed of fresh weights, order, sizes, flips, and the sampling of anchors and regions."""
    images: ImageOptions = field(default_factory=ImageOptions)
    proposals: Proposals = field(default_factory=Proposals)
    training: DetectorOptimization = field(default_factory=DetectorOptimization)
    compute: DetectionCompute = field(default_factory=DetectionCompute)

    def __post_init__(self) -> None:
        if self.training.batch % self.compute.accumulate:
            raise UserError(
                f"a batch of {self.training.batch} can't be split into {self.compute.accumulate} equal micro-batches. "
                "Use an --accumulate that divides --batch."
            )
        require_in(self, seed=SEEDS)

    def describe(self) -> str:
        """The training in words."""
        training, images, proposals = self.training, self.images, self.proposals
        sides = "–".join(str(side) for side in sorted({min(images.train_sides), max(images.train_sides)}))
        micro_batches = self.compute.accumulate
        norm = "" if micro_batches == 1 else f" (in {micro_batches} micro-batches, each with its own batch norm)"
        milestones = " and ".join(f"{step:,}" for step in training.milestones if step < training.iterations)
        return (
            "Faster R-CNN C4, all layers and batch norm trained, an extra batch norm after layer4; "
            f"{training.iterations:,} steps of batch {training.batch}{norm}, lr {training.peak_lr:g} "
            f"(= {training.lr:g}·batch/{FULL_BATCH}), {f'a tenth after {milestones}, ' if milestones else ''}warm-up "
            f"{training.warmup_steps}, momentum {training.momentum:g}, weight decay {training.weight_decay:g}; shorter "
            f"side {sides} (test {images.test_side}, longer at most {images.max_side}), flip {images.flip:g}; "
            f"{proposals.regions} regions per image in training, {proposals.test_proposals} in the test; "
            f"seed {self.seed}"
        )


def pocket() -> DetectionConfig:
    """Minutes on two cores: 64 small images, 150 steps of batch 4."""
    images = ImageOptions(train_images=64, test_images=24, train_sides=(192, 224, 256), test_side=224, max_side=384)
    few = Proposals(train_candidates=600, train_proposals=200, test_candidates=600, test_proposals=60, regions=16)
    proposals = replace(few, anchor_sizes=(12, 24, 48, 96, 160), anchors_per_image=64)
    training = DetectorOptimization(iterations=150, batch=4, lr=0.08, milestones=(120, 140), warmup_steps=20)
    return DetectionConfig(images=images, proposals=proposals, training=training)


def smoke() -> DetectionConfig:
    """A test of everything, in seconds."""
    base = pocket()
    images = replace(base.images, train_images=8, test_images=4, train_sides=(96, 128), test_side=112, max_side=192)
    proposals = replace(base.proposals, anchor_sizes=(8, 16, 32, 64, 96), regions=8, test_proposals=20)
    training = replace(base.training, iterations=6, batch=2, milestones=(4,), warmup_steps=2)
    return replace(base, images=images, proposals=proposals, training=training)


RECIPES: Mapping[str, Callable[[], DetectionConfig]] = {"paper": DetectionConfig, "pocket": pocket, "smoke": smoke}


def detection_recipe(name: str) -> DetectionConfig:
    """The detection transfer called `name`: paper, pocket, smoke."""
    return look_up("recipe of `phinets detect`", name, RECIPES)()


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragePrecision:
    """Average precision in percent; None for a class without objects."""

    ap: float | None
    """The mean over IoU .50, .55, …, .95 and classes."""
    ap50: float | None
    """At IoU .50."""
    ap75: float | None
    """At IoU .75."""
    per_class: dict[str, float | None]
    """Each the mean over IoU .50, .55, …, .95."""
    per_class50: dict[str, float | None]
    """Each at IoU .50."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorResult:
    """One detector: from an encoder's weights, or from fresh ones."""

    name: str
    """encoder or scratch; also the name of its folder."""
    description: str
    """The initial weights, in words."""
    precision: dict[str, AveragePrecision]
    """By metric: coco, voc07, voc12."""
    loss_first: float
    """The mean loss over the first tenth of the steps."""
    loss_last: float
    """The mean loss over the last tenth."""
    seconds: float
    """Training and test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSummary:
    """The numbers of a finished detection transfer: summary.json."""

    target: str
    backbone: str
    data: str
    classes: tuple[str, ...]
    train_images: int
    test_images: int
    metric: MetricName
    """The metric of the tables."""
    protocol: str
    """Images and training, in words."""
    detectors: tuple[DetectorResult, ...]
    """The encoder's first."""
    paper: str | None
    """The benchmark of the paper with the same images, if any: VOC 07, or VOC 07+12."""
    seconds: float

    @property
    def comparable(self) -> str | None:
        """The benchmark of the paper with the same images and metric."""
        return self.paper if self.metric == "voc07" else None

    def describe(self) -> str:
        """The whole protocol in words, with the metric."""
        return f"{self.protocol}; average precision {METRIC_WORDS[self.metric]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRecord:
    """A finished detection transfer."""

    folder: str
    summary: DetectionSummary
    journals: dict[str, list[dict[str, Any]]]
    """The rows of each detector's journal."""
