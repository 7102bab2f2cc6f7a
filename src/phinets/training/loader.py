"""The batches of views of each step: which images, in which order, with which augmentation."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from phinets.config.errors import CommonError
from phinets.config.methods import Anchor
from phinets.config.views import ViewPlan
from phinets.data import BadImage, Files, Images, Order
from phinets.views import BatchSlice, CropPlan, Views, make_views, random_stream

T = TypeVar("T")


class MicroBatch(NamedTuple):
    """What a process computes at once: a batch, or a share of one."""

    views: Views
    rows: Tensor
    """The images' row numbers."""
    bad: tuple[BadImage, ...]
    """Images of the batch that can't be used."""


@dataclass(frozen=True, kw_only=True)
class ViewLoader:
    """The batch of every step as a pure function of (seed, step), so that a resumed run sees the same batches.

    A batch is divided into `micro_batches`, and each of them equally among `ranks` processes; neither changes the
    views of an image. Views are made on the training device.
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
    micro_batches: int = 1
    rank: int = 0
    ranks: int = 1
    first_step: int = 0
    """The step of the run at which it begins, where other tasks came before."""
    first_epoch: int = 0
    """The epoch of the run at which it begins."""

    def __post_init__(self) -> None:
        if self.batch % (self.micro_batches * self.ranks):
            raise CommonError(
                f"a batch of {self.batch} can't be divided equally among {self.ranks} processes × {self.micro_batches} "
                f"micro-batches (--accumulate). Use a --batch that {self.micro_batches * self.ranks} divides."
            )

    @cached_property
    def steps_per_epoch(self) -> int:
        """Whole batches in one epoch; the incomplete last batch is dropped."""
        return len(self.images) // self.batch

    def order(self, epoch: int) -> Order:
        """The order of the images in an epoch of the run."""
        return self.images.order(random_stream(self.seed, "order", epoch))

    def epoch_of(self, step: int) -> int:
        """The epoch of the run that a step belongs to."""
        return self.first_epoch + (step - self.first_step) // self.steps_per_epoch

    def share(self, number: int) -> BatchSlice:
        """Which rows of a batch this process has in micro-batch `number`."""
        n = self.batch // (self.micro_batches * self.ranks)
        return BatchSlice((number * self.ranks + self.rank) * n, self.batch)

    def micro_batch(self, step: int, number: int, order: Order) -> MicroBatch:
        """This process's share of one micro-batch of a step, given the order of its epoch."""
        share = self.share(number)
        n = self.batch // (self.micro_batches * self.ranks)
        begin = (step - self.first_step) % self.steps_per_epoch * self.batch + share.first
        stream = random_stream(self.seed, "views", step)
        views, rows, bad = self._make_views(torch.as_tensor(order[begin : begin + n]), stream, share)
        return MicroBatch(self.to_layout(views), rows, bad)

    def to_layout(self, views: Views) -> Views:
        """The views in the learner's precision and memory format."""
        layout = torch.channels_last if self.channels_last else torch.contiguous_format
        return views.map(lambda view: view.to(self.dtype).contiguous(memory_format=layout))

    def _make_views(self, rows: Tensor, stream: torch.Generator, share: BatchSlice) -> MicroBatch:
        """The views of these images; image files, which differ in size, are cropped while they are decoded."""
        if isinstance(self.images, Files):
            frames = CropPlan(self.plan, stream, anchor=self.anchor, size=self.size, share=share)
            taken = self.images.fetch_crops(rows, frames.windows, self.size)
            return MicroBatch(frames.views(taken.images.to(self.device, non_blocking=True)), taken.rows, taken.bad)
        taken = self.images.fetch(rows)
        images = taken.images.to(self.device, non_blocking=True)
        views = make_views(images, self.plan, stream, anchor=self.anchor, size=self.size, share=share)
        return MicroBatch(views, taken.rows, taken.bad)

    def batches(self, first: int, last: int) -> Iterator[MicroBatch]:
        """The micro-batches of the steps from `first` to `last` − 1, one prefetched."""
        return prefetch(partial(self.micro_batch, *job) for job in self._jobs(first, last))

    def _jobs(self, first: int, last: int) -> Iterator[tuple[int, int, Order]]:
        epoch = -1
        order: Order = range(0)
        for step in range(first, last):
            if self.epoch_of(step) != epoch:
                epoch = self.epoch_of(step)
                order = self.order(epoch)
            yield from ((step, number, order) for number in range(self.micro_batches))


def prefetch(jobs: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of the jobs in order; a thread computes the next one while the last one is used.

    The thread uses one core. With an OpenMP team of its own there would be more threads than cores, and OpenMP would
    put all of them to sleep between uses, which makes a step on the CPU a third slower.
    """
    single_threaded = partial(torch.set_num_threads, 1)  # in torch, a setting of the thread that calls it
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="views", initializer=single_threaded) as thread:
        futures = (thread.submit(job) for job in jobs)
        current = next(futures, None)
        while current is not None:
            following = next(futures, None)
            yield current.result()
            current = following
