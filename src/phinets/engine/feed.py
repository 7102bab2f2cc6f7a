"""The views of each step, made ahead of time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from phinets.config.methods import Anchor
from phinets.config.views import ViewPlan
from phinets.views import Views, make_views, random_stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """The batch of every step as a pure function of (seed, step): whoever resumes at a step sees what would have come.

    One thread makes the next step's views while this step learns; on a GPU they are made on the GPU.
    """

    images: Tensor
    plan: ViewPlan
    anchor: Anchor | None
    batch: int
    seed: int
    size: int
    device: torch.device
    channels_last: bool = True

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one pass; what is left over waits for the next epoch's order."""
        return len(self.images) // self.batch

    def order(self, epoch: int) -> Tensor:
        """The epoch's order of the images."""
        return torch.randperm(len(self.images), generator=random_stream(self.seed, "order", epoch))

    def views(self, step: int, order: Tensor) -> Views:
        """The views of a step, given the order of its epoch."""
        place = step % self.steps_per_epoch * self.batch
        images = self.images[order[place : place + self.batch]].to(self.device, non_blocking=True)
        stream = random_stream(self.seed, "views", step)
        views = make_views(images, self.plan, stream, anchor=self.anchor, size=self.size)
        if not self.channels_last:
            return views
        return views.map(lambda view: view.contiguous(memory_format=torch.channels_last))

    def steps(self, first: int, last: int) -> Iterator[tuple[int, Views, float]]:
        """(step, its views, seconds waited for them) for every step from `first` up to, not with, `last`."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="views") as ahead:
            made = (ahead.submit(self.views, step, order) for step, order in self._orders(first, last))
            following = next(made, None)
            for step in range(first, last):
                assert following is not None
                current, asked = following, perf_counter()
                views = current.result()
                waited = perf_counter() - asked
                following = next(made, None)
                yield step, views, waited

    def _orders(self, first: int, last: int) -> Iterator[tuple[int, Tensor]]:
        epoch, order = -1, torch.empty(0)
        for step in range(first, last):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                order = self.order(epoch)
            yield step, order
