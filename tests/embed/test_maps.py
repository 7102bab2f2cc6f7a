"""Maps of features: PCA and t-SNE."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from phinets.embed import maps
from phinets.embed.maps import fit_pca, project, tsne, unit_vectors


def blobs(n: int = 60, groups: int = 3, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points around a few distant centers in ten dimensions, and their groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % groups
    return 8 * rng.normal(size=(groups, 10))[group] + rng.normal(size=(n, 10)), group


def test_principal_components_are_those_of_a_singular_value_decomposition_of_unit_vectors() -> None:
    features = torch.randn(200, 12, generator=torch.Generator().manual_seed(1)) * torch.linspace(1, 4, 12) + 0.3
    unit = F.normalize(features.double(), dim=1)
    _, strengths, axes = torch.linalg.svd(unit - unit.mean(0), full_matrices=False)
    mean, components, ratio = fit_pca(features, 3)
    np.testing.assert_allclose(mean, unit.mean(0).numpy(), atol=1e-12)
    np.testing.assert_allclose(np.abs((components * axes[:3].numpy()).sum(1)), np.ones(3), rtol=1e-6)
    shares = (strengths.square() / strengths.square().sum())[:3].numpy()
    np.testing.assert_allclose(ratio, shares, rtol=1e-5)
    assert (np.take_along_axis(components, np.abs(components).argmax(1, keepdims=True), 1) > 0).all()


def test_neither_the_length_of_features_nor_the_chunk_size_changes_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = blobs()
    rows = np.arange(60)
    expected = project(features, rows, "pca")[0]
    monkeypatch.setattr(maps, "ROWS", 7)
    stretched = features * np.linspace(0.5, 9, 60)[:, None]
    points = project(stretched, rows, "pca")[0]
    np.testing.assert_allclose(points, expected, atol=1e-5)  # the features are read as float32


def test_equal_features_lie_on_one_point() -> None:
    points, axes = project(np.ones((5, 4), np.float32), np.arange(5), "pca")
    np.testing.assert_allclose(points, np.zeros((5, 2)), atol=1e-7)
    assert all("nan" not in axis for axis in axes)


def test_t_sne_keeps_groups_together_and_is_deterministic() -> None:
    points, group = blobs()
    unit = unit_vectors(points)
    y = tsne(unit, perplexity=10)
    np.testing.assert_array_equal(y, tsne(unit, perplexity=10))
    distances = np.linalg.norm(y[:, None] - y[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(group[distances.argmin(1)], group)
