"""The base class of all learners: an nn.Module with a loss and an after_step."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from phinets.config.errors import UserError
from phinets.config.methods import Anchor, EncoderName, LearnerOptions, methods_with_slow_encoder
from phinets.losses import negative_cosine
from phinets.methods.cassle import Distiller
from phinets.methods.networks import Encoder, Slow
from phinets.views import Views


@dataclass(frozen=True, slots=True)
class Losses:
    """The loss of a batch and what is reported of it; `losses.total.backward()` gives the gradients."""

    total: Tensor
    """The scalar to minimize."""
    terms: Mapping[str, Tensor] = field(default_factory=dict)
    """Its terms before weighting, detached, by name."""
    codes: Tensor | None = None
    """The codes z of the first view (n, d), detached: the input of the collapse meter."""
    traced: tuple[tuple[Tensor, Tensor], ...] = ()
    """The views that f encoded with gradient and their codes: (view, z) for each."""

    def __repr__(self) -> str:
        values = {"total": self.total.detach(), **self.terms}
        return f"Losses({', '.join(f'{name}={float(value):.4g}' for name, value in values.items())})"


class ViewEncoder(Protocol):
    """What encodes two views in place of f (`training.parallel_views`)."""

    def encode(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """The codes of two views."""


class Learner(nn.Module, ABC):
    """A self-supervised learner.

    `loss(views)` changes no weight. `after_step()` is called once after each optimizer step and updates the slow
    encoder or the queue.

    Attributes:
        f: the encoder and projector that gradients train; `f.backbone` is kept after training.
        slow: the moving average of f, where the method has one.
        options: the settings of the learner.
        anchor: which third view `loss` needs, if any.
    """

    f: Encoder

    encodes_two_views: bool = True
    """Whether `loss` calls `encode_views`."""
    parallel_views: ViewEncoder | None = None
    """Set during a training step that encodes the views in two threads."""

    def __init__(self, anchor: Anchor | None, options: LearnerOptions) -> None:
        super().__init__()
        self.anchor, self.options = anchor, options
        self.slow: Slow | None = None  # the EMA copy of f, where the method has one
        self.distiller: Distiller | None = None  # set by `distil`
        self._versions: set[int] = set()  # of the weights of f since the last `after_step`

    @abstractmethod
    def loss(self, views: Views) -> Losses:
        """The loss of a batch of views.

        Args:
            views: x₁, x₂ and, where `anchor` is set, x₀: (n, 3, s, s) each, normalized.

        Returns:
            The total, its terms, and the codes of x₁.
        """

    def forward(self, *views: Views | Sequence[Tensor] | Tensor) -> Losses:
        """The `loss` of Views, of a tuple (x₁, x₂, x₀) or of three tensors, plus the distiller's term, if any."""
        losses = self.loss(_as_views(views[0] if len(views) == 1 else views))
        return losses if self.distiller is None else self._add_distillation(losses, self.distiller)

    def _add_distillation(self, losses: Losses, distiller: Distiller) -> Losses:
        """L + w · mean over the views of D(predictor(z), frozen code); in the first task L itself."""
        if not distiller.active:
            return replace(losses, terms={**losses.terms, "distil": torch.zeros_like(losses.total.detach())})
        pairs = [self.distillation(*distiller(view, z)) for view, z in losses.traced]
        term = torch.stack(pairs).mean()
        total = losses.total + distiller.weight * term
        return replace(losses, total=total, terms={**losses.terms, "distil": term.detach()})

    def distillation(self, predicted: Tensor, frozen: Tensor) -> Tensor:
        """D between predicted and frozen codes, (n, d) each: the loss of the method's family."""
        return negative_cosine(predicted, frozen)

    def after_step(self) -> None:
        """Called once after each optimizer step: update the slow encoder, where there is one."""
        if self.slow is not None:
            self.slow.follow(self.f)
        self._versions.clear()

    def begin_task(self, task: int) -> None:
        """Called at the start of a task, counted from 0: the distiller freezes a copy of f."""
        if self.distiller is not None and task > 0:
            self.distiller.freeze(self.f)

    def encoder(self, name: EncoderName = "fast") -> nn.Module:
        """The backbone to evaluate or keep.

        Args:
            name: "fast", or "slow" for learners that have one.

        Returns:
            A module: images (n, 3, s, s) → features (n, d).

        Raises:
            UserError: the learner has no slow encoder.
        """
        return self.f.backbone if name == "fast" else self.slow_encoder().backbone

    def slow_encoder(self) -> Slow:
        """The slow copy of f, or an error where there is none."""
        if self.slow is None:
            raise UserError(
                "this learner has no slow encoder. Use the fast one, or a method that has one: "
                f"{methods_with_slow_encoder()}."
            )
        return self.slow

    def predictors(self) -> dict[str, nn.Module]:
        """The networks that predict codes from codes, by the paper's letters."""
        return {}

    def encode_views(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        """f(x1) and f(x2), each with its own batch statistics."""
        return (self.f(x1), self.f(x2)) if self.parallel_views is None else self.parallel_views.encode(x1, x2)

    def slow_code(self, x: Tensor) -> Tensor:
        """The slow encoder's code of x, without gradient."""
        assert self.slow is not None
        if self.training and torch.is_grad_enabled() and len(self._versions) < 4:
            self._versions.add(next(self.f.parameters())._version)  # torch counts the changes of a tensor
            if len(self._versions) == 4:
                cure = "Call learner.after_step() after each optimizer.step()."
                warnings.warn(f"f has changed three times, and the slow encoder has not followed. {cure}", stacklevel=4)
        return self.slow(x)  # type: ignore[no-any-return]

    def batch_statistics(self) -> list[str]:
        """What depends on the whole batch, so that micro-batches change the result; in words."""
        return ["batch norm"] if any(isinstance(m, _BatchNorm) for m in self.modules()) else []

    def constant_rate_parameters(self) -> list[nn.Parameter]:
        """The parameters whose learning rate may stay at its peak: those of h, where there is one."""
        return []


def widths_of(options: LearnerOptions) -> tuple[int, ...]:
    """The projector's widths, which `learner` has resolved."""
    assert options.projector is not None
    return options.projector


def _as_views(views: Any) -> Views:
    are_tensors = [isinstance(view, Tensor) for view in views] if isinstance(views, tuple | list) else []
    if isinstance(views, Views) or are_tensors in ([True] * 2, [True] * 3):
        return Views(*views)
    raise UserError(f"a learner takes Views(x1, x2, x0), a tuple, or two or three tensors, not {type(views).__name__}.")


def anchor_of(views: Views) -> Tensor:
    """The anchor view, or an error where there is none."""
    if views.anchor is None:
        raise UserError("this learner needs a third view, the anchor x0: pass Views(x1, x2, x0).")
    return views.anchor
