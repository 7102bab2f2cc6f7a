"""The paper's probe: the same as torch's own SGD, or LARS written out, for many learning rates in one pass."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from phinets.config.errors import UserError
from phinets.evaluation.linear import fresh_heads, lars_scale, train_heads
from phinets.training.schedule import half_cosine

RATES = (0.03, 1.0, 30.0)
STEPS = 25


def batches(n: int = 16, d: int = 6, classes: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(STEPS, n, d, generator=generator, dtype=torch.float64)
    return list(zip(x, torch.randint(classes, (STEPS, n), generator=generator), strict=True))


def decline(step: int) -> float:
    return half_cosine(step / STEPS)


def by_torch(rate: float) -> nn.Linear:
    """One head trained alone, by torch's SGD and schedule."""
    heads = fresh_heads((rate,), 6, 4, torch.Generator().manual_seed(1))
    layer = nn.Linear(6, 4).double()
    with torch.no_grad():
        layer.weight.copy_(heads.weight[0].T)
        layer.bias.copy_(heads.bias[0, 0])
    optimizer = torch.optim.SGD(layer.parameters(), lr=rate, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, decline)
    for x, y in batches():
        optimizer.zero_grad()
        F.cross_entropy(layer(x), y).backward()
        optimizer.step()
        schedule.step()
    return layer


def test_every_head_of_a_sweep_is_what_torch_s_sgd_makes_of_it_alone() -> None:
    first = fresh_heads(RATES, 6, 4, torch.Generator().manual_seed(1))
    first = type(first)(first.rates, first.weight.double(), first.bias.double())
    swept = train_heads(batches(), first, decline)
    for i, rate in enumerate(RATES):
        alone = by_torch(rate)
        torch.testing.assert_close(swept.weight[i].T, alone.weight.detach(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(swept.bias[i, 0], alone.bias.detach(), rtol=1e-9, atol=1e-9)


def by_lars(rate: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One head trained alone by LARS around SGD, written out: every parameter's gradient gets a length of its own."""
    head = fresh_heads((rate,), 6, 4, torch.Generator().manual_seed(1))
    parameters = [head.weight[0].double(), head.bias[0, 0].double()]
    speeds = [torch.zeros_like(each) for each in parameters]
    for step, (x, y) in enumerate(batches()):
        tracked = [each.detach().requires_grad_() for each in parameters]
        gradients = torch.autograd.grad(F.cross_entropy(x @ tracked[0] + tracked[1], y), tracked)
        for i, gradient in enumerate(gradients):
            size, slope = parameters[i].norm(), gradient.norm()
            trust = 0.001 * size / (slope + 1e-8) if size > 0 and slope > 0 else 1.0
            speeds[i] = 0.9 * speeds[i] + trust * gradient
            parameters[i] = parameters[i] - rate * decline(step) * speeds[i]
    return parameters[0], parameters[1]


def test_every_head_of_a_sweep_by_lars_is_what_the_rule_written_out_makes_of_it_alone() -> None:
    first = fresh_heads(RATES, 6, 4, torch.Generator().manual_seed(1))
    first = type(first)(first.rates, first.weight.double(), first.bias.double())
    swept = train_heads(batches(), first, decline, optimizer="lars")
    for i, rate in enumerate(RATES):
        weight, bias = by_lars(rate)
        torch.testing.assert_close(swept.weight[i], weight, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(swept.bias[i, 0], bias, rtol=1e-9, atol=1e-9)


def test_a_step_by_lars_is_as_long_as_the_weights_are_whatever_the_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, gradient = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64)
    for factor in (1e-3, 1.0, 1e3):
        lengths = lars_scale(factor * gradient, weight).flatten(1).norm(dim=1)
        torch.testing.assert_close(lengths, 0.001 * weight.flatten(1).norm(dim=1), rtol=1e-5, atol=0)


def test_by_lars_what_is_zero_still_moves() -> None:
    gradient = torch.ones(2, 1, 4)
    assert torch.equal(lars_scale(gradient, torch.zeros(2, 1, 4)), gradient)
    assert torch.equal(lars_scale(torch.zeros(2, 1, 4), gradient), torch.zeros(2, 1, 4))


def test_the_sweep_leaves_the_first_heads_alone() -> None:
    first = fresh_heads(RATES, 6, 4, torch.Generator().manual_seed(1))
    before = first.weight.clone()
    train_heads([(x.float(), y) for x, y in batches()], first, decline)
    assert torch.equal(first.weight, before)


def test_every_rate_has_its_own_accuracy() -> None:
    heads = fresh_heads((0.1, 1.0), 2, 2, torch.Generator())
    heads.weight[0], heads.weight[1] = torch.eye(2), -torch.eye(2)
    features, truth = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 1, 0, 1])
    assert heads.accuracies(features, truth) == {0.1: 75.0, 1.0: 25.0}


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_can_t_be_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match="can't be used"):
        fresh_heads((1.0, rate), 2, 2, torch.Generator())
