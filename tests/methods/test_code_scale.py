"""Why Sim-2's MSE fades (docs/training.md): no loss holds up the scale of the codes, and weight decay shrinks it."""

from typing import cast

import pytest
import torch
from torch import Tensor, nn

from phinets.methods.siamese import Predictive
from tests.helpers import tiny_learner, tiny_train_state, tiny_views

VIEWS = tiny_views()
EPS = 1e-14
"""Of batch norm, so small that a scale in front of one cancels."""


def exact(name: str, **options: float) -> Predictive:
    learner = cast(Predictive, tiny_learner(name, **options))  # type: ignore[arg-type]
    for module in learner.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.eps = EPS
    return learner


def scale_and_shift(f: nn.Module) -> list[Tensor]:
    """γ and β of the projector's last batch norm: z = γ·ẑ + β."""
    norm = list(cast(nn.Module, f.projector).children())[-1]
    return list(norm.parameters())


def rescale(learner: Predictive, by: float) -> None:
    """Multiply all codes by a number, and the last layer of g, which predicts them."""
    encoders = [learner.f] if learner.slow is None else [learner.f, learner.slow]
    weights = [weight for f in encoders for weight in scale_and_shift(f)]
    weights += list(list(cast(nn.Module, learner.g).children())[-1].parameters())
    with torch.no_grad():
        for weight in weights:
            weight.mul_(by)


def gradient(learner: Predictive) -> Tensor:
    """Of the loss, with respect to the backbone and the projector's linear layers, as one long vector."""
    above = {id(weight) for weight in scale_and_shift(learner.f)}
    below = [weight for weight in learner.f.parameters() if id(weight) not in above]
    return torch.cat([g.flatten() for g in torch.autograd.grad(learner.loss(VIEWS).total, below)])


@pytest.mark.parametrize("by", [0.1, 0.5, 3.0])
@pytest.mark.parametrize(
    ("name", "power"), [("phinet", 2), ("x-phinet", 2), ("phinet/cosine", 0), ("x-phinet/cosine", 0)]
)
def test_an_mse_and_its_gradient_have_the_square_of_the_codes_scale(name: str, power: int, by: float) -> None:
    learner = exact(name, sim1_weight=0.0)
    loss, slope = learner.loss(VIEWS).total.detach(), gradient(learner)
    rescale(learner, by)
    torch.testing.assert_close(learner.loss(VIEWS).total.detach(), loss * by**power)
    torch.testing.assert_close(gradient(learner), slope * by**power)


@pytest.mark.parametrize("by", [0.1, 3.0])
def test_the_gradient_of_sim_1_does_not_depend_on_the_codes_scale(by: float) -> None:
    learner = exact("phinet", sim2_weight=0.0)
    slope = gradient(learner)
    rescale(learner, by)
    torch.testing.assert_close(gradient(learner), slope)


def slope_along(learner: Predictive) -> float:
    """The loss's derivative by the logarithm of the codes' scale: γ·∂L/∂γ + β·∂L/∂β."""
    weights = scale_and_shift(learner.f)
    slopes = torch.autograd.grad(learner.loss(VIEWS).total, weights)
    return sum(float((w.detach() * s).sum()) for w, s in zip(weights, slopes, strict=True))


@pytest.mark.parametrize("name", ["simsiam", "byol", "phinet", "x-phinet", "phinet/cosine", "phinet/shared-g"])
def test_no_loss_with_stop_gradients_sees_the_codes_scale(name: str) -> None:
    assert slope_along(exact(name)) == pytest.approx(0, abs=1e-9)


def test_an_mse_without_its_stop_gradient_sees_it() -> None:
    assert abs(slope_along(exact("phinet/no-stop-gradient"))) > 1e-3


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("name", ["simsiam", "phinet"])
def test_weight_decay_shrinks_the_codes_as_exp_of_minus_s(name: str, momentum: float) -> None:
    """S = wd·Σlr/(1 − momentum) = 1 here, in steps of 1/100: to first order in the rate, the error is of that order."""
    learner, steps = exact(name), 100
    state, rate = tiny_train_state(learner, weight_decay=1.0, momentum=momentum), (1 - momentum) / steps
    before = torch.cat(scale_and_shift(learner.f)).norm()
    for _ in range(steps):
        state.step([VIEWS], rate=rate, peak=rate)
    shrinkage = before.log() - torch.cat(scale_and_shift(learner.f)).norm().log()
    assert float(shrinkage.detach()) == pytest.approx(1, abs=1 / steps)
