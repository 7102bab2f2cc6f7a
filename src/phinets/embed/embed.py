"""From a collection of images to their features in one file; an interrupted command resumes."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from phinets.backbones.weights import encoder_checksum
from phinets.config.errors import StoppedError, UserError
from phinets.config.evaluation import EncoderOptions, EvalOptions
from phinets.config.plain import to_plain
from phinets.config.run import DataOptions
from phinets.data import BadImages, DataSplits, ImageBatch, load
from phinets.data.folder import single_image
from phinets.embed.collection import Collection, collect
from phinets.embed.shards import (
    FeatureBatch,
    Shards,
    ShardTable,
    concatenate,
    open_shards,
    shards_folder,
    write_table,
)
from phinets.evaluation.encoders import (
    Encoder,
    LoadedEncoder,
    build_encoder,
    data_options_of,
    load_encoder,
    resolve_options,
)
from phinets.evaluation.features import require_finite_features
from phinets.evaluation.setup import eval_setup
from phinets.runtime.process import Signals
from phinets.training.loader import prefetch
from phinets.training.run_folder import locked

SplitName = Literal["all", "train", "test", "bank"]
OnImages = Callable[[int, int], None]
"""Callback with the number of images done and the number of all images."""

SECONDS = 15.0
BYTES = 2**26
"""A shard is written after this time, or at this size."""


@dataclass(frozen=True, kw_only=True)
class EmbedJob:
    """An encoder and the images to embed."""

    place: Path
    encoder: Encoder
    collection: Collection
    data: str
    split: str
    max_bad_images: int
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further entries for the file."""

    @property
    def manifest(self) -> dict[str, Any]:
        """What decides the features: the weights, the images, and their preprocessing."""
        encoder = self.encoder
        return {
            "format": 2,
            "weights": encoder_checksum(encoder.backbone),
            "backbone": encoder.backbone_name,
            "data": self.data,
            "split": self.split,
            "images": self.collection.fingerprint,
            "image_size": encoder.image_size,
            "mean": encoder.plan.mean,
            "std": encoder.plan.std,
            "batch": encoder.batch_size,
            "device": encoder.device.type,
        }

    def about(self, rows: int, bad: int) -> dict[str, Any]:
        """Whose features of which images, stored in the file."""
        return {
            "target": str(self.place),
            "description": self.encoder.description,
            "encoder": self.encoder.encoder_name,
            **{k: v for k, v in self.manifest.items() if k not in ("format", "images", "batch", "device")},
            "images": rows,
            "bad_images": bad,
            "features": self.encoder.num_features,
            "classes": len(self.collection.classes),
            **self.details,
        }


def embed_job(place: Path, options: EncoderOptions, split: SplitName = "all", batch: int | None = None) -> EmbedJob:
    """The encoder at a place and the images of its data; unset options are its run's."""
    options = resolve_options(options)
    loaded = load_encoder(place, options.encoder, options.backbone)
    name, source = data_options_of(options, loaded)
    encoder = build_encoder(loaded, options)
    encoder.batch_size = batch or encoder.batch_size
    return EmbedJob(
        place=place,
        encoder=encoder,
        collection=collect(_load_splits(name, source, split), split),
        data=name,
        split=split,
        max_bad_images=options.max_bad_images,
        details=_protocol(loaded),
    )


def eval_job(place: Path, options: EvalOptions) -> EmbedJob:
    """The encoder at a place and the labeled train and test images that it is evaluated on."""
    setup = eval_setup(place, options)
    options = setup.options
    return EmbedJob(
        place=place,
        encoder=build_encoder(setup.loaded, options),
        collection=Collection({"train": setup.train, "test": setup.test}, setup.classes),
        data=setup.data,
        split="all",
        max_bad_images=options.max_bad_images,
        details={**_protocol(setup.loaded), "labels": options.labels, "seed": options.seed},
    )


def _protocol(loaded: LoadedEncoder) -> dict[str, Any]:
    """The protocol of the encoder's run, so that `eval knn` of the file uses the run's k and temperature."""
    return {} if loaded.config is None else {"evaluation": to_plain(loaded.config.evaluation)}


