"""Replay: LUMP's mixup with a reservoir (Madaan et al. 2022), and plain replay."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phinets.config.continual import ReplayOptions
from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.views import PLANS
from phinets.data import Images
from phinets.runtime import distributed
from phinets.training.loader import MicroBatch, ViewLoader
from phinets.views import BatchSlice, Views, make_views, random_stream, resize_squares


class Replay:
    """The replay buffer of a training loop.

    The first step fills the buffer with its batch; from the second on, each step samples a batch from it without
    replacement. The sample is a function of (seed, step), and each micro-batch takes its own rows of it, so neither the
    number of micro-batches nor that of processes changes it. Every process holds the whole buffer on its device.
    """

    def __init__(self, options: ReplayOptions, loader: ViewLoader) -> None:
        """`loader` is that of any task: seed, batch and image size are the same in all."""
        assert options.replay != "none"
        assert options.buffer >= loader.batch
        self.options = options
        self.loader = loader
        self.reservoir = Reservoir(options.buffer, loader.seed, loader.size, device=loader.device, dtype=loader.dtype)

    def mix(self, step: int, number: int, batch: MicroBatch) -> Views:
        """The views of micro-batch `number` of a step, mixed with those of replayed images or followed by them."""
        if not self.reservoir.filled:
            return batch.views
        share = self.loader.share(number)
        slots = self.sample(step)[share.first : share.first + len(batch.rows)].to(self.loader.device)
        if self.options.replay == "mixup":
            weight = mixup_weight(self.loader.seed, step, self.options.mixup_alpha)
            replayed = self._lump_views(step, slots, share)
            return _join(batch.views, replayed, lambda new, old: torch.lerp(old, new, weight))
        return _join(batch.views, self._plan_views(step, slots, share), lambda new, old: torch.cat([new, old]))

    def sample(self, step: int) -> Tensor:
        """The slots that a step replays: (batch,), without replacement."""
        stream = random_stream(self.loader.seed, "recall", step)
        return torch.randperm(self.reservoir.filled, generator=stream)[: self.loader.batch]

    def _lump_views(self, step: int, slots: Tensor, share: BatchSlice) -> Views:
        """LUMP's views: the image cropped and flipped, the second view as stored; the anchor of the plan."""
        loader, images = self.loader, self.reservoir.images[slots]
        plan = replace(loader.plan, first=PLANS["ucl-replay"].first, second="first")
        original: Anchor | None = "original" if loader.anchor == "original" else None
        stream = random_stream(loader.seed, "recall-views", step)
        views = make_views(images, plan, stream, anchor=original, size=loader.size, share=share)
        anchor = views.anchor
        if loader.anchor == "augmented":
            stream = random_stream(loader.seed, "recall-anchor", step)
            own = replace(loader.plan, second="first")
            anchor = make_views(images, own, stream, anchor=None, size=loader.size, share=share).first
        return loader.to_layout(Views(views.first, self.reservoir.views[slots], anchor))

    def _plan_views(self, step: int, slots: Tensor, share: BatchSlice) -> Views:
        """Views of the run's own plan."""
        loader, stream = self.loader, random_stream(self.loader.seed, "recall-views", step)
        images = self.reservoir.images[slots]
        return loader.to_layout(
            make_views(images, loader.plan, stream, anchor=loader.anchor, size=loader.size, share=share)
        )

    def add(self, step: int, batches: Sequence[MicroBatch], images: Images) -> None:
        """Offer the images of a step and their second views to the buffer; only those that it takes are loaded.

        All processes know which these are, so either all exchange them or none does.
        """
        slots = self.reservoir.slots(step * self.loader.batch, self.loader.batch)
        rows = surviving_rows(slots)
        items = [self._select(number, batch, images, rows) for number, batch in enumerate(batches)] if len(rows) else []
        if len(rows) and distributed.world_size() > 1:
            items = distributed.gather_objects([tuple(value.cpu() for value in item) for item in items])
        self.reservoir.put(slots, *self._in_order(items))

    def _select(self, number: int, batch: MicroBatch, images: Images, rows: Tensor) -> tuple[Tensor, ...]:
        """Those of the batch's `rows` that are in a micro-batch: their numbers, images and second views."""
        first, size = self.loader.share(number).first, self.loader.size
        own = rows[(rows >= first) & (rows < first + len(batch.rows))]
        local = own - first
        selected = torch.empty(0, 3, size, size, dtype=torch.uint8)
        if len(own):
            selected = resize_squares(images.fetch(batch.rows[local]).images, size)
        return own, selected, batch.views.second[local.to(batch.views.second.device)]

    def _in_order(self, items: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, Tensor]:
        """The images and views of all micro-batches in the batch's order."""
        if not items:
            return self.reservoir.images[:0], self.reservoir.views[:0]
        rows, images, views = (torch.cat(values) for values in zip(*items, strict=True))
        order = rows.argsort()
        return images[order], views[order.to(views.device)]

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores."""
        return self.reservoir.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Load a stored state."""
        self.reservoir.restore(state)


