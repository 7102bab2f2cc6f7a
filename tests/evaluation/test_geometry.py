"""Alignment, uniformity, spectra and ranks at their limits: orthogonal, rank one, constant."""

import math

import pytest
import torch

from phinets.evaluation.health import alignment, spectrum, stable_rank, uniformity, weight_cosine, weight_distance


def gaussian(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


ORTHOGONAL = torch.linalg.qr(gaussian(40, 12)).Q
RANK_ONE = gaussian(40, 1) @ gaussian(1, 12, seed=1)
CONSTANT = torch.ones(40, 12, dtype=torch.float64)


def test_alignment_is_zero_two_and_four_for_equal_orthogonal_and_opposite_codes() -> None:
    z = gaussian(30, 8)
    z[:, 4:] = 0
    turned = z.roll(4, dims=1)
    assert alignment(z, 3 * z) == pytest.approx(0, abs=1e-12)
    assert alignment(z, turned) == pytest.approx(2)
    assert alignment(z, -z) == pytest.approx(4)


def test_uniformity_is_zero_for_constant_codes_and_minus_four_for_orthogonal_ones() -> None:
    assert uniformity(CONSTANT) == pytest.approx(0, abs=1e-9)
    assert uniformity(5 * torch.eye(12, dtype=torch.float64)) == pytest.approx(-4)


def test_uniformity_is_its_double_sum() -> None:
    z = torch.nn.functional.normalize(gaussian(15, 4), dim=1)
    pairs = [math.exp(-2 * float((z[i] - z[j]).square().sum())) for i in range(15) for j in range(15) if i != j]
    assert uniformity(z) == pytest.approx(math.log(sum(pairs) / len(pairs)))


def test_the_spectrum_of_orthogonal_codes_is_flat_and_that_of_a_line_has_one_value() -> None:
    assert torch.allclose(spectrum(7 * ORTHOGONAL), torch.ones(12, dtype=torch.float64))
    for z in (RANK_ONE, CONSTANT):
        assert spectrum(z)[0] == 1
        assert spectrum(z)[1:].max() < 1e-12
    assert torch.equal(spectrum(torch.zeros(5, 3)), torch.zeros(3))


@pytest.mark.parametrize(
    ("matrix", "rank"),
    [(3 * ORTHOGONAL, 12.0), (ORTHOGONAL.T, 12.0), (RANK_ONE, 1.0), (CONSTANT, 1.0), (torch.zeros(4, 4), 0.0)],
)
def test_the_stable_rank_counts_equal_directions(matrix: torch.Tensor, rank: float) -> None:
    assert stable_rank(matrix) == pytest.approx(rank)


def test_the_stable_rank_is_the_norms_ratio_and_at_most_the_rank() -> None:
    matrix = gaussian(9, 3) @ gaussian(3, 14, seed=1)
    by_norms = torch.linalg.norm(matrix, "fro") ** 2 / torch.linalg.norm(matrix, 2) ** 2
    assert stable_rank(matrix) == pytest.approx(float(by_norms))
    assert 1 <= stable_rank(matrix) <= 3


def test_weights_are_compared_as_one_long_vector() -> None:
    a, b = [gaussian(3, 2), gaussian(4)], [gaussian(3, 2, seed=1), gaussian(4, seed=2)]
    flat_a, flat_b = torch.cat([w.flatten() for w in a]), torch.cat([w.flatten() for w in b])
    assert weight_cosine(a, b) == pytest.approx(float(torch.cosine_similarity(flat_a, flat_b, dim=0)))
    assert weight_distance(a, b) == pytest.approx(float((flat_a - flat_b).norm() / flat_a.norm()))


def test_equal_weights_have_cosine_one_and_distance_zero_and_halved_ones_half() -> None:
    a = [gaussian(3, 2), gaussian(4)]
    halved = [w / 2 for w in a]
    assert weight_cosine(a, a) == pytest.approx(1)
    assert weight_distance(a, a) == 0
    assert weight_cosine(a, halved) == pytest.approx(1)
    assert weight_distance(a, halved) == pytest.approx(0.5)
