"""Replay, against a restatement that goes image by image, and however a batch is cut up."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from threading import Barrier, Thread, current_thread
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from phinets import Views
from phinets.config.continual import ReplayOptions
from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.views import PLANS, Augmentation
from phinets.continual.replay import Replay, mixup_weight
from phinets.data import ImageBatch, InMemory
from phinets.runtime import distributed
from phinets.training.loader import MicroBatch, ViewLoader
from phinets.views import apply, draw, make_views, prepare, random_stream, resize_squares

SEED, BATCH, BUFFER, SIZE, STEPS = 3, 8, 11, 10, 9
PIXELS = torch.randint(0, 256, (40, 3, SIZE, SIZE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
PLAN = PLANS["ucl"]
STATISTICS = (PLAN.mean, PLAN.std)
MIXUP, PLAIN = (ReplayOptions(replay=kind, buffer=BUFFER) for kind in ("mixup", "plain"))


def loader(anchor: Anchor | None = "original", **changes: Any) -> ViewLoader:
    whole = ViewLoader(
        images=InMemory(PIXELS), plan=PLAN, anchor=anchor, batch=BATCH, seed=SEED, size=SIZE, device=torch.device("cpu")
    )
    return replace(whole, **changes)


def parts_of(shown: ViewLoader, step: int) -> list[MicroBatch]:
    order = shown.order(shown.epoch_of(step))
    return [shown.micro_batch(step, number, order) for number in range(shown.micro_batches)]


def seen_by(replay: Replay, steps: range) -> Iterator[list[Views]]:
    """What is learned from in each step, part by part."""
    for step in steps:
        parts = parts_of(replay.loader, step)
        yield [replay.mix(step, number, part) for number, part in enumerate(parts)]
        replay.add(step, parts, replay.loader.images)


@dataclass
class Restated:
    """A buffer as lists: Vitter's algorithm item by item, each image augmented by itself."""

    shown: ViewLoader
    images: list[Tensor] = field(default_factory=list)
    views: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        key = int.from_bytes(blake2b(repr((SEED, "reservoir")).encode(), digest_size=16).digest(), "little")
        self.words = np.random.Philox(key=key).random_raw(STEPS * BATCH)

    def chosen(self, step: int) -> list[int]:
        stream = random_stream(SEED, "recall", step)
        return torch.randperm(len(self.images), generator=stream)[:BATCH].tolist()

    def keep(self, step: int, part: MicroBatch) -> None:
        for row in range(BATCH):
            item = step * BATCH + row
            image, view = PIXELS[part.rows[row]], part.views.second[row]
            if item < BUFFER:
                self.images.append(image)
                self.views.append(view)
            elif (slot := int(self.words[item]) % (item + 1)) < BUFFER:
                self.images[slot], self.views[slot] = image, view

    def augmented(self, chosen: list[int], how: Augmentation, stream: torch.Generator) -> Tensor:
        drawn = draw(how, BATCH, SIZE, SIZE, stream)
        one_by_one = [
            apply(self.images[slot][None], how, drawn.select(slice(i, i + 1)), SIZE, STATISTICS)
            for i, slot in enumerate(chosen)
        ]
        return torch.cat(one_by_one)

    def third(self, chosen: list[int], stream: torch.Generator) -> Tensor | None:
        """The anchor: none, another augmented view, or the image as the plan prepares it."""
        if self.shown.anchor is None:
            return None
        if self.shown.anchor == "augmented":
            assert isinstance(PLAN.first, Augmentation)
            return self.augmented(chosen, PLAN.first, stream)
        prepared = [make_views(self.images[slot][None], PLAN, random_stream(0)).anchor for slot in chosen]
        return torch.cat([anchor for anchor in prepared if anchor is not None])

    def mixed(self, step: int, part: MicroBatch) -> Views:
        new, chosen = part.views, self.chosen(step)
        ours = np.random.RandomState(random_stream(SEED, "lambda", step).initial_seed()).beta(0.4, 0.4)
        cropped = Augmentation(crop_scale=(0.08, 1.0), interpolation="bicubic", jitter_p=0.0, gray_p=0.0)
        first = self.augmented(chosen, cropped, random_stream(SEED, "recall-views", step))
        second = torch.stack([self.views[slot] for slot in chosen])
        third = self.third(chosen, random_stream(SEED, "recall-anchor", step))
        return each(new, Views(first, second, third), lambda n, o: ours * n + (1 - ours) * o)

    def lengthened(self, step: int, part: MicroBatch) -> Views:
        chosen = self.chosen(step)
        stream = random_stream(SEED, "recall-views", step)
        assert isinstance(PLAN.first, Augmentation)
        assert isinstance(PLAN.second, Augmentation)
        first, second = (self.augmented(chosen, how, stream) for how in (PLAN.first, PLAN.second))
        third = self.third(chosen, stream)
        return each(part.views, Views(first, second, third), lambda n, o: torch.cat([n, o]))


