"""Maps of features: what they keep, and that they agree with other people's."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.embed import maps
from phinets.embed.maps import affinities, principal, principal_map, tsne, tsne_slope


def blobs(n: int = 60, groups: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points around a few places that lie far apart, in ten dimensions, and which place each belongs to."""
    drawn = torch.Generator().manual_seed(seed)
    centres = 8 * torch.randn(groups, 10, generator=drawn)
    which = torch.arange(n) % groups
    return centres[which] + torch.randn(n, 10, generator=drawn), which


def test_principal_axes_are_those_of_a_singular_value_decomposition_of_unit_vectors() -> None:
    features = torch.randn(200, 12, generator=torch.Generator().manual_seed(1)) * torch.linspace(1, 4, 12) + 0.3
    unit = (features / features.norm(dim=1, keepdim=True)).double()
    _, strengths, axes = torch.linalg.svd(unit - unit.mean(0), full_matrices=False)
    found = principal(features, k=3)
    torch.testing.assert_close((found.axes * axes[:3].T).sum(0).abs(), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(found.shares, (strengths.square() / strengths.square().sum())[:3])
    assert (found.axes.gather(0, found.axes.abs().argmax(0, keepdim=True)) > 0).all()
    torch.testing.assert_close(principal_map(features, found), (unit - unit.mean(0)) @ found.axes)


def test_neither_the_length_of_features_nor_how_many_are_read_at_once_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = blobs()
    first = principal(features)
    wanted = principal_map(features, first)
    monkeypatch.setattr(maps, "AT_ONCE", 7)
    stretched = (features * torch.linspace(0.5, 9, len(features))[:, None]).numpy()
    found = principal(stretched)
    torch.testing.assert_close(principal_map(stretched, found), wanted, rtol=1e-5, atol=1e-6)


def test_features_that_are_all_alike_lie_on_one_point() -> None:
    alike = np.ones((5, 4), np.float32)
    found = principal(alike)
    assert torch.allclose(principal_map(alike, found), torch.zeros(5, 2, dtype=torch.float64), atol=1e-7)
    assert torch.isfinite(found.shares).all()


@pytest.mark.parametrize("perplexity", [3.0, 12.0])
def test_every_row_of_the_affinities_has_the_perplexity_that_was_asked_for(perplexity: float) -> None:
    points, _ = blobs(n=25)
    squares = torch.cdist(points, points).square().double()
    rows = torch.stack([_row(squares[i], i, perplexity) for i in range(25)])
    torch.testing.assert_close(affinities(points.double(), perplexity), (rows + rows.T) / 50, rtol=1e-5, atol=1e-9)


def _row(squares: Tensor, i: int, perplexity: float) -> Tensor:
    """How near the others are to point i, by a search for this row alone."""
    others, low, high = torch.arange(len(squares)) != i, 1e-6, 1e3
    row = torch.zeros_like(squares)
    for _ in range(200):
        beta = math.sqrt(low * high)
        row[others] = torch.softmax(-beta * squares[others], dim=0)
        entropy = -float(torch.special.xlogy(row, row).sum())
        low, high = (beta, high) if entropy > math.log(perplexity) else (low, beta)
    assert entropy == pytest.approx(math.log(perplexity), abs=1e-6)
    return row


def test_the_slope_is_the_gradient_of_the_divergence() -> None:
    points, _ = blobs(n=20)
    p = affinities(points.double(), 5.0)
    y = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2), requires_grad=True)
    (slope,) = torch.autograd.grad(divergence(p, y), y)
    torch.testing.assert_close(tsne_slope(p, y.detach()), slope)


def divergence(p: Tensor, y: Tensor) -> Tensor:
    """KL(P‖Q), as the paper of t-SNE writes it."""
    off = ~torch.eye(len(y), dtype=torch.bool)
    apart = (y[:, None] - y[None]).square().sum(-1)
    q = (1 / (1 + apart))[off]
    return (p[off] * (p[off] / (q / q.sum())).log()).sum()


def test_t_sne_keeps_groups_together_and_gives_the_same_map_again() -> None:
    points, which = blobs()
    y = tsne(points, perplexity=10)
    assert torch.equal(y, tsne(points, perplexity=10))
    nearest = torch.cdist(y, y).fill_diagonal_(torch.inf).argmin(1)
    assert torch.equal(which[nearest], which)
    torch.testing.assert_close(y.mean(0), torch.zeros(2), atol=1e-3, rtol=0)


def test_t_sne_comes_as_far_down_as_scikit_learn_s() -> None:
    manifold = pytest.importorskip("sklearn.manifold")
    points, _ = blobs(n=90)
    p = affinities(points.double(), 15.0)
    theirs = manifold.TSNE(perplexity=15, method="exact", init="pca", max_iter=500, random_state=0)
    their_map = torch.from_numpy(theirs.fit_transform(points.numpy())).double()
    ours = float(divergence(p, tsne(points, perplexity=15).double()))
    assert ours <= 1.05 * float(divergence(p, their_map))


@pytest.mark.parametrize("n", [3, maps.MOST + 1])
def test_too_few_or_too_many_points_are_refused(n: int) -> None:
    with pytest.raises(UserError, match=f"t-SNE was asked for {n} points"):
        tsne(torch.randn(n, 2))
