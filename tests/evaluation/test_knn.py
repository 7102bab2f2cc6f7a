"""The vote of the nearest, against brute force."""

import math

import pytest
import torch

from phinets.evaluation.knn import knn_accuracy, knn_votes


def brute_force(query: torch.Tensor, bank: torch.Tensor, labels: torch.Tensor, k: int, temperature: float) -> int:
    """The winner of one query's vote, one neighbour at a time."""
    cosines = [float(query @ b / (query.norm() * b.norm())) for b in bank]
    nearest = sorted(range(len(bank)), key=lambda i: -cosines[i])[:k]
    votes: dict[int, float] = {}
    for i in nearest:
        votes[int(labels[i])] = votes.get(int(labels[i]), 0.0) + math.exp(cosines[i] / temperature)
    return max(votes, key=lambda c: votes[c])


@pytest.mark.parametrize(("k", "temperature"), [(1, 0.1), (7, 0.1), (30, 0.05), (60, 1.0)])
def test_the_vote_agrees_with_brute_force(k: int, temperature: float) -> None:
    generator = torch.Generator().manual_seed(3)
    bank, queries = torch.randn(60, 5, generator=generator), torch.randn(25, 5, generator=generator)
    labels = torch.randint(4, (60,), generator=generator)
    votes = knn_votes(queries, bank, labels, classes=4, k=k, temperature=temperature)
    assert votes.argmax(1).tolist() == [brute_force(q, bank, labels, k, temperature) for q in queries]


def test_a_bank_that_holds_the_queries_is_right_with_one_neighbour() -> None:
    bank = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(50) % 5
    assert knn_accuracy(bank, labels, bank, labels, k=1) == 100.0


def test_lengths_do_not_matter() -> None:
    generator = torch.Generator().manual_seed(1)
    bank, labels = torch.randn(40, 6, generator=generator), torch.arange(40) % 3
    queries, truth = torch.randn(30, 6, generator=generator), torch.arange(30) % 3
    scaled = bank * torch.rand(40, 1, generator=generator).add(0.1)
    assert knn_accuracy(queries, truth, bank, labels, k=5) == knn_accuracy(7 * queries, truth, scaled, labels, k=5)


def test_every_query_counts_whatever_the_chunk() -> None:
    generator = torch.Generator().manual_seed(2)
    bank, labels = torch.randn(20, 4, generator=generator), torch.arange(20) % 2
    queries = torch.randn(1500, 4, generator=generator)
    votes = knn_votes(queries, bank, labels, classes=2, k=3)
    assert votes.shape == (1500, 2)
    assert torch.allclose(votes[1400:], knn_votes(queries[1400:], bank, labels, classes=2, k=3))


def test_k_beyond_the_bank_asks_the_whole_bank() -> None:
    bank, labels = torch.eye(4), torch.tensor([0, 1, 1, 1])
    assert torch.equal(knn_votes(bank, bank, labels, classes=2, k=100), knn_votes(bank, bank, labels, classes=2, k=4))
