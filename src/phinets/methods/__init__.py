"""Learners by name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from phinets.backbones import backbone as backbone_called
from phinets.backbones import feature_width, require_no_head
from phinets.config import methods as specs
from phinets.config.errors import UserError
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
    options: specs.LearnerOptions | None = None,
    **changes: Any,
) -> Learner:
    """Build a learner: an nn.Module for any training loop.

    Args:
        name: the method, e.g. "x-phinet/cosine"; `phinets list methods` shows all.
        backbone: the name of a backbone, or a module that maps images (n, 3, s, s) to features (n, d), not to classes.
        image_size: the size s of the images; needed by backbones that depend on it.
        options: the settings of the learner.
        changes: single fields of `LearnerOptions`, e.g. `beta=0.97`.

    Returns:
        The learner, with weights from torch's global generator.

    Raises:
        UserError: the name, the backbone or an option is not valid, or the method has no use for an option.
    """
    spec = specs.method(name)
    chosen = from_plain(specs.LearnerOptions, {**to_plain(options or specs.LearnerOptions()), **changes}, "options")
    specs.require_work(spec, chosen)
    for option in changes:
        if not _uses(spec, option):
            users = dict.fromkeys(other.split("/")[0] for other, one in specs.METHODS.items() if _uses(one, option))
            raise UserError(f"'{name}' has no use for {option}. Leave it out, or use it with {', '.join(users)}.")
    chosen = replace(chosen, projector=chosen.projector or specs.default_projector(spec))
    encoder = backbone_called(backbone, image_size) if isinstance(backbone, str) else backbone
    require_no_head(encoder)
    features = feature_width(encoder, image_size)
    match spec:
        case specs.Decorrelation():
            return BarlowTwins(spec, encoder, features, chosen)
        case specs.Contrast():
            return MoCo(spec, encoder, features, chosen)
        case _:
            return Predictive(spec, encoder, features, chosen)


def _uses(spec: specs.Method, option: str) -> bool:
    """Whether a method reads an option."""
    sim2 = spec.sim2 if isinstance(spec, specs.Wiring) else None
    users = {
        ("beta", "slow_buffers"): specs.has_slow(spec),
        ("sim1_weight", "h_hidden"): isinstance(spec, specs.Wiring),
        ("sim2_weight",): sim2 is not None,
        ("g_hidden", "g_tanh"): sim2 is not None and sim2.g == "mlp",
        ("off_diagonal",): isinstance(spec, specs.Decorrelation),
        ("temperature", "queue"): isinstance(spec, specs.Contrast),
        ("projector_affine",): not isinstance(spec, specs.Contrast),
    }
    return all(used for options, used in users.items() if option in options)


def distil(learner: Learner, *, weight: float = 1.0, hidden: Sequence[int] = (2048,)) -> Learner:
    """Add CaSSLe: from its second task on the learner also predicts the codes of its encoder before the task.

    Call it before the optimizer is built. Then call `begin_task` at the start of each task, and the learner itself, not
    its `loss`. The predictor's weights come from torch's global generator.
    """
    weights = next(learner.f.parameters())
    distiller = Distiller(learner.f, widths_of(learner.options)[-1], hidden, weight)
    learner.distiller = distiller.to(weights.device, weights.dtype).train(learner.training)
    return learner