def _load_splits(name: str, source: DataOptions, split: SplitName) -> DataSplits:
    """The data; a folder with one picture, which can't be split, is allowed for split `all`."""
    kind, _, place = name.partition(":")
    single = single_image(place, source) if kind == "folder" and split == "all" else None
    return load(name, source) if single is None else single


def write_features(job: EmbedJob, out: Path, overwrite: bool, on_images: OnImages) -> Mapping[str, Any]:
    """Embed all images and write the feature file; returns its `about` entries."""
    with embedded_table(job, out, overwrite, on_images) as table:
        write_table(out, table)
        return table.about


@contextmanager
def embedded_table(job: EmbedJob, out: Path, overwrite: bool, on_images: OnImages) -> Iterator[ShardTable]:
    """The features of all images, in shards beside `out`, which are deleted when the context ends without an error.

    After a signal or a crash the next call resumes from the shards. `overwrite` deletes those of another job.
    """
    folder = shards_folder(out)
    with locked(folder), Signals().handled() as signals:
        shards = open_shards(folder, job.manifest, overwrite)
        try:
            bad_images = _embed(job, shards, signals, on_images)
            yield _table(job, shards, bad_images)
            shards.discard()
        except StoppedError as error:
            raise StoppedError(f"{error}; the same command resumes from there.", error.exit_code) from None
        finally:
            if not shards.files and folder.exists():
                shards.discard()


def _table(job: EmbedJob, shards: Shards, bad_images: BadImages) -> ShardTable:
    rows = sum(map(len, shards.rows()))
    if not rows:
        shards.discard()
        first, why = next(iter(bad_images.reasons.items()))
        raise UserError(f"none of the {len(job.collection)} images can be used; the first, '{first}': {why}.")
    about = job.about(rows, len(bad_images.reasons))
    width = job.encoder.num_features
    return ShardTable(shards=shards, collection=job.collection, num_rows=rows, width=width, about=about)


def _embed(job: EmbedJob, shards: Shards, signals: Signals, on_images: OnImages) -> BadImages:
    """Embed the batches that are not in the shards yet; returns the bad images of all batches."""
    batches, bad_images = job.collection.batches(job.encoder.batch_size), BadImages(job.max_bad_images)
    for bad in shards.bad():
        bad_images.add(bad)
    _warn(bad_images)
    count, total = sum(batch.stop - batch.first for batch in batches[: shards.num_batches]), len(job.collection)
    on_images(count, total)
    remaining = batches[shards.num_batches :]
    stream = prefetch(partial(job.collection.fetch, batch) for batch in remaining)
    with signals.deferred(), ShardWriter(shards) as writer:
        for batch, fetched in zip(remaining, stream, strict=True):
            writer.add(_features(job.encoder, fetched))
            bad_images.add(fetched.bad)
            _warn(bad_images)
            count += batch.stop - batch.first
            on_images(count, total)
            if signals.received is not None:
                by = signals.received
                raise StoppedError(f"stopped by {by.name} after {count} of {total} images", 128 + by)
    return bad_images


def _features(encoder: Encoder, batch: ImageBatch) -> FeatureBatch:
    features = encoder(batch.images)
    require_finite_features(features, "images", int(batch.rows[0]) if len(batch.rows) else 0)
    return FeatureBatch(features.numpy(), batch.rows.numpy().astype(np.int64), batch.bad)


def _warn(bad_images: BadImages) -> None:
    """Warn of each bad image; raise where there are too many."""
    for where, why in bad_images.drain():
        warnings.warn(f"'{where}' can't be used and is skipped: {why}.", stacklevel=4)
    try:
        bad_images.require_few()
    except UserError as error:
        raise UserError(f"{error} After repairing images, start again with --overwrite.") from error


class ShardWriter:
    """Collects batches and writes them as shards; on exit it writes the rest."""

    def __init__(self, shards: Shards) -> None:
        self.shards = shards
        self.pending: list[FeatureBatch] = []
        self.since = monotonic()

    def __enter__(self) -> "ShardWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()

    def add(self, batch: FeatureBatch) -> None:
        """One more batch."""
        self.pending.append(batch)
        if monotonic() - self.since > SECONDS or sum(one.features.nbytes for one in self.pending) > BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the pending batches as one shard."""
        if self.pending:
            self.shards.add(concatenate(self.pending), self.shards.num_batches + len(self.pending))
        self.pending, self.since = [], monotonic()
