"""The one function that changes weights."""

import torch

from phinets.engine.device import Precision
from phinets.engine.optimisers import set_rates
from phinets.methods import Learner, Losses
from phinets.views import Views


def train_step(
    learner: Learner,
    optimiser: torch.optim.Optimizer,
    views: Views,
    *,
    rate: float,
    peak: float,
    precision: Precision,
) -> Losses:
    """One optimiser step on a batch of views, and what follows slowly follows."""
    set_rates(optimiser, rate=rate, peak=peak)
    optimiser.zero_grad(set_to_none=True)
    with precision.autocast():
        losses: Losses = learner(views)
    precision.step(losses.total, optimiser)
    learner.after_step()
    return losses
