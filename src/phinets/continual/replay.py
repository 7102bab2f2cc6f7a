"""Learning again from what was seen: LUMP's mixup with a reservoir (Madaan et al. 2022), and plain replay."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phinets.config.continual import Remembering
from phinets.config.errors import UserError
from phinets.config.methods import Anchor
from phinets.config.views import PLANS
from phinets.data import Images
from phinets.runtime import distributed
from phinets.training.loader import MicroBatch, ViewLoader
from phinets.views import Share, Views, make_views, random_stream
from phinets.views.augment import central


class Replay:
    """The memory of a training loop: what each batch leaves behind, and what of it each later batch is shown with.

    The first step fills the buffer with its own batch; from the second on a batch is drawn from it, none twice. All
    that is drawn is a function of (seed, step), and part `number` takes its own rows of it: neither the number of parts
    nor that of processes changes what is seen. Every process holds the whole buffer, on the device that learns.
    """

    def __init__(self, remembering: Remembering, loader: ViewLoader) -> None:
        """`loader` is that of any task: what is asked of it is the same in all."""
        assert remembering.replay != "none"
        assert remembering.buffer >= loader.batch
        self.remembering = remembering
        self.loader = loader
        self.reservoir = Reservoir(
            remembering.buffer, loader.seed, loader.size, device=loader.device, dtype=loader.dtype
        )

    def recalled(self, step: int, number: int, part: MicroBatch) -> Views:
        """The views of part `number` of a step, mixed with those of remembered images or followed by them."""
        if not self.reservoir.filled:
            return part.views
        share = self.loader.place(number)
        slots = self.drawn(step)[share.first : share.first + len(part.rows)].to(self.loader.device)
        if self.remembering.replay == "mixup":
            ours = share_of_the_new(self.loader.seed, step, self.remembering.mixup_alpha)
            return _joined(part.views, self._once_more(step, slots, share), lambda new, old: torch.lerp(old, new, ours))
        return _joined(part.views, self._afresh(step, slots, share), lambda new, old: torch.cat([new, old]))

    def drawn(self, step: int) -> Tensor:
        """The slots that a step's batch is shown with: (batch,), none twice."""
        stream = random_stream(self.loader.seed, "recall", step)
        return torch.randperm(self.reservoir.filled, generator=stream)[: self.loader.batch]

    def _once_more(self, step: int, slots: Tensor, share: Share) -> Views:
        """As LUMP shows them: the image cropped and flipped, the second view as it was; the anchor as the plan says."""
        loader, images = self.loader, self.reservoir.images[slots]
        plan = replace(loader.plan, first=PLANS["ucl-replay"].first, second="first")
        original: Anchor | None = "original" if loader.anchor == "original" else None
        stream = random_stream(loader.seed, "recall-views", step)
        seen = make_views(images, plan, stream, anchor=original, size=loader.size, share=share)
        anchor = seen.anchor
        if loader.anchor == "augmented":
            stream = random_stream(loader.seed, "recall-anchor", step)
            own = replace(loader.plan, second="first")
            anchor = make_views(images, own, stream, anchor=None, size=loader.size, share=share).first
        return loader.laid_out(Views(seen.first, self.reservoir.views[slots], anchor))

    def _afresh(self, step: int, slots: Tensor, share: Share) -> Views:
        """As the run's own plan shows any image."""
        loader, stream = self.loader, random_stream(self.loader.seed, "recall-views", step)
        images = self.reservoir.images[slots]
        return loader.laid_out(
            make_views(images, loader.plan, stream, anchor=loader.anchor, size=loader.size, share=share)
        )

    def keep(self, step: int, parts: Sequence[MicroBatch], images: Images) -> None:
        """Offer the images of a step and their second views to the buffer; only those that it takes are fetched.

        Which these are is known to all processes beforehand: either all exchange what they found, or none does.
        """
        slots = self.reservoir.slots(step * self.loader.batch, self.loader.batch)
        rows = staying(slots)
        found = [self._found(number, part, images, rows) for number, part in enumerate(parts)] if len(rows) else []
        if len(rows) and distributed.world_size() > 1:
            found = distributed.gather_objects([tuple(value.cpu() for value in one) for one in found])
        self.reservoir.put(slots, *self._in_turn(found))

    def _found(self, number: int, part: MicroBatch, images: Images, rows: Tensor) -> tuple[Tensor, ...]:
        """Those of the batch's `rows` that this part has: their numbers, images and second views."""
        first, size = self.loader.place(number).first, self.loader.size
        mine = rows[(rows >= first) & (rows < first + len(part.rows))]
        here = mine - first
        taken = torch.empty(0, 3, size, size, dtype=torch.uint8)
        if len(mine):
            taken = brought_to(images.take(part.rows[here]).images, size)
        return mine, taken, part.views.second[here.to(part.views.second.device)]

    def _in_turn(self, found: Sequence[tuple[Tensor, ...]]) -> tuple[Tensor, Tensor]:
        """The images and views of all parts in the batch's order."""
        if not found:
            return self.reservoir.images[:0], self.reservoir.views[:0]
        rows, images, views = (torch.cat(values) for values in zip(*found, strict=True))
        order = rows.argsort()
        return images[order], views[order.to(views.device)]

    def state(self) -> dict[str, Any]:
        """What a checkpoint must hold of it."""
        return self.reservoir.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Remember what `state` was taken from."""
        self.reservoir.restore(state)


def share_of_the_new(seed: int, step: int, alpha: float) -> float:
    """λ ~ Beta(α, α), one for each step: how much of a mixed image is the new one."""
    stream = random_stream(seed, "lambda", step)
    legacy = np.random.RandomState(stream.initial_seed())  # the generator whose numbers no version of numpy may change
    return float(legacy.beta(alpha, alpha))


def brought_to(images: Tensor, size: int) -> Tensor:
    """Images uint8 (n, 3, height, width) as an evaluator shows them at another size, in whole levels again."""
    if images.shape[2:] == (size, size):
        return images
    return central(images, size, size).mul_(255).round_().clamp_(0, 255).to(torch.uint8)


def _joined(new: Views, old: Views, join: Callable[[Tensor, Tensor], Tensor]) -> Views:
    """New and remembered views joined, each with its like."""
    anchor = None if new.anchor is None or old.anchor is None else join(new.anchor, old.anchor)
    return Views(join(new.first, old.first), join(new.second, old.second), anchor)


class Reservoir:
    """Slots for images: after n items, each of them is held with chance capacity/n, or surely where all fit.

    An item is an image as it was, uint8 (3, s, s), and one view of it as it was then, float (3, s, s). Which slot item
    n takes is a pure function of (seed, n), whatever the batches in which the items come.
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
        self.seen = 0
        self.images = torch.zeros(capacity, 3, size, size, dtype=torch.uint8, device=device)
        self.views = torch.zeros(capacity, 3, size, size, dtype=dtype, device=device)
        self._key = int.from_bytes(blake2b(repr((seed, "reservoir")).encode(), digest_size=16).digest(), "little")

    @property
    def filled(self) -> int:
        """How many slots hold something: those from 0 on."""
        return min(self.seen, self.capacity)

    def slots(self, first: int, n: int) -> Tensor:
        """The slots of the items `first`, …, `first` + n − 1, counted from 0 over the whole run; −1 for none.

        Item i takes slot i while there is room; then slot j, drawn evenly from 0, …, i, if there is such a slot. The
        number behind j is word i of one counter-based sequence (Philox), whose 64 bits leave j even to within 2⁻³⁰ for
        as many items as a run can see.
        """
        items = np.arange(first, first + n, dtype=np.uint64)
        words = np.random.Philox(key=self._key).advance(first // 4).random_raw(first % 4 + n)[first % 4 :]
        drawn = np.where(items < self.capacity, items, words % (items + np.uint64(1)))
        return torch.from_numpy(np.where(drawn < self.capacity, drawn, -1).astype(np.int64))

    def put(self, slots: Tensor, images: Tensor, views: Tensor) -> None:
        """Take in the next n items in turn: their slots (n), and the images and views of the `staying` among them."""
        here = slots[staying(slots)].to(self.images.device)
        self.images[here] = images.to(self.images.device)
        self.views[here] = views.to(self.views)
        self.seen += len(slots)

    def state(self) -> dict[str, Any]:
        """What it holds, on the CPU: all that the next items depend on, beside capacity and seed."""
        held = slice(self.filled)
        return {"seen": self.seen, "images": self.images[held].cpu().clone(), "views": self.views[held].cpu().clone()}

    def restore(self, state: dict[str, Any]) -> None:
        """Hold what `state` was taken from."""
        seen, images, views = int(state["seen"]), state["images"], state["views"]
        room = self.images[: min(seen, self.capacity)]
        if images.shape != room.shape or views.shape != room.shape:
            raise UserError(
                f"the checkpoint's buffer holds {tuple(images.shape)} after {seen} images, but this run's would hold "
                f"{tuple(room.shape)}. Use the --buffer and --image-size that the run began with."
            )
        self.seen = seen
        self.images[: len(images)] = images.to(self.images.device)
        self.views[: len(views)] = views.to(self.views)


def staying(slots: Tensor) -> Tensor:
    """Which of n items, taken in one after another, are held in the end: of two that take one slot, the later.

    slots: int64 (n), −1 for none → their rows, ascending.
    """
    rows = (slots >= 0).nonzero().flatten()
    _, last = np.unique(slots[rows].numpy()[::-1], return_index=True)  # the first from behind
    return rows[len(rows) - 1 - torch.from_numpy(last)].sort().values
