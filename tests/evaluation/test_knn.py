"""The vote of the nearest, against brute force."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from phinets.config.errors import UserError
from phinets.evaluation.knn import knn_accuracy, knn_votes, nearest


def brute_force(query: torch.Tensor, bank: torch.Tensor, labels: torch.Tensor, k: int, temperature: float) -> int:
    """The winner of one query's vote, one neighbor at a time."""
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
    votes = knn_votes(queries, bank, labels, k=k, temperature=temperature)
    assert votes.argmax(1).tolist() == [brute_force(q, bank, labels, k, temperature) for q in queries]


def test_a_bank_that_holds_the_queries_is_right_with_one_neighbor() -> None:
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
    votes = knn_votes(queries, bank, labels, k=3)
    assert votes.shape == (1500, 2)
    assert torch.allclose(votes[1400:], knn_votes(queries[1400:], bank, labels, k=3))


def test_k_beyond_the_bank_is_refused() -> None:
    with pytest.raises(UserError, match="k is 5, but the bank holds 4 images"):
        knn_votes(torch.eye(4), torch.eye(4), torch.arange(4) % 2, k=5)


@pytest.mark.parametrize("where", ["bank", "queries"])
def test_features_that_are_no_numbers_are_refused_by_row(where: str) -> None:
    features = {"bank": torch.randn(9, 3), "queries": torch.randn(7, 3)}
    features[where][4, 1] = torch.nan
    with pytest.raises(UserError, match=rf"features of the {where} .* \(row 4"):
        knn_votes(features["queries"], features["bank"], torch.arange(9) % 2, k=1)


class Spied:
    """A bank that remembers how much of it was asked for at once."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.shape, self.most = rows, rows.shape, 0

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> np.ndarray:
        self.most = max(self.most, len(self.rows[part]))
        return self.rows[part]


@pytest.mark.parametrize(("limit", "most"), [("BANK_CHUNK", 33), ("BANK_CHUNK_NUMBERS", 6 * 33)])
def test_a_bank_read_in_parts_gives_the_neighbors_of_the_whole(
    limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(4)
    bank, queries = torch.randn(700, 6, generator=generator), torch.randn(90, 6, generator=generator)
    (whole,) = nearest(queries, bank, 40)
    monkeypatch.setattr(f"phinets.evaluation.knn.{limit}", most)  # fewer than k rows at a time
    monkeypatch.setattr("phinets.evaluation.knn.QUERY_CHUNK", 7)
    monkeypatch.setattr("phinets.evaluation.knn.QUERIES_PER_PASS", 20)
    spied = Spied(bank.numpy())
    in_parts = list(nearest(queries, spied, 40))  # type: ignore[arg-type]
    assert spied.most == 33
    torch.testing.assert_close(torch.cat([chunk.cosines for chunk in in_parts]), whole.cosines)
    rows = torch.cat([chunk.rows for chunk in in_parts])
    exact = F.cosine_similarity(queries[:, None].double(), bank[rows].double(), dim=2)
    torch.testing.assert_close(exact.float(), whole.cosines)  # rows may change places where rounding makes a tie
    assert all(len(row.unique()) == 40 for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "width"), [(600_000, 512), (1_000_000, 32)])
def test_features_on_the_disk_are_never_all_in_memory(rows: int, width: int, tmp_path: Path) -> None:
    """1.2 GB as floats, or many narrow rows. The file is sparse: zeros but for two rows."""
    if not Path("/proc/self/status").exists():
        pytest.skip("reads the memory of a process from /proc")
    code = f"""
import numpy as np, threading, torch
from phinets.evaluation.knn import knn_votes
bank = np.lib.format.open_memmap({str(tmp_path / "bank.npy")!r}, "w+", dtype=np.float16, shape=({rows}, {width}))
bank[234_567, :9], bank[{rows} - 1, 9:] = 1, 1
queries = torch.zeros(1100, {width})
queries[:10, :9], queries[10:, 9:] = 1, 1
def own():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))
before, peak, done = own(), 0, threading.Event()
def watch():
    global peak
    while not done.wait(0.02):
        peak = max(peak, own())
threading.Thread(target=watch).start()
votes = knn_votes(queries, bank, torch.arange({rows}) % 10, k=200, temperature=0.01)
done.set()
print(*votes.argmax(1).tolist())
print((peak - before) / 1e6)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    classes, gigabytes = done.stdout.splitlines()
    assert classes.split() == ["7"] * 10 + ["9"] * 1090
    assert 0.1 < float(gigabytes) < 1
