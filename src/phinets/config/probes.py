"""How an encoder is judged with labels, beside kNN: the linear probes and fine-tuning, as values that can be said."""

from dataclasses import dataclass
from typing import Literal

from phinets.config.errors import UserError, require_finite

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