def each(new: Views, old: Views, how: Callable[[Tensor, Tensor], Tensor]) -> Views:
    if new.anchor is None:
        assert old.anchor is None
        return Views(how(new.first, old.first), how(new.second, old.second))
    assert old.anchor is not None
    return Views(how(new.first, old.first), how(new.second, old.second), how(new.anchor, old.anchor))


def assert_same(ours: Views, theirs: Views, tolerance: float = 0.0) -> None:
    for one, two in zip(ours, theirs, strict=True):
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert one.shape == two.shape
            assert torch.allclose(one, two, atol=tolerance, rtol=0)


@pytest.mark.parametrize("anchor", [None, "original", "augmented"])
@pytest.mark.parametrize("kind", [MIXUP, PLAIN], ids=["mixup", "plain"])
def test_replay_is_what_a_loop_over_single_images_makes_of_it(kind: ReplayOptions, anchor: Anchor | None) -> None:
    shown = loader(anchor)
    told = Restated(shown)
    for step, (ours,) in enumerate(seen_by(Replay(kind, shown), range(STEPS))):
        (part,) = parts_of(shown, step)
        restated = told.mixed if kind is MIXUP else told.lengthened
        theirs = part.views if step == 0 else restated(step, part)
        assert_same(ours, theirs, tolerance=2e-6)
        told.keep(step, part)


def test_the_first_step_has_nothing_to_remember() -> None:
    shown = loader()
    (part,) = parts_of(shown, 0)
    assert Replay(MIXUP, shown).mix(0, 0, part) is part.views


def test_a_batch_is_drawn_from_the_buffer_without_repetition_and_another_in_each_step() -> None:
    replay = Replay(MIXUP, loader())
    list(seen_by(replay, range(3)))
    batches = [replay.sample(step).tolist() for step in range(3, 20)]
    assert all(len(set(batch)) == BATCH and max(batch) < BUFFER for batch in batches)
    assert len({tuple(batch) for batch in batches}) == len(batches)
    assert {slot for batch in batches for slot in batch} == set(range(BUFFER))


@pytest.mark.parametrize("kind", [MIXUP, PLAIN], ids=["mixup", "plain"])
@pytest.mark.parametrize("anchor", ["original", "augmented"])
def test_in_parts_the_same_is_seen_to_the_last_bit(kind: ReplayOptions, anchor: Anchor) -> None:
    whole, parted = Replay(kind, loader(anchor)), Replay(kind, loader(anchor, micro_batches=4))
    for (one,), four in zip(seen_by(whole, range(STEPS)), seen_by(parted, range(STEPS)), strict=True):
        assert_same(one, joined(four, halves=len(one.first) > BATCH))
    assert torch.equal(whole.reservoir.views, parted.reservoir.views)
    assert torch.equal(whole.reservoir.images, parted.reservoir.images)


def joined(parts: list[Views], halves: bool) -> Views:
    """The whole batch again; where remembered images follow the new ones in each part, first all the new ones."""

    def whole(pieces: list[Tensor]) -> Tensor:
        chunks = [piece.chunk(2 if halves else 1) for piece in pieces]
        return torch.cat([half for side in zip(*chunks, strict=True) for half in side])

    anchors = [views.anchor for views in parts if views.anchor is not None]
    return Views(whole([v.first for v in parts]), whole([v.second for v in parts]), whole(anchors))


class Exchange:
    """Processes as threads: what each brings, all get; one that never comes breaks the barrier."""

    def __init__(self, ranks: int) -> None:
        self.ranks, self.calls = ranks, 0
        self.brought: dict[str, list[Any]] = {}
        self.barrier = Barrier(ranks, timeout=20)

    def __call__(self, items: Any) -> list[Any]:
        self.brought[current_thread().name] = list(items)
        self.calls += 1
        self.barrier.wait()
        every = [item for name in sorted(self.brought) for item in self.brought[name]]
        self.barrier.wait()
        return every


