"""The losses, against their definitions and limits."""

import math

import pytest
import torch
import torch.nn.functional as F

from phinets import losses


@pytest.fixture
def pair() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(2, 20, 7, generator=generator, dtype=torch.float64))


def test_negative_cosine_is_the_paper_s_d(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    p, z = pair
    unit_p = p / p.norm(dim=1, keepdim=True)
    unit_z = z / z.norm(dim=1, keepdim=True)
    assert torch.allclose(losses.negative_cosine(p, z), -(unit_p * unit_z).sum(dim=1).mean(), atol=1e-12)


def test_negative_cosine_reaches_both_ends_and_ignores_lengths(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    p, _ = pair
    assert losses.negative_cosine(p, 3 * p) == pytest.approx(-1)
    assert losses.negative_cosine(p, -p) == pytest.approx(1)


def test_byol_s_distance_is_that_of_unit_vectors(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    p, z = pair
    apart = F.normalize(p, dim=1) - F.normalize(z, dim=1)
    assert torch.allclose(losses.squared_distance(p, z), apart.square().sum(1).mean(), atol=1e-12)


def test_mean_squared_error_is_the_text_s_sum_divided_by_the_dimension(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    y, z = pair
    text = (y - z).norm(dim=1).square().mean()
    assert torch.allclose(losses.mean_squared_error(y, z), text / y.shape[1], atol=1e-12)


def test_decorrelation_is_zero_at_the_identity_and_counts_each_part() -> None:
    assert losses.decorrelation(torch.eye(4), 0.005) == 0
    c = torch.tensor([[0.5, 0.2], [-0.1, 1.0]], dtype=torch.float64)
    assert losses.decorrelation(c, 0.3) == pytest.approx(0.5**2 + 0.3 * (0.2**2 + 0.1**2))


def test_cross_correlation_agrees_with_numpy_s(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    z1, z2 = pair
    both = torch.corrcoef(torch.cat([z1, z2], dim=1).T)
    assert torch.allclose(losses.cross_correlation(z1, z2), both[:7, 7:], atol=1e-4)


def test_info_nce_knows_nothing_at_first_and_everything_in_the_limit() -> None:
    query = F.normalize(torch.ones(3, 4, dtype=torch.float64), dim=1)
    assert losses.info_nce(query, query, query.repeat(5, 1), 0.1) == pytest.approx(math.log(16))
    assert losses.info_nce(query, query, -query, 0.01) == pytest.approx(0, abs=1e-12)


def test_info_nce_is_the_negative_logarithm_of_the_right_key_s_share(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    query, key = (F.normalize(x, dim=1) for x in pair)
    queue = F.normalize(torch.randn(9, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64), dim=1)
    shares = []
    for q, k in zip(query, key, strict=True):
        right = torch.exp(q @ k / 0.1)
        shares.append(right / (right + sum(torch.exp(q @ other / 0.1) for other in queue)))
    assert torch.allclose(losses.info_nce(query, key, queue, 0.1), -torch.log(torch.stack(shares)).mean())


def test_batch_nce_is_the_negative_logarithm_of_the_own_key_s_share_among_all(
    pair: tuple[torch.Tensor, torch.Tensor],
) -> None:
    query, keys = (F.normalize(x, dim=1) for x in pair)
    shares = [torch.exp(q @ keys[2 + i] / 0.1) / torch.exp(keys @ q / 0.1).sum() for i, q in enumerate(query[:3])]
    assert torch.allclose(losses.batch_nce(query[:3], keys, 2, 0.1), -torch.log(torch.stack(shares)).mean())


def test_batch_nce_knows_nothing_at_first_and_everything_in_the_limit() -> None:
    same = F.normalize(torch.ones(5, 4, dtype=torch.float64), dim=1)
    assert losses.batch_nce(same, same, 0, 0.1) == pytest.approx(math.log(5))
    apart = torch.eye(4, dtype=torch.float64)
    assert losses.batch_nce(apart, apart, 0, 0.01) == pytest.approx(0, abs=1e-12)


def test_no_loss_detaches(pair: tuple[torch.Tensor, torch.Tensor]) -> None:
    for loss in (losses.negative_cosine, losses.squared_distance, losses.mean_squared_error):
        p, z = (x.clone().requires_grad_() for x in pair)
        loss(p, z).backward()
        assert p.grad is not None
        assert z.grad is not None
        assert z.grad.abs().sum() > 0
