"""Learners by name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from phinets.backbones import backbone as backbone_called
from phinets.backbones import feature_width
from phinets.config.methods import Contrast, Decorrelation, LearnerOptions, default_projector, method, require_work
from phinets.config.plain import from_plain, to_plain
from phinets.methods.barlow_twins import BarlowTwins
from phinets.methods.base import Learner, Losses, widths_of
from phinets.methods.cassle import Distiller
from phinets.methods.moco import MoCo
from phinets.methods.siamese import Predictive

__all__ = ["Learner", "Losses", "distil", "learner"]


def learner(
    name: str,
    *,
    backbone: str | nn.Module = "resnet18-cifar",
    image_size: int | None = None,
    options: LearnerOptions | None = None,
    **changes: Any,
) -> Learner:
    """Build a learner: an nn.Module for any training loop.

    Args:
        name: the method, e.g. "x-phinet/cosine"; `phinets list methods` shows all.
        backbone: the name of a backbone, or a module that maps images (n, 3, s, s) to features (n, d).
        image_size: the size s of the images; needed by backbones that depend on it.
        options: the settings of the learner.
        changes: single fields of `LearnerOptions`, e.g. `beta=0.97`.

    Returns:
        The learner, with weights from torch's global generator.

    Raises:
        UserError: the name, the backbone or an option is not valid.
    """
    spec = method(name)
    chosen = from_plain(LearnerOptions, {**to_plain(options or LearnerOptions()), **changes}, "options")
    require_work(spec, chosen)
    chosen = replace(chosen, projector=chosen.projector or default_projector(spec))
    encoder = backbone_called(backbone, image_size) if isinstance(backbone, str) else backbone
    features = feature_width(encoder, image_size)
    match spec:
        case Decorrelation():
            return BarlowTwins(spec, encoder, features, chosen)
        case Contrast():
            return MoCo(spec, encoder, features, chosen)
        case _:
            return Predictive(spec, encoder, features, chosen)


def distil(learner: Learner, *, weight: float = 1.0, hidden: Sequence[int] = (2048,)) -> Learner:
    """Add CaSSLe: from its second task on the learner also predicts the codes of its encoder before the task.

    Call it before the optimizer is built. Then call `begin_task` at the start of each task, and the learner itself, not
    its `loss`. The predictor's weights come from torch's global generator.
    """
    weights = next(learner.f.parameters())
    distiller = Distiller(learner.f, widths_of(learner.options)[-1], hidden, weight)
    learner.distiller = distiller.to(weights.device, weights.dtype).train(learner.training)
    return learner
