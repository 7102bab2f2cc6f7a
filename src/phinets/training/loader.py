"""The views of each step: which images, in which order, seen how."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from phinets.config.errors import CommonError
from phinets.config.methods import Anchor
from phinets.config.views import ViewPlan
from phinets.data import BadImage, Files, Images, Order
from phinets.views import Frames, Share, Views, make_views, random_stream

T = TypeVar("T")


class MicroBatch(NamedTuple):
    """What a process computes at once: a batch, or a share of one."""

    views: Views
    rows: Tensor
    """Which images they are of."""
    bad: tuple[BadImage, ...]
    """Images that were asked for and can't be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLoader:
    """The batch of every step as a pure function of (seed, step): whoever resumes at a step sees what would have come.

    A batch is cut into `parts`, computed one after another, and each part is shared out equally among `ranks`
    processes. Who sees an image changes nothing about how it is seen. Views are made on the device that learns.
    """

    images: Images
    plan: ViewPlan
    anchor: Anchor | None
    batch: int
    seed: int
    size: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    channels_last: bool = True
    parts: int = 1
    rank: int = 0
    ranks: int = 1
    first_step: int = 0
    """The step of the run at which it begins, where others came before it."""
    first_epoch: int = 0
    """The epoch of the run at which it begins."""

    def __post_init__(self) -> None:
        if self.batch % (self.parts * self.ranks):
            raise CommonError(
                f"a batch of {self.batch} can't be shared out equally: {self.ranks} processes × {self.parts} parts "
                f"(--accumulate). Use a --batch that {self.parts * self.ranks} divides, or other numbers of them."
            )

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one pass; what is left over waits for the next epoch's order."""
        return len(self.images) // self.batch

    def order(self, epoch: int) -> Order:
        """The order of the images in an epoch of the run."""
        return self.images.order(random_stream(self.seed, "order", epoch))

    def epoch_of(self, step: int) -> int:
        """The epoch of the run that a step belongs to."""
        return self.first_epoch + (step - self.first_step) // self.steps_per_epoch

    def place(self, number: int) -> Share:
        """Which rows of a batch this process's share of its part `number` is."""
        n = self.batch // (self.parts * self.ranks)
        return Share((number * self.ranks + self.rank) * n, self.batch)

    def part(self, step: int, number: int, order: Order) -> MicroBatch:
        """This process's share of one part of a step, given the order of its epoch."""
        share = self.place(number)
        n = self.batch // (self.parts * self.ranks)
        begin = (step - self.first_step) % self.steps_per_epoch * self.batch + share.first
        stream = random_stream(self.seed, "views", step)
        views, rows, bad = self._seen(torch.as_tensor(order[begin : begin + n]), stream, share)
        return MicroBatch(self.laid_out(views), rows, bad)

    def laid_out(self, views: Views) -> Views:
        """The views as the learner takes them, in precision and memory."""
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return views.map(lambda view: view.to(self.dtype).contiguous(memory_format=layout))

    def _seen(self, rows: Tensor, stream: torch.Generator, share: Share) -> MicroBatch:
        """The views of these images; pictures in files, which differ in size, are cut while they are decoded."""
        if isinstance(self.images, Files):
            frames = Frames(self.plan, stream, anchor=self.anchor, size=self.size, share=share)
            taken = self.images.through(rows, frames.windows, self.size)
            return MicroBatch(frames.views(taken.images.to(self.device, non_blocking=True)), taken.rows, taken.bad)
        taken = self.images.take(rows)
        images = taken.images.to(self.device, non_blocking=True)
        views = make_views(images, self.plan, stream, anchor=self.anchor, size=self.size, share=share)
        return MicroBatch(views, taken.rows, taken.bad)

    def stream(self, first: int, last: int) -> Iterator[MicroBatch]:
        """The parts of every step from `first` up to, not with, `last`, in turn, one ahead."""
        return ahead(partial(self.part, *job) for job in self._jobs(first, last))

    def _jobs(self, first: int, last: int) -> Iterator[tuple[int, int, Order]]:
        epoch = -1
        order: Order = range(0)
        for step in range(first, last):
            if self.epoch_of(step) != epoch:
                epoch = self.epoch_of(step)
                order = self.order(epoch)
            yield from ((step, number, order) for number in range(self.parts))


class Clocked(Iterator[T]):
    """An iterator that knows how long it was waited for."""

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self.waited = 0.0

    def __next__(self) -> T:
        asked = perf_counter()
        item = next(self._items)
        self.waited += perf_counter() - asked
        return item


def ahead(jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of the jobs in turn, the next one being worked on by a thread while the last one is used.

    That thread uses one core. Were it to open a team of OpenMP threads of its own, OpenMP would find more threads than
    cores and let all of them sleep at every turn, which makes a step on the CPU a third slower.
    """
    alone = partial(torch.set_num_threads, 1)  # in torch, a setting of the thread that calls it
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="views", initializer=alone) as thread:
        made = (thread.submit(job) for job in jobs)
        current = next(made, None)
        while current is not None:
            following = next(made, None)
            yield current.result()
            current = following
