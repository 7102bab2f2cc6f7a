"""The reservoir is a uniform sample of what was seen, and no batch size, process or interruption changes it."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import Tensor

from phinets.config.errors import UserError
from phinets.continual.replay import Reservoir, surviving_rows


def item(n: int) -> tuple[Tensor, Tensor]:
    """An image and a view that say which item they are."""
    return torch.full((3, 2, 2), n % 251, dtype=torch.uint8), torch.full((3, 2, 2), float(n))


def show(reservoir: Reservoir, until: int, batch: int) -> Reservoir:
    """Let it see the items up to `until`."""
    while reservoir.count < until:
        slots = reservoir.slots(reservoir.count, min(batch, until - reservoir.count))
        kept = [item(reservoir.count + int(row)) for row in surviving_rows(slots)]
        blank = torch.empty(0, 3, 2, 2)
        images = torch.stack([image for image, _ in kept]) if kept else blank.to(torch.uint8)
        reservoir.put(slots, images, torch.stack([view for _, view in kept]) if kept else blank)
    return reservoir


def held(reservoir: Reservoir) -> list[int]:
    """Which items it holds, by slot; image and view are of the same one."""
    items = reservoir.views[: reservoir.filled, 0, 0, 0].long()
    assert torch.equal(reservoir.images[: reservoir.filled, 0, 0, 0].long(), items % 251)
    return items.tolist()


def plain(seed: int, capacity: int, n: int) -> list[int]:
    """Algorithm R, item by item, with the numbers that the reservoir draws: which item each slot holds."""
    drawn = enumerate(Reservoir(capacity, seed, 2).slots(0, n).tolist())
    holds = {slot: i for i, slot in drawn if slot >= 0}  # a later item takes the place of an earlier one
    return [holds[slot] for slot in sorted(holds)]


def test_every_item_is_held_equally_often() -> None:
    """Counts of 40 items in 4,000 reservoirs of 8: were all equally likely, χ² would pass its bound once in 10,000."""
    n, capacity, runs = 40, 8, 4000
    counts = np.zeros(n)
    for seed in range(runs):
        counts[plain(seed, capacity, n)] += 1
    assert counts.sum() == runs * capacity
    share = capacity / n
    statistic = ((counts - runs * share) ** 2 / (runs * share * (1 - share))).sum() * (n - 1) / n
    assert statistic < chi2.ppf(1 - 1e-4, n - 1)


def test_the_slot_that_gives_way_is_any_equally_often() -> None:
    capacity = 8
    slots = torch.cat([Reservoir(capacity, seed, 2).slots(capacity, 400) for seed in range(50)])
    counts = torch.bincount(slots[slots >= 0], minlength=capacity).numpy()
    expected = counts.sum() / capacity
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-4, capacity - 1)


def test_a_late_item_is_taken_in_as_rarely_as_it_should_be() -> None:
    capacity, first, n = 100, 10**9, 10**6
    taken = int((Reservoir(capacity, 3, 2).slots(first, n) >= 0).sum())
    assert taken <= 4  # 0.1 on average
    early = int((Reservoir(capacity, 3, 2).slots(1000, 1000) >= 0).sum())
    expected = sum(capacity / (i + 1) for i in range(1000, 2000))
    assert abs(early - expected) < 4 * expected**0.5


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_the_content_does_not_depend_on_the_batch_size(batch: int) -> None:
    reservoir = show(Reservoir(10, 5, 2), 200, batch)
    assert held(reservoir) == plain(5, 10, 200)
    assert reservoir.count == 200


@pytest.mark.parametrize("first", range(9))
def test_the_slots_of_an_item_are_its_own_wherever_a_batch_begins(first: int) -> None:
    reservoir = Reservoir(3, 1, 2)
    assert torch.equal(reservoir.slots(first, 20), reservoir.slots(0, 29)[first : first + 20])
    assert torch.equal(reservoir.slots(first, 20), torch.cat([reservoir.slots(first + i, 1) for i in range(20)]))


def test_another_seed_keeps_others() -> None:
    assert held(show(Reservoir(10, 0, 2), 200, 16)) != held(show(Reservoir(10, 1, 2), 200, 16))


@pytest.mark.parametrize("n", [0, 1, 29, 30])
def test_what_fits_is_kept_whole_and_in_order(n: int) -> None:
    reservoir = show(Reservoir(30, 0, 2), n, 7)
    assert held(reservoir) == list(range(n))
    assert reservoir.filled == n


def test_of_two_that_take_one_slot_the_later_stays() -> None:
    assert surviving_rows(torch.tensor([4, -1, 2, 4, 0, 2, -1])).tolist() == [3, 4, 5]
    assert surviving_rows(torch.tensor([-1, -1])).tolist() == []


def through_a_file(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


@pytest.mark.parametrize("until", [0, 6, 50])
def test_who_takes_over_its_state_goes_on_as_it_would_have(until: int) -> None:
    first = show(Reservoir(10, 5, 2), until, 8)
    second = show(Reservoir(10, 5, 2), 3, 8)
    second.restore(through_a_file(first.state()))
    assert (second.count, held(second)) == (until, held(first))
    assert held(show(second, 120, 16)) == held(show(first, 120, 16))


def test_a_state_does_not_change_with_what_it_was_taken_from() -> None:
    reservoir = show(Reservoir(4, 5, 2), 4, 4)
    state = reservoir.state()
    show(reservoir, 400, 4)
    assert state["views"][:, 0, 0, 0].tolist() == [0, 1, 2, 3]


def test_a_buffer_of_another_size_is_refused() -> None:
    state = show(Reservoir(10, 5, 2), 20, 8).state()
    for other in (Reservoir(12, 5, 2), Reservoir(10, 5, 4)):
        with pytest.raises(UserError, match="buffer"):
            other.restore(state)
