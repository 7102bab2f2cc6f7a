"""The linear probe: its optimum, and what it can and can't tell."""

import pytest
import torch
import torch.nn.functional as F

from phinets.evaluation.linear import STRENGTHS, fit_probe, linear_accuracy


def two_clouds(n: int, gap: float) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(n) % 2
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
    x[:, 0] += gap * labels
    return x, labels


def test_the_probe_stands_where_the_gradient_is_zero() -> None:
    x, y = two_clouds(300, 1.5)
    probe = fit_probe(x.double(), y, classes=2, strengths=(1e-2,), iterations=1000)
    weight, bias = probe.weight.clone().requires_grad_(), probe.bias.clone().requires_grad_()
    scores = (x.double() - probe.mean) / probe.scale @ weight + bias
    value = F.cross_entropy(scores, y) + 1e-2 / 2 * weight.square().sum()
    for gradient in torch.autograd.grad(value, (weight, bias)):
        assert gradient.abs().max() < 2e-3


def test_clouds_far_apart_are_told_and_one_cloud_is_not() -> None:
    assert linear_accuracy(*two_clouds(200, 20.0), *two_clouds(400, 20.0)) == 100.0
    assert linear_accuracy(*two_clouds(2000, 0.0), *two_clouds(400, 0.0)) == pytest.approx(50, abs=6)


def test_the_scale_of_a_feature_does_not_matter() -> None:
    (x, y), (q, t) = two_clouds(400, 1.0), two_clouds(200, 1.0)
    stretch = torch.tensor([1.0, 1e3, 1e-3])
    assert linear_accuracy(q, t, x, y) == pytest.approx(linear_accuracy(q * stretch, t, x * stretch, y), abs=1.0)


def test_the_strength_is_the_one_that_does_best_on_what_was_held_out() -> None:
    """Many useless features and few examples want a strong pull to zero."""
    generator = torch.Generator().manual_seed(5)
    y = torch.arange(120) % 2
    x = torch.randn(120, 200, generator=generator)
    x[:, 0] += 2.0 * y
    few = fit_probe(x, y, classes=2).l2
    assert few in STRENGTHS
    held = torch.arange(120) % 10 == 0

    def accuracy(l2: float) -> float:
        probe = fit_probe(x[~held], y[~held], classes=2, strengths=(l2,))
        return float((probe(x[held]).argmax(1) == y[held]).double().mean())

    assert accuracy(few) >= max(accuracy(l2) for l2 in STRENGTHS) - 0.1


def test_a_constant_feature_is_harmless() -> None:
    (x, y), (q, t) = two_clouds(400, 20.0), two_clouds(200, 20.0)
    x[:, 1], q[:, 1] = 4.0, 4.0
    assert linear_accuracy(q, t, x, y) == 100.0
