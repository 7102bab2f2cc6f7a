"""A fixed number of images as a uniform sample of all that were seen (Vitter 1985, algorithm R)."""

from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phinets.config.errors import UserError


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
