"""Views of the images of any torch Dataset, for a training loop of one's own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from phinets.config.errors import UserError, look_up
from phinets.config.methods import Anchor
from phinets.config.views import PLANS, ViewPlan
from phinets.views.make import Views, make_views
from phinets.views.parameters import random_stream


@dataclass(kw_only=True)
class ViewBatches:
    """Batches of views; each pass is the next epoch, with its own order and its own views."""

    dataset: Dataset[Any]
    plan: ViewPlan
    batch_size: int
    size: int | None
    anchor: Anchor | None
    seed: int
    num_workers: int
    epoch: int = 0
    """The next epoch; set it to resume."""

    def __len__(self) -> int:
        return len(self.dataset) // self.batch_size  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Views]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        order = None
        if not isinstance(self.dataset, IterableDataset):
            n = len(self.dataset)  # type: ignore[arg-type]
            order = torch.randperm(n, generator=random_stream(self.seed, "order", epoch)).tolist()
        loader: DataLoader[Any] = DataLoader(
            self.dataset, self.batch_size, sampler=order, collate_fn=_decode, drop_last=True,
            num_workers=self.num_workers, generator=random_stream(self.seed, "workers", epoch),
        )  # fmt: skip
        for step, images in enumerate(loader):
            yield self._views(images, random_stream(self.seed, "views", epoch, step))

    def _views(self, images: list[Any], generator: torch.Generator) -> Views:
        tensors = [_channels_first(image) for image in images]
        same = len({image.shape for image in tensors}) == 1
        if not same and self.size is None:
            raise UserError("the images differ in size. Set the side of the views, e.g. size=64.")
        batches = [torch.stack(tensors)] if same else [image[None] for image in tensors]
        views = [make_views(batch, self.plan, generator, anchor=self.anchor, size=self.size) for batch in batches]
        anchors = [view.anchor for view in views if view.anchor is not None]
        first, second = torch.cat([view.first for view in views]), torch.cat([view.second for view in views])
        return Views(first, second, torch.cat(anchors) if anchors else None)


def _decode(samples: Sequence[Any]) -> list[Any]:
    """The images of samples, without their labels; runs in the worker processes."""
    images = [sample[0] if isinstance(sample, tuple | list) else sample for sample in samples]
    return [np.array(image.convert("RGB")) if isinstance(image, Image.Image) else image for image in images]


def _channels_first(image: Any) -> Tensor:
    tensor = torch.from_numpy(image) if isinstance(image, np.ndarray) else image
    if not isinstance(tensor, Tensor) or tensor.ndim != 3:
        shape = f" {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else ""
        raise UserError(
            f"the dataset gives {type(image).__name__}{shape}, but must give images, or tuples with the image first: "
            "PIL images, or uint8 (3, height, width) or (height, width, 3)."
        )
    return tensor.permute(2, 0, 1) if tensor.shape[2] == 3 != tensor.shape[0] else tensor


def data_loader(
    dataset: Dataset[Any],
    plan: ViewPlan | str = "simsiam-cifar",
    *,
    batch_size: int = 256,
    size: int | None = None,
    anchor: Anchor | None = "original",
    seed: int = 0,
    num_workers: int = 0,
) -> ViewBatches:
    """Shuffled batches of views of a dataset, the same for the same seed; the incomplete last batch is dropped.

    Args:
        dataset: a torch Dataset of images or of tuples with the image first: PIL, or uint8, channels first or last.
        plan: the augmentations, e.g. "simsiam-cifar"; `phinets list views` shows all.
        batch_size: images per batch.
        size: side of the views; needed where the images differ in size.
        anchor: the third view, as in `make_views`; `learner.anchor` is what a learner needs.
        seed: decides the order and the views of every epoch.
        num_workers: processes that read the dataset; they do not change the views.

    Returns:
        An iterable of `Views`; each `for` loop over it is the next epoch.

    Raises:
        UserError: The plan is not known, the dataset is smaller than a batch, or gives no images.
    """
    plan = look_up("view plan", plan, PLANS) if isinstance(plan, str) else plan
    n = None if isinstance(dataset, IterableDataset) else len(dataset)  # type: ignore[arg-type]
    if batch_size < 1 or (n is not None and n < batch_size):
        raise UserError(f"batch_size is {batch_size}, but must be at least 1 and at most {n}, the dataset's size.")
    return ViewBatches(
        dataset=dataset, plan=plan, batch_size=batch_size, size=size, anchor=anchor, seed=seed, num_workers=num_workers
    )
