"""How an encoder is judged with labels, beside kNN: the linear probes and fine-tuning, as values that can be said."""

from dataclasses import dataclass
from typing import Literal

from phinets.config.errors import UserError, look_up, require_at_least, require_finite
from phinets.config.methods import EncoderName
from phinets.config.views import PLANS

ProbeName = Literal["cached", "paper"]
HeadOptimizer = Literal["sgd", "lars"]

CACHED = "logistic regression on cached features, L2 chosen on a held-out tenth"
"""The probe `cached` in words."""


def _require_training(epochs: int, batch: int, rates: dict[str, float]) -> None:
    if epochs < 1 or batch < 2:
        raise UserError(f"{epochs} epochs of batch {batch} train nothing: give at least one epoch and a batch of two.")
    for name, rate in rates.items():
        if not 0 < rate < 1e4:
            raise UserError(f"{name} is {rate}, but a learning rate lies above 0 and below 10,000.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperProbe:
    """A linear classifier trained on a frozen encoder's features of augmented views: the paper's probe."""

    rates: tuple[float, ...] = (30.0,)
    """Learning rates per 256 images of the batch; more than one are tried in one pass, and a held-out tenth chooses."""
    epochs: int = 100
    """Passes over the labelled images."""
    batch: int = 256
    """Images per step."""
    momentum: float = 0.9
    """Momentum; there is no weight decay."""
    optimizer: HeadOptimizer = "sgd"
    """SGD with momentum, or LARS, as ImageNet's recipe has it: lr .1·batch/256 at batch 4096."""

    def __post_init__(self) -> None:
        require_finite(self)
        if not self.rates or len(set(self.rates)) < len(self.rates):
            raise UserError(f"the rates are {self.rates}, but they must be one or more different numbers, e.g. 30.")
        _require_training(self.epochs, self.batch, {"a rate": min(self.rates), "the highest rate": max(self.rates)})
        if not 0 <= self.momentum < 1:
            raise UserError(f"momentum is {self.momentum}, but must lie in [0, 1). The paper uses 0.9.")

    def describe(self, batch: int) -> str:
        """The probe in words, for the batch that the data allow."""
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        chosen = " (the best on a held-out tenth)" if len(self.rates) > 1 else ""
        return (
            f"{self.optimizer.upper()} on augmented views (crop .08–1, flip), lr {rates}·batch/256{chosen}, "
            f"batch {batch}, momentum {self.momentum:g}, no weight decay, cosine, {self.epochs} epochs"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuning:
    """All weights and a fresh linear head, trained by SGD on labelled images."""

    epochs: int = 30
    """Passes over the labelled images."""
    batch: int = 128
    """Images per step."""
    lr: float = 0.05
    """The encoder's learning rate per 256 images of the batch."""
    head_lr: float = 0.5
    """The head's learning rate per 256 images of the batch."""
    momentum: float = 0.9
    """Momentum of SGD."""
    weight_decay: float = 0.0
    """Weight decay, on all parameters."""

    def __post_init__(self) -> None:
        require_finite(self)
        _require_training(self.epochs, self.batch, {"lr": self.lr, "head_lr": self.head_lr})
        if not 0 <= self.momentum < 1 or self.weight_decay < 0:
            raise UserError("momentum must lie in [0, 1) and weight_decay must not be negative, e.g. 0.9 and 0.")

    def describe(self, batch: int) -> str:
        """The training in words, for the batch that the data allow."""
        return (
            f"all weights by SGD on augmented views (crop .08–1, flip), lr {self.lr:g} (encoder) and {self.head_lr:g} "
            f"(fresh head) · batch/256, batch {batch}, momentum {self.momentum:g}, weight decay {self.weight_decay:g}, "
            f"cosine, {self.epochs} epochs"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelShare:
    """How many of the labels are known: semi-supervised learning knows 1 % or 10 %."""

    labels: str = "100%"
    """Share of the labelled training images whose labels are used, of each class alike: 100%, 10%, 1%."""
    seed: int = 0
    """Draws which images those are, and everything else that is drawn."""

    def __post_init__(self) -> None:
        _ = self.share

    @property
    def share(self) -> float:
        """The share as a number in (0, 1]."""
        try:
            share = float(self.labels.strip().removesuffix("%")) / 100
        except ValueError:
            share = 0.0
        if not self.labels.strip().endswith("%") or not 0 < share <= 1:
            raise UserError(f"labels is '{self.labels}', but must be a share from above 0% to 100%, such as 1% or 10%.")
        return share


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """Which encoder, and which images it is shown; what is unset is as in the run that the encoder comes from."""

    encoder: EncoderName = "fast"
    """The encoder that learns by gradients, or the slow one that follows it, where the learner has one."""
    backbone: str | None = None
    """For a file of weights: which encoder it fits; `phinets list backbones` shows all."""
    data: str | None = None
    """Which images; `phinets list data` shows all. Unset: the run's."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a data set that is not there may be fetched from the net."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    image_size: int | None = None
    """Side of the images that the encoder sees, in pixels; unset: the run's, else what suits the encoder: 224 or 32."""
    views: str | None = None
    """The view plan whose mean and std the encoder is used to; unset: the run's, else timm's or ImageNet's."""
    max_bad_images: int = 10
    """How many images that can't be used are told and skipped; one more, and it stops."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""

    def __post_init__(self) -> None:
        if self.views is not None:
            look_up("view plan", self.views, PLANS)
        require_at_least(self, image_size=8, max_bad_images=0)


@dataclass(frozen=True, kw_only=True)
class EvalOptions(EncoderOptions, LabelShare):
    """Which encoder is judged, and on which images; what is unset is as in the run that the encoder comes from."""

    bank: int | None = None
    """Labelled training images that are known; unset: all."""
    test_images: int | None = None
    """Test images that are asked about; unset: all."""

    def __post_init__(self) -> None:
        LabelShare.__post_init__(self)
        EncoderOptions.__post_init__(self)
        require_at_least(self, bank=2, test_images=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """What a check-up looks at."""

    images: int = 512
    """The first so many training images, in two views each."""
    encoder: EncoderName = "fast"
    """Whose codes and features: the encoder's that learns by gradients, or the slow one's."""
    data: str | None = None
    """Other data than the run's; `phinets list data` shows all."""
    root: str | None = None
    """The folder of all data sets; unset: as in the run."""

    def __post_init__(self) -> None:
        if not 2 <= self.images <= 10_000:
            raise UserError(f"images is {self.images}, but pairs are compared: give 2 to 10,000, e.g. 512.")
