"""Barlow Twins (Zbontar et al. 2021)."""

from torch import Tensor, nn

import phinets.losses as losses
from phinets.config.methods import Decorrelation, LearnerOptions
from phinets.methods.base import Learner, Losses, widths_of
from phinets.methods.networks import Encoder, mlp
from phinets.runtime import distributed
from phinets.views import Views


class BarlowTwins(Learner):
    """The codes of two views must agree dimension by dimension, and the dimensions be independent."""

    def __init__(self, spec: Decorrelation, backbone: nn.Module, features: int, options: LearnerOptions) -> None:
        super().__init__(spec.anchor, options)
        widths = (features, *widths_of(options))
        self.f = Encoder(backbone, mlp(widths, last_norm=True, last_affine=options.projector_affine))

    def loss(self, views: Views) -> Losses:
        """Σ_i (1 − C_ii)² + λ Σ_{i≠j} C_ij² for the cross-correlation C of z₁ and z₂ over all processes."""
        z1, z2 = self.encode_views(views.first, views.second)
        total = self._agreement(z1, z2)
        traced = ((views.first, z1), (views.second, z2))
        return Losses(total, {"decorrelation": total.detach()}, z1.detach(), traced)

    def distillation(self, predicted: Tensor, frozen: Tensor) -> Tensor:
        """The same loss between predicted and frozen codes."""
        return self._agreement(predicted, frozen)

    def _agreement(self, z1: Tensor, z2: Tensor) -> Tensor:
        correlation = losses.cross_correlation(distributed.gather_rows(z1), distributed.gather_rows(z2))
        return losses.decorrelation(correlation, self.options.off_diagonal)

    def batch_statistics(self) -> list[str]:
        """Batch norm, and the cross-correlation itself."""
        return [*super().batch_statistics(), "the cross-correlation"]
