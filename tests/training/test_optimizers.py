"""Two groups of parameters, three rules."""

import pytest
import torch
from torch import nn

from phinets.config.methods import METHODS
from phinets.config.run import Optimization
from phinets.training.optimizers import LARS, build_optimizer, set_rates
from tests.helpers import tiny_learner


def test_only_h_keeps_its_rate() -> None:
    learner = tiny_learner("phinet")
    optimizer = build_optimizer(learner, Optimization())
    set_rates(optimizer, rate=0.01, peak=0.5)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    for name, p in learner.named_parameters():
        assert rates[id(p)] == (0.5 if name.startswith("h.") else 0.01), name


def test_h_follows_the_schedule_where_asked_to() -> None:
    optimizer = build_optimizer(tiny_learner("phinet"), Optimization(constant_h=False))
    set_rates(optimizer, rate=0.01, peak=0.5)
    assert [group["lr"] for group in optimizer.param_groups] == [0.01]


@pytest.mark.parametrize("name", METHODS)
def test_every_trainable_parameter_is_in_exactly_one_group(name: str) -> None:
    learner = tiny_learner(name)
    optimizer = build_optimizer(learner, Optimization())
    held = [id(p) for group in optimizer.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in learner.parameters() if p.requires_grad)


@pytest.mark.parametrize("name", ["sgd", "adamw", "lars"])
def test_weight_decay_is_on_all_parameters(name: str) -> None:
    optimizer = build_optimizer(tiny_learner("phinet"), Optimization(optimizer=name, weight_decay=0.07))  # type: ignore[arg-type]
    assert {group["weight_decay"] for group in optimizer.param_groups} == {0.07}


def test_lars_follows_its_equation() -> None:
    w = nn.Parameter(torch.tensor([[3.0, 4.0]]))
    b = nn.Parameter(torch.tensor([2.0]))
    optimizer = LARS([w, b], lr=0.1, momentum=0.9, weight_decay=0.5, trust=0.01)
    w.grad, b.grad = torch.tensor([[1.0, 0.0]]), torch.tensor([1.0])
    v, u = torch.zeros(1, 2), torch.zeros(1)
    for _ in range(2):
        slope = w.grad + 0.5 * w.detach()
        v = 0.9 * v + 0.1 * (0.01 * w.detach().norm() / slope.norm()) * slope
        u = 0.9 * u + 0.1 * (b.grad + 0.5 * b.detach())
        expected = (w.detach() - v, b.detach() - u)
        optimizer.step()
        assert torch.allclose(w, expected[0], atol=1e-7)
        assert torch.allclose(b, expected[1], atol=1e-7)


def test_lars_leaves_a_layer_at_zero_without_dividing_by_it() -> None:
    w = nn.Parameter(torch.zeros(2, 2))
    w.grad = torch.zeros(2, 2)
    LARS([w], lr=0.1).step()
    assert torch.equal(w, torch.zeros(2, 2))
