"""The collapse meter at its limits."""

import pytest
import torch

from phinets.evaluation.health import Health, dead_share, effective_rank, health, spread


def gaussian(n: int = 2000, d: int = 32) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0))


def test_codes_that_point_everywhere_are_healthy() -> None:
    z = gaussian()
    assert spread(z) == pytest.approx(1.0, abs=0.02)
    assert effective_rank(z) == pytest.approx(32, rel=0.02)
    assert dead_share(z) == 0
    assert health(z).verdict == "healthy"


def test_constant_codes_are_collapsed() -> None:
    z = torch.ones(100, 16)
    assert spread(z) == pytest.approx(0, abs=1e-6)
    assert effective_rank(z) == pytest.approx(1, abs=1e-3)
    assert dead_share(z) == 1
    assert health(z).verdict == "collapsed"


def test_codes_on_one_line_are_collapsed_though_they_spread() -> None:
    """What the standard deviation alone does not see."""
    z = torch.sign(gaussian(100, 1)) * torch.ones(16)
    assert spread(z) > 0.9
    assert effective_rank(z) == pytest.approx(1, abs=1e-3)
    assert health(z).verdict == "collapsed"


def test_orthogonal_codes_have_full_rank() -> None:
    q, _ = torch.linalg.qr(gaussian(64, 16))
    assert effective_rank(q) == pytest.approx(16, rel=1e-4)


@pytest.mark.parametrize("k", [2, 5, 9])
def test_k_equal_directions_have_rank_k(k: int) -> None:
    assert effective_rank(torch.eye(12)[torch.arange(180) % k]) == pytest.approx(k, rel=1e-4)


def test_dead_dimensions_are_counted() -> None:
    z = gaussian()
    z[:, :8] = 0
    assert dead_share(z) == pytest.approx(8 / 32)


def test_the_meter_ignores_the_length_of_codes() -> None:
    z = gaussian()
    assert spread(1000 * z) == pytest.approx(spread(z), rel=1e-4)
    assert effective_rank(1000 * z) == pytest.approx(effective_rank(z), rel=1e-4)


@pytest.mark.parametrize(
    ("reading", "verdict"),
    [
        (Health(1.0, 40.0, 0.0), "healthy"),
        (Health(0.3, 40.0, 0.0), "collapsing"),
        (Health(1.0, 2.0, 0.0), "collapsing"),
        (Health(1.0, 40.0, 0.7), "collapsing"),
        (Health(0.05, 40.0, 0.0), "collapsed"),
        (Health(1.0, 1.1, 0.0), "collapsed"),
    ],
)
def test_the_worst_reading_decides(reading: Health, verdict: str) -> None:
    assert reading.verdict == verdict