def in_a_team(
    monkeypatch: pytest.MonkeyPatch, loaders: list[ViewLoader]
) -> tuple[list[list[list[Views]]], list[Replay], int]:
    exchange = Exchange(len(loaders))
    monkeypatch.setattr(distributed, "gather_objects", exchange)
    monkeypatch.setattr(distributed, "world_size", lambda: len(loaders))
    replays = [Replay(MIXUP, one) for one in loaders]
    seen: list[list[list[Views]]] = [[] for _ in loaders]
    threads = [
        Thread(target=lambda i=i: seen[i].extend(seen_by(replays[i], range(40))), name=f"rank {i}")
        for i in range(len(loaders))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen, replays, exchange.calls


def test_two_processes_see_and_remember_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes with two parts each; they exchange only where a step leaves something behind."""
    whole = Replay(MIXUP, loader())
    alone = [views for (views,) in seen_by(whole, range(40))]
    seen, replays, calls = in_a_team(monkeypatch, [loader(micro_batches=2, ranks=2, rank=rank) for rank in range(2)])
    for step, one in enumerate(alone):
        pieces = [seen[rank][step][number] for number in range(2) for rank in range(2)]
        assert_same(one, joined(pieces, halves=False))
    for replay in replays:
        assert torch.equal(replay.reservoir.images, whole.reservoir.images)
        assert torch.equal(replay.reservoir.views, whole.reservoir.views)
    steps_that_keep = sum(bool((whole.reservoir.slots(step * BATCH, BATCH) >= 0).any()) for step in range(40))
    assert steps_that_keep < 40
    assert calls == 2 * steps_that_keep


def test_who_takes_over_its_state_sees_what_would_have_come() -> None:
    first = Replay(MIXUP, loader())
    list(seen_by(first, range(4)))
    file = io.BytesIO()
    torch.save(first.state(), file)
    file.seek(0)
    second = Replay(MIXUP, loader())
    second.restore(torch.load(file, weights_only=True))
    for (one,), (two,) in zip(seen_by(first, range(4, 12)), seen_by(second, range(4, 12)), strict=True):
        assert_same(one, two)


class Counted:
    """Images that count how often they are asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, rows: Tensor) -> ImageBatch:
        self.asked += len(rows)
        return InMemory(PIXELS).fetch(rows)


def test_only_what_is_kept_is_fetched() -> None:
    replay, counted = Replay(MIXUP, loader()), Counted()
    kept = 0
    for step in range(30):
        slots = replay.reservoir.slots(step * BATCH, BATCH)
        kept += len(slots[slots >= 0].unique())
        replay.add(step, parts_of(replay.loader, step), counted)  # type: ignore[arg-type]
    assert counted.asked == kept < 30 * BATCH / 2


def test_what_was_remembered_looks_neither_mixed_nor_augmented() -> None:
    replay = Replay(MIXUP, loader())
    list(seen_by(replay, range(STEPS)))
    known = {image.numpy().tobytes() for image in PIXELS}
    assert all(image.numpy().tobytes() in known for image in replay.reservoir.images)


def test_lambda_is_beta_distributed_and_another_in_each_step() -> None:
    """Mean ½ and variance 1/(4(2α + 1)) over 1,500 steps, to four standard errors."""
    for alpha in (0.4, 2.0):
        drawn = np.array([mixup_weight(SEED, step, alpha) for step in range(1500)])
        variance = 1 / (4 * (2 * alpha + 1))
        assert len(set(drawn)) == 1500
        assert abs(drawn.mean() - 0.5) < 4 * (variance / 1500) ** 0.5
        assert abs(((drawn - 0.5) ** 2).mean() - variance) < 4 * (((drawn - 0.5) ** 2).var() / 1500) ** 0.5


def test_a_nearly_certain_lambda_leaves_either_the_new_or_the_old() -> None:
    shown = loader()
    replay = Replay(replace(MIXUP, mixup_alpha=1e-3), shown)
    list(seen_by(replay, range(1)))
    (part,) = parts_of(shown, 1)
    ours = mixup_weight(SEED, 1, 1e-3)
    assert min(ours, 1 - ours) < 1e-9
    stored = replay.reservoir.views[replay.sample(1)]
    assert torch.allclose(replay.mix(1, 0, part).second, part.views.second if ours > 0.5 else stored, atol=1e-6)


def test_images_of_another_size_are_remembered_as_an_evaluator_shows_them() -> None:
    large = torch.randint(0, 256, (6, 3, 24, 30), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    small = resize_squares(large, SIZE)
    assert small.shape == (6, 3, SIZE, SIZE)
    assert torch.equal(prepare(small, PLAN), prepare(large, PLAN, SIZE))
    assert resize_squares(PIXELS, SIZE) is PIXELS


def test_views_come_in_the_precision_and_layout_that_the_learner_takes() -> None:
    double = Replay(MIXUP, loader(dtype=torch.float64))
    *_, (views,) = seen_by(double, range(3))
    for view in views:
        assert view is not None
        assert view.dtype == torch.float64
        assert view.is_contiguous(memory_format=torch.channels_last)


def test_another_buffer_s_state_is_refused() -> None:
    replay = Replay(MIXUP, loader())
    list(seen_by(replay, range(4)))
    with pytest.raises(UserError, match="--buffer"):
        Replay(replace(MIXUP, buffer=9), loader()).restore(replay.state())
