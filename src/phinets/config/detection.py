"""A detector on top of an encoder as one value: pictures, proposals, training, and how it is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from phinets.config.errors import UserError, look_up, require_finite
from phinets.config.methods import EncoderName
from phinets.config.run import Saving
from phinets.config.views import Channels

MetricName = Literal["coco", "voc07", "voc12"]
METRIC_WORDS: Mapping[MetricName, str] = {
    "coco": "COCO's: 101 points of recall, at most 100 detections of a class in a picture",
    "voc07": "VOC 2007's: 11 points of recall",
    "voc12": "VOC 2012's: the whole area under the curve",
}
"""Every metric is computed at IoU .50, .55, …, .95 (AP), .50 (AP50) and .75 (AP75)."""
FULL_BATCH = 16
"""The batch that `lr` is meant for."""
DROP = 0.1
"""What the learning rate is multiplied with at each drop."""
WARMUP_START = 1e-3
"""Where the warm-up begins, as a share of the learning rate: Detectron2's."""


def _at_least(least: float, **values: float) -> None:
    for name, value in values.items():
        if not value >= least:
            raise UserError(f"{name} is {value}, but must be at least {least:g}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Which pictures, and how large the detector sees them."""

    data: str = ""
    """Annotated pictures in VOC's layout: voc:PATH, where PATH holds Annotations, JPEGImages and ImageSets/Main, or
    folders VOC2007, VOC2012 that do."""
    also: tuple[str, ...] = ()
    """Further such places to learn from; what is asked about comes from --data alone."""
    train_set: str | None = None
    """The list in ImageSets/Main to learn from; unset: trainval where there is a list test, else train."""
    test_set: str | None = None
    """The list that is asked about; unset: test, else val."""
    classes: tuple[str, ...] = ()
    """Only these classes; unset: every name in the annotations, in the order of the alphabet."""
    train_images: int | None = None
    """How many pictures to learn from, drawn by the seed; unset: all."""
    test_images: int | None = None
    """How many pictures are asked about, drawn by the seed; unset: all."""
    train_sides: tuple[int, ...] = tuple(range(480, 801, 32))
    """Lengths of the shorter side while learning, of which one is drawn for each picture."""
    test_side: int = 800
    """Length of the shorter side when asked."""
    max_side: int = 1333
    """The longer side is never longer than this; the shorter one gives way."""
    flip: float = 0.5
    """Chance of a mirror image, left to right, while learning."""
    pixel_mean: Channels | None = None
    """Mean of red, green and blue, from 0 to 1; unset: what the encoder is used to, else ImageNet's."""
    pixel_std: Channels | None = None
    """Standard deviation of red, green and blue; unset: what the encoder is used to, else ImageNet's."""

    def __post_init__(self) -> None:
        require_finite(self)
        for name in ("train_images", "test_images"):
            if getattr(self, name) is not None:
                _at_least(1, **{name: getattr(self, name)})
        if not self.train_sides:
            raise UserError("train_sides is empty: give one length or more for the shorter side, e.g. 480 800.")
        _at_least(16, train_sides=min(self.train_sides), test_side=self.test_side)
        _at_least(max(*self.train_sides, self.test_side), max_side=self.max_side)
        if not 0 <= self.flip <= 1:
            raise UserError(f"flip is {self.flip}, but a chance lies in [0, 1].")
        if self.pixel_std is not None and min(self.pixel_std) <= 0:
            raise UserError(f"pixel_std is {self.pixel_std}, but pixels are divided by it: it must be above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """Where the detector looks. The defaults are Detectron2's for C4."""

    anchor_sizes: tuple[int, ...] = (32, 64, 128, 256, 512)
    """Sides of the square anchors, in pixels of the picture as the detector sees it."""
    anchor_ratios: tuple[float, ...] = (0.5, 1.0, 2.0)
    """Height ÷ width of the anchors of each size."""
    anchors_learned: int = 256
    """Anchors of a picture that a step learns from."""
    train_candidates: int = 12_000
    """Best anchors of a picture before overlapping ones go, while learning."""
    train_proposals: int = 2000
    """Proposals of a picture that are left then."""
    test_candidates: int = 6000
    """Best anchors of a picture before overlapping ones go, when asked."""
    test_proposals: int = 1000
    """Proposals of a picture that are left then, each of which goes through the head."""
    regions: int = 512
    """Regions of a picture that the head learns from in a step, at most a quarter of them with an object."""

    def __post_init__(self) -> None:
        require_finite(self)
        for name in ("anchor_sizes", "anchor_ratios"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}, but must be one or more numbers above 0.")
        _at_least(1, train_candidates=self.train_candidates, train_proposals=self.train_proposals)
        _at_least(1, test_candidates=self.test_candidates, test_proposals=self.test_proposals)
        _at_least(2, anchors_learned=self.anchors_learned, regions=self.regions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorTraining:
    """How the detector's weights follow gradients: SGD on all of them, batch norm trained too."""

    iterations: int = 24_000
    """Steps."""
    batch: int = 16
    """Pictures per step."""
    lr: float = 0.02
    """Learning rate for a batch of 16; that of another batch is lr · batch / 16."""
    momentum: float = 0.9
    """Momentum of SGD."""
    weight_decay: float = 1e-4
    """Weight decay, on all parameters."""
    drops: tuple[int, ...] = (18_000, 22_000)
    """Steps after which the learning rate is a tenth of what it was."""
    warmup: int = 100
    """Steps of linear rise, from a thousandth."""

    def __post_init__(self) -> None:
        require_finite(self)
        _at_least(1, iterations=self.iterations, batch=self.batch)
        _at_least(0, weight_decay=self.weight_decay, warmup=self.warmup, drops=min(self.drops, default=0))
        if not 0 < self.lr <= 10:
            raise UserError(f"lr is {self.lr}, but a learning rate lies above 0 and below 10. The paper's is 0.02.")
        if not 0 <= self.momentum < 1:
            raise UserError(f"momentum is {self.momentum}, but must lie in [0, 1). The paper's is 0.9.")

    @property
    def peak_lr(self) -> float:
        """lr · batch / 16."""
        return self.lr * self.batch / FULL_BATCH

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0: it rises in a line, and falls to a tenth at each drop."""
        share = min(1.0, step / self.warmup) if self.warmup else 1.0
        fallen = DROP ** sum(step >= drop for drop in self.drops)
        return self.peak_lr * fallen * (WARMUP_START * (1 - share) + share)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorCompute:
    """Where and how the arithmetic is done, and kept; none of it changes what is learned but `accumulate`."""

    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    accumulate: int = 1
    """Parts that a batch is computed in, one after another, to save memory; batch norm then sees one part at a time."""
    checkpoint_every: str = "300s"
    """Time or steps between two checkpoints: 300s, 200steps. There is one at the end in any case."""
    drawings: bool = True
    """Draw the losses, and what was found on some test pictures, at the end."""

    def __post_init__(self) -> None:
        _at_least(1, accumulate=self.accumulate)
        _ = self.saving

    @property
    def saving(self) -> Saving:
        """When checkpoints are made."""
        return Saving(checkpoint_every=self.checkpoint_every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A whole detection transfer. The defaults are the paper's, which is Detectron2's R50-C4 for 24,000 steps."""

    encoder: EncoderName = "fast"
    """The encoder that learned by gradients, or the slow one that followed it, where the learner has one."""
    backbone: str | None = None
    """For a file of weights: which encoder it fits; `phinets list backbones` shows all."""
    unfinished: bool = False
    """Take the newest checkpoint of a run that has not come to its end."""
    scratch: bool = False
    """Train a detector from fresh weights in the same way as well: what pretraining must beat."""
    metric: MetricName = "coco"
    """The average precision that is shown: COCO's, VOC 2007's 11-point one (which Detectron2 uses on VOC 2007, and so
    the paper), or VOC 2012's. The summary holds all three."""
    seed: int = 0
    """Draws fresh weights, order, sizes, mirror images, and which anchors and regions are learned from."""
    pictures: Pictures = field(default_factory=Pictures)
    proposals: Proposals = field(default_factory=Proposals)
    training: DetectorTraining = field(default_factory=DetectorTraining)
    compute: DetectorCompute = field(default_factory=DetectorCompute)

    def __post_init__(self) -> None:
        if self.training.batch % self.compute.accumulate:
            raise UserError(
                f"a batch of {self.training.batch} can't be computed in {self.compute.accumulate} equal parts. Use an "
                "--accumulate that divides --batch."
            )
        if not 0 <= self.seed < 2**63:
            raise UserError(f"the seed is {self.seed}, but must be a whole number from 0 to 2^63 − 1.")

    def describe(self) -> str:
        """The training in words."""
        how, seen, looks = self.training, self.pictures, self.proposals
        sides = "–".join(str(side) for side in sorted({min(seen.train_sides), max(seen.train_sides)}))
        parts = self.compute.accumulate
        norm = "" if parts == 1 else f" (in {parts} parts, each with its own batch norm)"
        drops = " and ".join(f"{drop:,}" for drop in how.drops if drop < how.iterations)
        return (
            f"Faster R-CNN C4, all layers and batch norm trained, an extra batch norm after layer4; {how.iterations:,} "
            f"steps of batch {how.batch}{norm}, lr {how.peak_lr:g} (= {how.lr:g}·batch/{FULL_BATCH}), "
            f"{f'a tenth after {drops}, ' if drops else ''}warm-up {how.warmup}, momentum {how.momentum:g}, weight "
            f"decay {how.weight_decay:g}; shorter side {sides} (test {seen.test_side}, longer at most {seen.max_side})"
            f", flip {seen.flip:g}; {looks.regions} regions a picture learned from, {looks.test_proposals} asked; seed "
            f"{self.seed}"
        )


def pocket() -> Detection:
    """Minutes on two cores: 64 small pictures, 150 steps of batch 4."""
    return Detection(
        pictures=Pictures(train_images=64, test_images=24, train_sides=(192, 224, 256), test_side=224, max_side=384),
        proposals=Proposals(
            anchor_sizes=(12, 24, 48, 96, 160),
            anchors_learned=64,
            train_candidates=600,
            train_proposals=200,
            test_candidates=600,
            test_proposals=60,
            regions=16,
        ),
        training=DetectorTraining(iterations=150, batch=4, lr=0.08, drops=(120, 140), warmup=20),
    )


def smoke() -> Detection:
    """Seconds: does everything work."""
    base = pocket()
    seen = replace(base.pictures, train_images=8, test_images=4, train_sides=(96, 128), test_side=112, max_side=192)
    looks = replace(base.proposals, anchor_sizes=(8, 16, 32, 64, 96), regions=8, test_proposals=20)
    training = replace(base.training, iterations=6, batch=2, drops=(4,), warmup=2)
    return replace(base, pictures=seen, proposals=looks, training=training)


RECIPES: Mapping[str, Callable[[], Detection]] = {"paper": Detection, "pocket": pocket, "smoke": smoke}


def detection_recipe(name: str) -> Detection:
    """The detection transfer called `name`: paper, pocket, smoke."""
    return look_up("recipe of `phinets detect`", name, RECIPES)()
