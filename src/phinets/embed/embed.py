"""From a collection of images to their features in one file, going on where it was cut."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from phinets.config.errors import StoppedError, UserError
from phinets.config.exam import EncoderOptions
from phinets.config.run import DataOptions
from phinets.data import BadImages, Split, Taken, load
from phinets.data.folder import only_picture
from phinets.embed.collection import Collection, collection
from phinets.embed.shards import Found, Shards, joined, opened_shards, shards_beside
from phinets.embed.table import Table
from phinets.evaluation.encoders import Encoder, data_of, encoder_of, settled_sight, subject
from phinets.evaluation.features import require_numbers
from phinets.runtime.signals import Signals
from phinets.training.loader import ahead
from phinets.training.run_folder import locked

MicroBatch = Literal["all", "train", "test", "bank"]
Watch = Callable[[int, int], None]
"""Is told how many images are done, and how many there are."""

SECONDS = 15.0
BYTES = 2**26
"""A shard is written after so long, or when so much has come together."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Which encoder is shown which images."""

    place: Path
    encoder: Encoder
    collection: Collection
    data: str
    part: MicroBatch
    max_bad_images: int

    @property
    def manifest(self) -> dict[str, Any]:
        """What decides the features: the weights, the images, and how they are shown."""
        encoder = self.encoder
        return {
            "format": 1,
            "weights": checksum(encoder.backbone),
            "backbone": encoder.backbone_name,
            "data": self.data,
            "part": self.part,
            "images": self.collection.fingerprint,
            "image_size": encoder.image_size,
            "mean": encoder.plan.mean,
            "std": encoder.plan.std,
            "batch": encoder.at_once,
            "device": encoder.device.type,
        }

    def about(self, rows: int, bad: int) -> dict[str, Any]:
        """Whose features of which images, to stand in the file."""
        return {
            "target": str(self.place),
            "called": self.encoder.subject_name,
            "encoder": self.encoder.clock,
            **{k: v for k, v in self.manifest.items() if k not in ("format", "images", "batch", "device")},
            "images": rows,
            "bad_images": bad,
            "features": self.encoder.num_features,
            "classes": len(self.collection.classes),
        }


def work(place: Path, sight: EncoderOptions, part: MicroBatch = "all", batch: int | None = None) -> Work:
    """The encoder at a place with the images that it is shown: what `sight` leaves open is as in its run."""
    sight = settled_sight(sight)
    who = subject(place, sight.encoder, sight.backbone)
    name, source = data_of(sight, who)
    encoder = encoder_of(who, sight)
    encoder.at_once = batch or encoder.at_once
    return Work(
        place=place,
        encoder=encoder,
        collection=collection(_split(name, source, part), part),
        data=name,
        part=part,
        max_bad_images=sight.max_bad_images,
    )


def _split(name: str, source: DataOptions, part: MicroBatch) -> Split:
    """The data; who wants all of a folder may have one of a single picture, which can't be parted."""
    kind, _, place = name.partition(":")
    alone = only_picture(place, source) if kind == "folder" and part == "all" else None
    return load(name, source) if alone is None else alone


@contextmanager
def embedded(work: Work, out: Path, anew: bool, watch: Watch) -> Iterator[Table]:
    """The features of all images, in shards beside `out`; who leaves this in peace has used them, and they go.

    Whoever is stopped on the way, by a signal or the power, finds the shards again. `anew` lets those of other work go.
    """
    folder = shards_beside(out)
    with locked(folder), Signals().heeded() as signals:
        shards = opened_shards(folder, work.manifest, anew)
        try:
            bad_images = _filled(work, shards, signals, watch)
            yield _table(work, shards, bad_images)
            shards.discard()
        except StoppedError as error:
            raise StoppedError(f"{error}; the same command goes on from there.", error.exit_code) from None
        finally:
            if not shards.parts and folder.exists():
                shards.discard()


def _table(work: Work, shards: Shards, bad_images: BadImages) -> Table:
    rows = sum(map(len, shards.rows()))
    if not rows:
        shards.discard()
        first, why = next(iter(bad_images.known.items()))
        raise UserError(f"none of the {len(work.collection)} images can be used; the first, '{first}': {why}.")
    about = work.about(rows, len(bad_images.known))
    width = work.encoder.num_features
    return Table(shards=shards, collection=work.collection, rows=rows, width=width, about=about)


def _filled(work: Work, shards: Shards, signals: Signals, watch: Watch) -> BadImages:
    """Embed the batches that are not there yet; the bad images of all."""
    batches, bad_images = work.collection.batches(work.encoder.at_once), BadImages(work.max_bad_images)
    for bad in shards.bad():
        bad_images.add(bad)
    _tell(bad_images)
    seen = sum(batch.stop - batch.first for batch in batches[: shards.done])
    watch(seen, len(work.collection))
    left = batches[shards.done :]
    stream = ahead(partial(work.collection.take, batch) for batch in left)
    with signals.deferred(), Pending(shards) as pending:
        for batch, taken in zip(left, stream, strict=True):
            pending.add(_found(work.encoder, taken))
            bad_images.add(taken.bad)
            _tell(bad_images)
            seen += batch.stop - batch.first
            watch(seen, len(work.collection))
            if signals.received is not None:
                by = signals.received
                raise StoppedError(f"stopped by {by.name} after {seen} of {len(work.collection)} images", 128 + by)
    return bad_images


def _found(encoder: Encoder, taken: Taken) -> Found:
    features = encoder(taken.images)
    require_numbers(features, "images", int(taken.rows[0]) if len(taken.rows) else 0)
    return Found(features.numpy(), taken.rows.numpy().astype(np.int64), taken.bad)


def _tell(bad_images: BadImages) -> None:
    """A note for each image that can't be used; no further where there are too many."""
    for where, why in bad_images.drain():
        warnings.warn(f"'{where}' can't be used and is skipped: {why}.", stacklevel=4)
    try:
        bad_images.require_few()
    except UserError as error:
        raise UserError(f"{error} With --overwrite it begins anew, as it must with images that were mended.") from error


class Pending:
    """Batches that wait to become a shard; whatever ends the wait, they are kept."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards
        self.found: list[Found] = []
        self.since = monotonic()

    def __enter__(self) -> "Pending":
        return self

    def __exit__(self, *error: object) -> None:
        self.keep()

    def add(self, found: Found) -> None:
        """One more batch."""
        self.found.append(found)
        if monotonic() - self.since > SECONDS or sum(one.features.nbytes for one in self.found) > BYTES:
            self.keep()

    def keep(self) -> None:
        """Write them as one shard."""
        if self.found:
            self.shards.add(joined(self.found), self.shards.done + len(self.found))
        self.found, self.since = [], monotonic()


def checksum(encoder: nn.Module) -> str:
    """A check sum of an encoder's weights and statistics."""
    found = sha256()
    for name, value in sorted(encoder.state_dict().items()):
        found.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        found.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()[:16]