def mixup_weight(seed: int, step: int, alpha: float) -> float:
    """λ ~ Beta(α, α), one for each step: how much of a mixed image is the new one."""
    stream = random_stream(seed, "lambda", step)
    legacy = np.random.RandomState(stream.initial_seed())  # the generator whose numbers no version of numpy may change
    return float(legacy.beta(alpha, alpha))


def _join(new: Views, old: Views, join: Callable[[Tensor, Tensor], Tensor]) -> Views:
    """Join new and replayed views, view by view."""
    anchor = None if new.anchor is None or old.anchor is None else join(new.anchor, old.anchor)
    return Views(join(new.first, old.first), join(new.second, old.second), anchor)


class Reservoir:
    """Reservoir sampling: after n items, each of them is stored with probability min(1, capacity/n).

    An item is an image, uint8 (3, s, s), and one view of it, float (3, s, s). The slot of item n is a pure function of
    (seed, n), whatever the batch size.
    """

    def __init__(
        self,
        capacity: int,
        seed: int,
        size: int,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.capacity = capacity
        self.count = 0
        self.images = torch.zeros(capacity, 3, size, size, dtype=torch.uint8, device=device)
        self.views = torch.zeros(capacity, 3, size, size, dtype=dtype, device=device)
        self._key = int.from_bytes(blake2b(repr((seed, "reservoir")).encode(), digest_size=16).digest(), "little")

    @property
    def filled(self) -> int:
        """The number of used slots, which are the first ones."""
        return min(self.count, self.capacity)

    def slots(self, first: int, n: int) -> Tensor:
        """The slots of the items `first`, …, `first` + n − 1, counted from 0 over the whole run; −1 for none.

        Item i takes slot i while there is room; then slot j, drawn evenly from 0, …, i, if there is such a slot. The
        number behind j is word i of one counter-based sequence (Philox), whose 64 bits leave j even to within 2⁻³⁰ for
        as many items as a run can see.
        """
        items = np.arange(first, first + n, dtype=np.uint64)
        words = np.random.Philox(key=self._key).advance(first // 4).random_raw(first % 4 + n)[first % 4 :]
        slots = np.where(items < self.capacity, items, words % (items + np.uint64(1)))
        return torch.from_numpy(np.where(slots < self.capacity, slots, -1).astype(np.int64))

    def put(self, slots: Tensor, images: Tensor, views: Tensor) -> None:
        """Store the next n items: their slots (n), and images and views of their `surviving_rows`."""
        here = slots[surviving_rows(slots)].to(self.images.device)
        self.images[here] = images.to(self.images.device)
        self.views[here] = views.to(self.views)
        self.count += len(slots)

    def state(self) -> dict[str, Any]:
        """Its content, on the CPU; with capacity and seed, all that the next items depend on."""
        used = slice(self.filled)
        return {"count": self.count, "images": self.images[used].cpu().clone(), "views": self.views[used].cpu().clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a stored state."""
        count, images, views = int(state["count"]), state["images"], state["views"]
        room = self.images[: min(count, self.capacity)]
        if images.shape != room.shape or views.shape != room.shape:
            raise UserError(
                f"the checkpoint's buffer holds {tuple(images.shape)} after {count} images, but this run's would hold "
                f"{tuple(room.shape)}. Use the --buffer and --image-size of the start of the run."
            )
        self.count = count
        self.images[: len(images)] = images.to(self.images.device)
        self.views[: len(views)] = views.to(self.views)


def surviving_rows(slots: Tensor) -> Tensor:
    """Which of n items, stored one after another, remain: of two with the same slot, the later.

    slots: int64 (n), −1 for none → their rows, ascending.
    """
    rows = (slots >= 0).nonzero().flatten()
    _, last = np.unique(slots[rows].numpy()[::-1], return_index=True)  # the first from behind
    return rows[len(rows) - 1 - torch.from_numpy(last)].sort().values
