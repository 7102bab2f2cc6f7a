"""Frozen encoder + labeled images → features."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from phinets.backbones import frozen, require_features
from phinets.config.errors import UserError
from phinets.config.views import ViewPlan
from phinets.data import BadImages, ImageSet, batches
from phinets.views import prepare

BATCH_SIZE = 512
"""Images per forward pass."""

Rows = Tensor | NDArray[np.floating]
"""Features (n, d): a tensor, or an array that may be a memory map larger than the memory."""


class FeatureSet(NamedTuple):
    """Features (n, d), in memory or memory-mapped, and labels (n,)."""

    features: Rows
    labels: Tensor

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Features and labels in memory."""
        features = self.features
        if not isinstance(features, Tensor):
            features = torch.from_numpy(np.array(features, np.float32))
        return features, self.labels


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureExtractor:
    """How encoders see images: not augmented, all of them, a batch at a time."""

    plan: ViewPlan
    size: int
    device: torch.device
    dtype: torch.dtype = torch.float32
    bad_images: BadImages

    def extract(self, images: ImageSet, encoder: nn.Module | None) -> FeatureSet:
        """Features and labels of labeled images; raw pixels where there is no encoder."""
        assert images.labels is not None
        rows: list[Tensor] = []
        chunks = self._chunks(images, rows)
        if encoder is None:
            values = pixels(chunks, self._prepare)
        else:
            values = features(encoder, chunks, self._prepare, device=self.device)
        return FeatureSet(values, images.labels[torch.cat(rows)])

    def _chunks(self, images: ImageSet, rows: list[Tensor]) -> Iterator[Tensor]:
        """The images a batch at a time; appends their row numbers to `rows` and records bad images."""
        for batch in batches(images.images, BATCH_SIZE):
            rows.append(batch.rows)
            self.bad_images.add(batch.bad)
            yield batch.images

    def _prepare(self, images: Tensor) -> Tensor:
        return prepare(images, self.plan, self.size).to(self.dtype)


def feature_chunks(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Iterator[Tensor]:
    """The features of each chunk of images, in turn: uint8 (n, 3, s, s) → float32 (n, d) on the CPU.

    `prepare` turns a uint8 batch into the encoder's input.
    """
    for chunk in chunks:
        with frozen(encoder):
            output = require_features(encoder(prepare(chunk.to(device))), len(chunk))
        yield output.float().cpu()


def features(
    encoder: nn.Module, chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor], *, device: torch.device
) -> Tensor:
    """The features of all images: chunks of uint8 (n, 3, s, s) → float32 (Σn, d) on the CPU."""
    return torch.cat(list(feature_chunks(encoder, chunks, prepare, device=device)))


def pixels(chunks: Iterable[Tensor], prepare: Callable[[Tensor], Tensor]) -> Tensor:
    """Raw pixels as features, a baseline for encoders."""
    return torch.cat([prepare(chunk).flatten(1) for chunk in chunks])


def require_finite_features(features: Tensor, name: str, first: int = 0) -> None:
    """Refuse NaN and infinity; `name` says whose features these are and `first` is the number of their first row."""
    if bool(torch.isfinite(features).all()):
        return
    bad = first + int((~torch.isfinite(features).all(1)).nonzero()[0])
    raise UserError(
        f"the features of the {name} are not all finite numbers (row {bad} is the first bad one). The encoder has "
        "diverged or its weights are damaged: use an earlier checkpoint."
    )


def split_protocol(bank: int, queries: int, every: bool = True) -> str:
    """The numbers of train and test images, in words."""
    return f"bank of {bank} training images, {'all' if every else 'the first'} {queries} test images"


def why_not_scored(train_labels: Tensor | None, test_labels: Tensor | None) -> str | None:
    """Why no score with labels is possible, in words; None where one is."""
    for labels, name in ((train_labels, "training"), (test_labels, "test")):
        if labels is None or not len(labels):
            return f"the {name} images have no labels"
    assert train_labels is not None
    return "the training images are all of one class" if len(train_labels.unique()) < 2 else None


def require_classes(train_labels: Tensor | None, test_labels: Tensor | None, data: str) -> None:
    """Refuse data without labels, or with one class only."""
    why = why_not_scored(train_labels, test_labels)
    if why is not None:
        raise UserError(
            f"{why} in '{data}', but this evaluation needs at least two classes. Put pictures into one folder per "
            "class, or evaluate on labeled data: --data NAME."
        )
