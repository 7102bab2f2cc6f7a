"""Options of evaluation: linear probes, fine-tuning, health metrics, and which encoder on which images."""

from dataclasses import dataclass
from typing import Literal

from phinets.config.errors import UserError, look_up, require_at_least, require_finite, require_in
from phinets.config.methods import EncoderName
from phinets.config.views import PLANS

ProbeName = Literal["cached", "paper"]
HeadOptimizer = Literal["sgd", "lars"]

CACHED_PROBE = "logistic regression on cached features, L2 chosen on a held-out tenth"
"""The probe `cached` in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperProbe:
    """A linear classifier trained on a frozen encoder's features of augmented views: the paper's probe."""

    rates: tuple[float, ...] = (30.0,)
    """Learning rates per 256 images of the batch; several are trained in one pass, and a held-out tenth chooses."""
    epochs: int = 100
    """Passes over the labeled images."""
    batch: int = 256
    """Images per step."""
    momentum: float = 0.9
    """Momentum; there is no weight decay."""
    optimizer: HeadOptimizer = "sgd"
    """SGD with momentum, or LARS, as in the ImageNet recipe: lr .1·batch/256 at batch 4096."""

    def __post_init__(self) -> None:
        require_finite(self)
        if not self.rates or len(set(self.rates)) < len(self.rates) or not 0 < min(self.rates) <= max(self.rates) < 1e4:
            raise UserError(f"the rates are {self.rates}, but must be different numbers in (0, 10000), e.g. 30.")
        require_at_least(self, epochs=1, batch=2)
        require_in(self, momentum="[0, 1)")

    def describe(self, batch: int) -> str:
        """The probe in words, with the batch size used."""
        rates = ", ".join(f"{rate:g}" for rate in self.rates)
        chosen = " (the best on a held-out tenth)" if len(self.rates) > 1 else ""
        return (
            f"{self.optimizer.upper()} on augmented views (crop .08–1, flip), lr {rates}·batch/256{chosen}, "
            f"batch {batch}, momentum {self.momentum:g}, no weight decay, cosine, {self.epochs} epochs"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuning:
    """All weights and a fresh linear head, trained by SGD on labeled images."""

    epochs: int = 30
    """Passes over the labeled images."""
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
        require_at_least(self, epochs=1, batch=2)
        require_in(self, lr="(0, 10000)", head_lr="(0, 10000)", momentum="[0, 1)", weight_decay="[0, 1000]")

    def describe(self, batch: int) -> str:
        """The training in words, with the batch size used."""
        return (
            f"all weights by SGD on augmented views (crop .08–1, flip), lr {self.lr:g} (encoder) and {self.head_lr:g} "
            f"(fresh head) · batch/256, batch {batch}, momentum {self.momentum:g}, weight decay {self.weight_decay:g}, "
            f"cosine, {self.epochs} epochs"
        )


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """Which encoder, and which images; unset options are those of the encoder's run."""

    encoder: EncoderName = "fast"
    """fast (trained by gradients) or slow (its moving average), where the learner has one."""
    backbone: str | None = None
    """The architecture of a weights file; `phinets list backbones` shows all."""
    data: str | None = None
    """The data set; `phinets list data` shows all. Unset: the run's."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Download a missing data set."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    image_size: int | None = None
    """Side of the encoder's input in pixels; unset: the run's, else the architecture's: 224 or 32."""
    views: str | None = None
    """The view plan whose mean and std normalize the images; unset: the run's, else timm's or ImageNet's."""
    max_bad_images: int = 10
    """Most bad images to skip with a warning; one more is an error."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""

    def __post_init__(self) -> None:
        if self.views is not None:
            look_up("view plan", self.views, PLANS)
        require_at_least(self, image_size=8, max_bad_images=0)


@dataclass(frozen=True, kw_only=True)
class EvalOptions(EncoderOptions):
    """Which encoder is evaluated, on which images; unset options are those of the encoder's run."""

    labels: str = "100%"
    """Share of the labeled training images to use, of each class alike: 100%, 10%, 1%."""
    seed: int = 0
    """Seed of the choice of labeled images and of all other random numbers."""
    bank: int | None = None
    """Labeled training images, the bank of kNN; unset: all."""
    test_images: int | None = None
    """Test images, the queries of kNN; unset: all."""

    def __post_init__(self) -> None:
        EncoderOptions.__post_init__(self)
        require_at_least(self, bank=2, test_images=1)
        _ = self.share

    @property
    def share(self) -> float:
        """The share of labels as a number in (0, 1]."""
        try:
            share = float(self.labels.strip().removesuffix("%")) / 100
        except ValueError:
            share = 0.0
        if not self.labels.strip().endswith("%") or not 0 < share <= 1:
            raise UserError(f"labels is '{self.labels}', but must be a share above 0% and up to 100%, e.g. 1% or 10%.")
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """Which images and which encoder the health metrics use."""

    images: int = 512
    """Number of training images, in two views each; all pairs are compared."""
    encoder: EncoderName = "fast"
    """The encoder of codes and features: fast (trained by gradients) or slow (its moving average)."""
    data: str | None = None
    """Other data than the run's; `phinets list data` shows all."""
    root: str | None = None
    """The folder of all data sets; unset: the run's."""

    def __post_init__(self) -> None:
        require_in(self, images="[2, 10000]")
