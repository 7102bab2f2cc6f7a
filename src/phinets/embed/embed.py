"""From a collection of images to their features in one file; an interrupted command resumes."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from phinets.backbones.weights import encoder_checksum
from phinets.config.errors import StoppedError, UserError
from phinets.config.evaluation import EncoderOptions, EvalOptions
from phinets.config.plain import to_plain
from phinets.config.run import TrainConfig
from phinets.data import BadImages, load
from phinets.data.folder import single_image
from phinets.embed.collection import Collection, collect
from phinets.embed.store import WRITERS, Embedding, FeatureStore, open_store, store_folder
from phinets.evaluation.encoders import Encoder, build_encoder, data_options_of, load_encoder, resolve_options
from phinets.evaluation.features import require_finite_features
from phinets.evaluation.setup import eval_setup
from phinets.runtime.files import atomic_write
from phinets.runtime.process import Signals
from phinets.training.loader import prefetch
from phinets.training.run_folder import lock_folder

SplitName = Literal["all", "train", "test", "bank"]
OnImages = Callable[[int, int], None]
"""Callback with the number of images done and the number of all images."""


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
            "format": 3,
            "weights": encoder_checksum(encoder.backbone),
            "backbone": encoder.backbone_name,
            "features": encoder.num_features,
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
    kind, _, folder = name.partition(":")
    # a folder with one picture can't be split
    single = single_image(folder, source) if kind == "folder" and split == "all" else None
    return EmbedJob(
        place=place,
        encoder=encoder,
        collection=collect(load(name, source) if single is None else single, split),
        data=name,
        split=split,
        max_bad_images=options.max_bad_images,
        details=_protocol(loaded.config),
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
        details={**_protocol(setup.loaded.config), "labels": options.labels, "seed": options.seed},
    )


def _protocol(config: TrainConfig | None) -> dict[str, Any]:
    """The protocol of the encoder's run, so that `eval knn` of the file uses the run's k and temperature."""
    return {} if config is None else {"evaluation": to_plain(config.evaluation)}


def write_features(job: EmbedJob, out: Path, overwrite: bool, on_images: OnImages) -> Mapping[str, Any]:
    """Embed all images and write the feature file; returns its `about` entries."""
    with embedding_of(job, out, overwrite, on_images) as embedding:
        return embedding.about


@contextmanager
def embedding_of(job: EmbedJob, out: Path, overwrite: bool, on_images: OnImages) -> Iterator[Embedding]:
    """Embed all images and write the feature file; the features stay memory-mapped until the context ends.

    After a signal or a crash the next call resumes from the store beside `out`. `overwrite` replaces the store of
    another job.
    """
    folder = store_folder(out)
    with lock_folder(folder), Signals().handled() as signals:
        store = open_store(folder, job.manifest, job.encoder.num_features, overwrite)
        try:
            _embed(job, store, signals, on_images)
            if not store.rows:
                first, why = store.bad[0]
                raise UserError(f"none of the {len(job.collection)} images can be used; the first, '{first}': {why}.")
            about = job.about(store.rows, len({bad.where for bad in store.bad}))
            embedding = Embedding(*store.arrays(), job.collection, about)
            atomic_write(out, lambda file: WRITERS[out.suffix](file, embedding))
            yield embedding
            store.discard()
        except StoppedError as error:
            raise StoppedError(f"{error}; the same command resumes from there.", error.exit_code) from None
        finally:
            if not store.rows and folder.exists():
                store.discard()


def _embed(job: EmbedJob, store: FeatureStore, signals: Signals, on_images: OnImages) -> None:
    """Embed the batches that are not in the store yet."""
    bad_images = BadImages(job.max_bad_images)
    bad_images.add(store.bad)
    _warn(bad_images)
    remaining, total = job.collection.batches(job.encoder.batch_size)[store.batches :], len(job.collection)
    count = total - sum(batch.stop - batch.first for batch in remaining)
    on_images(count, total)
    stream = prefetch(partial(job.collection.fetch, batch) for batch in remaining)
    with signals.deferred():
        try:
            for batch, fetched in zip(remaining, stream, strict=True):
                features = job.encoder(fetched.images)
                require_finite_features(features, "images", int(fetched.rows[0]) if len(fetched.rows) else 0)
                store.add(features.numpy(), fetched.rows.numpy(), fetched.bad)
                bad_images.add(fetched.bad)
                _warn(bad_images)
                count += batch.stop - batch.first
                on_images(count, total)
                if (by := signals.received) is not None:
                    raise StoppedError(f"stopped by {by.name} after {count} of {total} images", 128 + by)
        finally:
            store.save()


def _warn(bad_images: BadImages) -> None:
    """Warn of each bad image; raise where there are too many."""
    for where, why in bad_images.drain():
        warnings.warn(f"'{where}' can't be used and is skipped: {why}.", stacklevel=4)
    try:
        bad_images.require_few()
    except UserError as error:
        raise UserError(f"{error} After repairing images, start again with --overwrite.") from error
