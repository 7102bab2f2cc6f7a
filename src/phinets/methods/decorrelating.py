"""Barlow Twins: a sibling with the same interface."""

from torch import nn

from phinets import losses
from phinets.backbones.heads import mlp
from phinets.config.methods import Decorrelation, LearnerOptions
from phinets.methods.base import Learner, Losses, widths_of
from phinets.methods.encoders import Encoder
from phinets.views import Views


class BarlowTwins(Learner):
    """The codes of two views must agree dimension by dimension, and the dimensions be independent."""

    def __init__(self, spec: Decorrelation, backbone: nn.Module, features: int, options: LearnerOptions) -> None:
        super().__init__()
        self.anchor = spec.anchor
        self.options = options
        widths = (features, *widths_of(options))
        self.f = Encoder(backbone, mlp(widths, last_norm=True, last_affine=options.projector_affine))

    def loss(self, views: Views) -> Losses:
        """Σ_i (1 − C_ii)² + λ Σ_{i≠j} C_ij² for the cross-correlation C of z₁ and z₂."""
        z1, z2 = self.f(views.first), self.f(views.second)
        total = losses.decorrelation(losses.cross_correlation(z1, z2), self.options.off_diagonal)
        return Losses(total, {"decorrelation": total.detach()}, z1.detach())
