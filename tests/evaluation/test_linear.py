"""The linear probe: its optimum, and what it can and can't tell."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from phinets.data.image_sets import holdout_rows
from phinets.evaluation.linear import Probe, fit_probe, probe_accuracy


def linear_accuracy(queries: torch.Tensor, truth: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> float:
    return probe_accuracy(fit_probe(x, y), queries, truth)


def two_clouds(n: int, gap: float) -> tuple[torch.Tensor, torch.Tensor]:
    labels = torch.arange(n) % 2
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
    x[:, 0] += gap * labels
    return x, labels


def blobs(n: int, d: int, classes: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Overlapping clouds whose features are correlated and of very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(classes, (n,), generator=generator)
    mixing = torch.randn(d, d, generator=torch.Generator().manual_seed(99), dtype=torch.float64)
    centres = torch.randn(classes, d, generator=torch.Generator().manual_seed(98), dtype=torch.float64)
    x = (torch.randn(n, d, generator=generator, dtype=torch.float64) + 0.8 * centres[y]) @ mixing
    return x * torch.logspace(-2, 2, d, dtype=torch.float64), y


@pytest.mark.parametrize("l2", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize(("n", "d"), [(300, 7), (40, 90)], ids=["more examples", "more features"])
def test_the_probe_stands_where_the_gradient_is_zero(n: int, d: int, l2: float) -> None:
    x, y = blobs(n, d, 4)
    probe = fit_probe(x, y, strengths=(l2,), slope=1e-9)
    weight, bias = probe.weight.clone().requires_grad_(), probe.bias.clone().requires_grad_()
    scores = (x - probe.mean) / probe.scale @ weight + bias
    value = F.cross_entropy(scores, y) + l2 / 2 * weight.square().sum()
    for gradient in torch.autograd.grad(value, (weight, bias)):
        assert gradient.abs().max() < 1e-7


@pytest.mark.parametrize("l2", [1e-1, 1e-3])
def test_the_probe_is_scikit_learn_s_logistic_regression(l2: float) -> None:
    sklearn = pytest.importorskip("sklearn.linear_model")
    x, y = blobs(400, 9, 5)
    probe = fit_probe(x, y, strengths=(l2,), slope=1e-9)
    standard = ((x - x.mean(0)) / x.std(0, unbiased=False)).numpy()
    theirs = sklearn.LogisticRegression(C=1 / (l2 * len(x)), tol=1e-10, max_iter=10_000).fit(standard, y.numpy())
    asked, _ = blobs(200, 9, 5, seed=1)
    ours = torch.softmax(probe(asked), 1).numpy()
    np.testing.assert_allclose(
        ours, theirs.predict_proba(((asked - x.mean(0)) / x.std(0, unbiased=False)).numpy()), atol=1e-5
    )


def test_the_everyday_probe_is_as_right_as_the_exact_one() -> None:
    """In single precision and with the everyday stop, the loss is near its minimum: 1e-8 for each of 210 weights."""
    x, y = blobs(2000, 20, 10)

    def loss(probe: Probe) -> float:
        scores = (x - probe.mean.double()) / probe.scale.double() @ probe.weight.double() + probe.bias.double()
        return float(F.cross_entropy(scores, y) + 1e-4 / 2 * probe.weight.double().square().sum())

    exact, everyday = fit_probe(x, y, (1e-4,), slope=1e-10), fit_probe(x.float(), y, (1e-4,))
    assert loss(exact) <= loss(everyday) <= loss(exact) + 210e-8


def test_clouds_far_apart_are_told_and_one_cloud_is_not() -> None:
    assert linear_accuracy(*two_clouds(200, 20.0), *two_clouds(400, 20.0)) == 100.0
    assert linear_accuracy(*two_clouds(2000, 0.0), *two_clouds(400, 0.0)) == pytest.approx(50, abs=6)


def test_the_scale_of_a_feature_does_not_matter() -> None:
    (x, y), (q, t) = two_clouds(400, 1.0), two_clouds(200, 1.0)
    stretch = torch.tensor([1.0, 1e3, 1e-3])
    assert linear_accuracy(q, t, x, y) == pytest.approx(linear_accuracy(q * stretch, t, x * stretch, y), abs=1.0)


def test_the_strength_is_the_one_that_does_best_on_a_tenth_that_is_held_out() -> None:
    """Many useless features and few examples want a strong pull to zero, many examples a weak one."""
    sklearn = pytest.importorskip("sklearn.linear_model")
    generator = torch.Generator().manual_seed(5)
    y = torch.arange(150) % 3
    x = torch.randn(150, 200, generator=generator, dtype=torch.float64)
    x[:, 0] += 2.0 * y
    probe = fit_probe(x, y, (1e-1, 1e-2, 1e-3), slope=1e-8)
    standard, (known, asked) = ((x - x.mean(0)) / x.std(0, unbiased=False)).numpy(), holdout_rows(150)
    for l2, right in probe.held_out.items():
        theirs = sklearn.LogisticRegression(C=1 / (l2 * 135), tol=1e-9, max_iter=10_000)
        theirs.fit(standard[known], y.numpy()[known])
        assert right == pytest.approx(100 * theirs.score(standard[asked], y.numpy()[asked]))
    assert probe.held_out[probe.l2] == max(probe.held_out.values())
    assert probe.l2 > fit_probe(*blobs(2000, 5, 4)).l2


def test_a_constant_feature_is_harmless() -> None:
    (x, y), (q, t) = two_clouds(400, 20.0), two_clouds(200, 20.0)
    x[:, 1], q[:, 1] = 4.0, 4.0
    assert linear_accuracy(q, t, x, y) == 100.0


def test_classes_that_come_in_turn_are_all_held_out_from() -> None:
    """Every tenth example of ten classes in turn would be one class only."""
    x, y = blobs(3000, 20, 10)
    order = y.argsort(stable=True).reshape(-1)
    counts = y.bincount()
    in_turn = torch.stack([order[counts[:c].sum() :][: int(counts.min())] for c in range(10)], dim=1).flatten()
    assert y[in_turn][:20].tolist() == [*range(10), *range(10)]
    shuffled = in_turn[torch.randperm(len(in_turn), generator=torch.Generator().manual_seed(0))]
    turned, mixed = (fit_probe(x[rows], y[rows]) for rows in (in_turn, shuffled))
    assert min(turned.held_out.values()) > 50
    asked = blobs(1000, 20, 10, seed=1)
    assert probe_accuracy(turned, *asked) == pytest.approx(probe_accuracy(mixed, *asked), abs=3)


@pytest.mark.parametrize(("n", "d"), [(30, 50), (50, 30)])
def test_features_that_say_nothing_are_no_reason_to_fail(n: int, d: int) -> None:
    y = torch.arange(n) % 3
    assert 0 <= linear_accuracy(torch.zeros(9, d), torch.arange(9) % 3, torch.ones(n, d), y) <= 100


@pytest.mark.parametrize(("n", "d"), [(60, 8), (20, 40)])
def test_axes_that_single_precision_can_t_find_are_found_in_double(
    n: int, d: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (x, y), eigh = blobs(n, d, 3), torch.linalg.eigh
    usual = fit_probe(x.float(), y, (1e-1,), slope=1e-7)

    def failing(gram: torch.Tensor) -> object:
        if gram.dtype == torch.float32:
            raise RuntimeError("did not converge")
        return eigh(gram)

    monkeypatch.setattr(torch.linalg, "eigh", failing)
    found = fit_probe(x.float(), y, (1e-1,), slope=1e-7)
    torch.testing.assert_close(found.weight, usual.weight, atol=1e-4, rtol=1e-4)


def test_without_principal_axes_the_probe_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = blobs(300, 12, 4)
    with_axes = fit_probe(x, y, (1e-3,), slope=1e-9)
    monkeypatch.setattr("phinets.evaluation.linear.AXES_AT_MOST", 5)
    without = fit_probe(x, y, (1e-3,), slope=1e-9)
    torch.testing.assert_close(without.weight, with_axes.weight, atol=1e-6, rtol=1e-6)
