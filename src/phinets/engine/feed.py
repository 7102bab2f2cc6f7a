"""The views of each step: which images, in which order, seen how."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TypeVar

import torch
from torch import Tensor

from phinets.config.methods import Anchor
from phinets.config.views import ViewPlan
from phinets.data import Images
from phinets.views import Views, make_views, random_stream

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """The batch of every step as a pure function of (seed, step): whoever resumes at a step sees what would have come.

    Views are made on the device that learns.
    """

    images: Images
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
        taken = self.images.take(order[place : place + self.batch])
        images = taken.images.to(self.device, non_blocking=True)
        stream = random_stream(self.seed, "views", step)
        views = make_views(images, self.plan, stream, anchor=self.anchor, size=self.size)
        if not self.channels_last:
            return views
        return views.map(lambda view: view.contiguous(memory_format=torch.channels_last))

    def steps(self, first: int, last: int) -> Iterator[tuple[int, Views, float]]:
        """(step, its views, seconds waited for them) for every step from `first` up to, not with, `last`."""
        coming = self._coming(first, last)
        for step in range(first, last):
            asked = perf_counter()
            views = next(coming)
            yield step, views, perf_counter() - asked

    def _coming(self, first: int, last: int) -> Iterator[Views]:
        """The views in turn; for an accelerator, one step ahead.

        A CPU that learns has no core to spare: a second thread would only take turns with the first.
        """
        jobs = (partial(self.views, step, order) for step, order in self._orders(first, last))
        if self.device.type == "cpu":
            yield from (job() for job in jobs)
            return
        yield from ahead(jobs)

    def _orders(self, first: int, last: int) -> Iterator[tuple[int, Tensor]]:
        epoch, order = -1, torch.empty(0)
        for step in range(first, last):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                order = self.order(epoch)
            yield step, order


def ahead(jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of the jobs in turn, the next one being worked on by a thread while the last one is used."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="views") as thread:
        made = (thread.submit(job) for job in jobs)
        current = next(made, None)
        while current is not None:
            following = next(made, None)
            yield current.result()
            current = following
