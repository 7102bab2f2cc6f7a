"""The step that changes weights, and the feed that decides what it sees."""

import copy
from dataclasses import replace
from functools import partial

import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.views import PLANS
from phinets.data import InMemory
from phinets.runtime.devices import Precision, pick_device
from phinets.training.loader import ViewLoader, prefetch
from phinets.training.step import train_step
from tests.helpers import tiny_learner, tiny_train_state, tiny_views

CPU = torch.device("cpu")


def loader(seed: int = 0, batch: int = 8) -> ViewLoader:
    images = torch.randint(0, 256, (30, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return ViewLoader(
        images=InMemory(images),
        plan=PLANS["simsiam-cifar"],
        anchor="original",
        batch=batch,
        seed=seed,
        size=16,
        device=CPU,
    )


def test_a_step_is_the_optimizer_s_step_followed_by_the_slow_encoder_s() -> None:
    learner, twin = tiny_learner("x-phinet"), tiny_learner("x-phinet")
    views = tiny_views()
    losses = train_step(tiny_train_state(learner, momentum=0.0, weight_decay=0.1), [views], rate=0.2, peak=0.6)
    assert torch.equal(losses.total, twin.loss(views).total)
    twin.loss(views).total.backward()
    with torch.no_grad():
        for name, p in twin.named_parameters():
            if p.grad is not None:
                p.sub_((0.6 if name.startswith("h.") else 0.2) * (p.grad + 0.1 * p))
    twin.after_step()
    for (name, ours), theirs in zip(learner.named_parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12), name


def test_gradients_do_not_pile_up() -> None:
    learner = tiny_learner("simsiam")
    train_state = tiny_train_state(learner)
    for _ in range(2):
        train_step(train_state, [tiny_views()], rate=0.0, peak=0.0)
    once = tiny_learner("simsiam")
    once.loss(tiny_views()).total.backward()
    for ours, theirs in zip(learner.parameters(), once.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-10)


def test_autocast_in_bf16_gives_nearly_the_same_loss() -> None:
    learner, views = tiny_learner("phinet", dtype=torch.float32), tiny_views(dtype=torch.float32)
    twin = copy.deepcopy(learner)
    plain = learner.loss(views).total
    plain.backward()
    with Precision("bf16", CPU).autocast():
        rough = twin.loss(views).total
    rough.backward()
    assert abs(float(rough.detach()) - float(plain.detach())) < 0.05
    pairs = zip(learner.named_parameters(), twin.parameters(), strict=True)
    for (name, exact), cast in (
        (a, b) for a, b in pairs if b.ndim > 1
    ):  # a norm takes the gradient of some biases away
        assert exact.grad is not None
        assert cast.grad is not None, name
        assert torch.nn.functional.cosine_similarity(exact.grad.ravel(), cast.grad.ravel(), dim=0) > 0.9, name
    assert Precision("auto", CPU).name == "fp32"


def test_an_epoch_shows_every_image_once_but_for_the_rest() -> None:
    order = loader().order(0)
    assert sorted(map(int, order)) == list(range(30))
    assert loader().steps_per_epoch == 3


def test_orders_differ_by_epoch_and_by_seed() -> None:
    orders = [list(map(int, loader(seed).order(epoch))) for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


def test_whoever_starts_in_the_middle_sees_what_would_have_come() -> None:
    whole, late = list(loader().batches(0, 8)), list(loader().batches(5, 8))
    assert len(whole) == 8
    assert len(late) == 3
    for ours, theirs in zip(late, whole[5:], strict=True):
        assert torch.equal(ours.views.first, theirs.views.first)
        assert torch.equal(ours.views.second, theirs.views.second)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_batch_shared_out_among_processes_and_parts_is_the_same_batch(parts: int) -> None:
    whole = next(loader(batch=12).batches(4, 5)).views
    shares = [replace(loader(batch=12), rank=rank, ranks=3, micro_batches=parts).batches(4, 5) for rank in range(3)]
    turns = [next(share).views for _ in range(parts) for share in shares]
    assert torch.allclose(torch.cat([views.first for views in turns]), whole.first, atol=1e-6)
    assert torch.allclose(torch.cat([views.second for views in turns]), whole.second, atol=1e-6)
    anchors = [views.anchor for views in turns if views.anchor is not None]
    assert whole.anchor is not None
    assert torch.allclose(torch.cat(anchors), whole.anchor, atol=1e-6)


def test_a_batch_that_can_t_be_shared_out_equally_is_refused() -> None:
    with pytest.raises(UserError, match="batch of 8 can't be divided equally among 3 processes"):
        replace(loader(batch=8), ranks=3)


def test_the_same_images_are_seen_otherwise_at_every_step_and_under_every_seed() -> None:
    order = torch.arange(30)
    seen = [loader(seed, batch=30).micro_batch(step, 0, order).views.first for seed in (0, 1) for step in range(3)]
    assert not any(torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])
    assert torch.equal(seen[0], loader(0, batch=30).micro_batch(0, 0, order).views.first)


def test_what_is_made_ahead_comes_in_order_and_one_ahead() -> None:
    started: list[int] = []

    def job(i: int) -> int:
        started.append(i)
        return i

    results = prefetch(partial(job, i) for i in range(5))
    assert next(results) == 0
    assert list(results) == [1, 2, 3, 4]
    assert started == [0, 1, 2, 3, 4]
    assert list(prefetch([])) == []


def test_a_fault_in_the_thread_comes_out_when_its_turn_comes() -> None:
    results = prefetch([lambda: 1, lambda: 1 // 0, lambda: 3])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_images_of_the_wrong_kind_are_refused() -> None:
    broken = ViewLoader(
        images=InMemory(torch.zeros(4, 3, 16, 16)),
        plan=PLANS["simsiam-cifar"],
        anchor=None,
        batch=2,
        seed=0,
        size=16,
        device=CPU,
    )
    with pytest.raises(UserError, match="uint8"):
        list(broken.batches(0, 2))


@pytest.mark.parametrize("name", ["nonsense", "meta", "cuda:99"])
def test_an_impossible_device_is_named(name: str) -> None:
    assert pick_device("cpu") == CPU
    with pytest.raises(UserError, match="--device"):
        pick_device(name)
