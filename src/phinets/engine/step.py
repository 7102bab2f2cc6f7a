"""The one function that changes weights."""

from collections.abc import Iterable

import torch

from phinets.engine.optimisers import set_rates
from phinets.engine.trainee import Trainee
from phinets.methods import Losses
from phinets.views import Views


def train_step(trainee: Trainee, parts: Iterable[Views], *, count: int = 1, rate: float, peak: float) -> Losses:
    """One optimiser step on a batch of views that comes in `count` equal parts, and what follows slowly follows.

    The gradient is the mean of the parts' own: that of the whole batch wherever the loss is a mean over images, which
    batch norm and Barlow Twins' correlation are not.
    """
    set_rates(trainee.optimiser, rate=rate, peak=peak)
    trainee.optimiser.zero_grad(set_to_none=True)
    seen = [_learn_from(trainee, views, i + 1 == count, count) for i, views in enumerate(parts)]
    assert len(seen) == count
    trainee.precision.step(trainee.optimiser)
    trainee.learner.after_step()
    return seen[0] if count == 1 else _joined(seen)


def _learn_from(trainee: Trainee, views: Views, last: bool, count: int) -> Losses:
    with trainee.exchange(last):
        with trainee.precision.autocast():
            losses: Losses = trainee.model(views)
        trainee.precision.backward(losses.total / count)
    return Losses(losses.total.detach(), losses.terms, losses.codes)


def _joined(seen: list[Losses]) -> Losses:
    """The losses of a batch from those of its parts."""
    terms = {name: torch.stack([part.terms[name] for part in seen]).mean() for name in seen[0].terms}
    codes = [part.codes for part in seen if part.codes is not None]
    return Losses(torch.stack([part.total for part in seen]).mean(), terms, torch.cat(codes) if codes else None)
