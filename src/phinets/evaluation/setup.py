"""What the command line evaluates: an encoder with labeled images, or a table of features."""

import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from phinets.backbones import feature_width, warn_if_small
from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions
from phinets.config.run import EvalConfig
from phinets.data import BadImages, ImageSet, load
from phinets.evaluation.encoders import LoadedEncoder, data_options_of, load_encoder, resolve_options, view_plan_of
from phinets.evaluation.features import (
    READERS,
    FeatureExtractor,
    FeatureSet,
    FeatureTable,
    read_feature_table,
    require_classes,
    split_protocol,
)
from phinets.runtime.devices import pick_device
from phinets.views import random_stream


@dataclass(frozen=True, kw_only=True)
class EvalSetup:
    """An encoder on its device, a feature extractor, and labeled train and test images."""

    place: Path
    loaded: LoadedEncoder
    extractor: FeatureExtractor
    train: ImageSet
    test: ImageSet
    classes: tuple[str, ...]
    """Class names."""
    data: str
    options: EvalOptions

    def feature_sets(self) -> tuple[FeatureSet, FeatureSet]:
        """Train features and test features."""
        module = self.loaded.module
        train, test = self.extractor.extract(self.train, module), self.extractor.extract(self.test, module)
        self.warn_of_bad_images()
        return train, test

    def warn_of_bad_images(self) -> None:
        """Warn of each bad image; raise where there are too many."""
        for where, why in self.extractor.bad_images.drain():
            warnings.warn(f"'{where}' can't be used, and its neighbor stands in for it: {why}.", stacklevel=3)
        self.extractor.bad_images.require_few()

    @property
    def evaluation(self) -> EvalConfig:
        """The protocol of the encoder's run, or the default one."""
        return EvalConfig() if self.loaded.config is None else self.loaded.config.evaluation

    @property
    def document(self) -> dict[str, Any]:
        """Which encoder was evaluated on which images, for --json."""
        return {
            "target": str(self.place),
            "encoder": self.loaded.encoder,
            "backbone": self.loaded.backbone,
            "data": self.data,
            "classes": len(self.classes),
            "image_size": self.extractor.size,
            "labels": self.options.labels,
            "bank": len(self.train),
            "queries": len(self.test),
            "bad_images": len(self.extractor.bad_images.reasons),
            "seed": self.options.seed,
        }

    def describe(self) -> str:
        """Which encoder on which images, in words."""
        options, bad_images = self.options, len(self.extractor.bad_images.reasons)
        share = "" if options.share == 1 else f", {options.labels} of the labels (seed {options.seed})"
        names = f" ({', '.join(self.classes)})" if options.classes else ""
        counts = split_protocol(len(self.train), len(self.test), self.test.total)
        bad = f", {bad_images} bad ones replaced by their neighbors" if bad_images else ""
        images = f"{len(self.classes)} classes{names} at {self.extractor.size} pixels"
        return f"{self.loaded.description}; {self.data}, {images}{share}: {counts}{bad}"


def open_target(place: Path, options: EvalOptions) -> EvalSetup | FeatureTable:
    """The table of features at a place, or the encoder at a place with its images."""
    if place.suffix not in READERS:
        return eval_setup(place, options)
    unset = EvalOptions(device=options.device)
    names = [f.name for f in fields(options) if getattr(options, f.name) != getattr(unset, f.name)]
    if names:
        unused = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        raise UserError(
            f"'{place}' holds features that are already computed. Leave out {unused}: only --num-neighbors, "
            "--temperature and --device apply."
        )
    return read_feature_table(place)


def eval_setup(place: Path, options: EvalOptions) -> EvalSetup:
    """The encoder at a place with the images that it is evaluated on.

    Args:
        place: a run folder, one of its checkpoints, or a weights file.
        options: which encoder and which images; unset options are the run's.

    Returns:
        The encoder on its device, with labeled train and test images.

    Raises:
        UserError: where there is no encoder at `place`, or the images have fewer than two classes.
    """
    if place.suffix in READERS:
        raise UserError(f"'{place}' holds features, but this command needs images. Give a run or weights.")
    options = resolve_options(options)
    loaded = load_encoder(place, options.encoder, options.backbone)
    name, source = data_options_of(options, loaded)
    bank = options.bank
    if bank is None and loaded.config is not None and options.data in (None, loaded.config.data):
        bank = loaded.config.evaluation.final_bank
    enough = source.train_images and max(options.bank or 0, source.train_images)
    source = replace(source, train_images=enough, test_images=options.test_images or source.test_images)
    warn_if_small(loaded.backbone, source.image_size)
    feature_width(loaded.module, source.image_size)  # fails early for an encoder that gives no feature vectors
    extractor = FeatureExtractor(
        plan=view_plan_of(options, loaded),
        size=source.image_size,
        device=pick_device(options.device),
        dtype=next(loaded.module.parameters()).dtype,
        bad_images=BadImages(options.max_bad_images),
    )
    split = load(name, source)
    train, test = split.eval_train.labeled.head(bank), split.test.labeled
    require_classes(train.labels, test.labels, name)
    return EvalSetup(
        place=place,
        loaded=replace(loaded, module=loaded.module.to(extractor.device).to(memory_format=torch.channels_last)),
        extractor=extractor,
        train=train.share(options.share, random_stream(options.seed, "labels")),
        test=test,
        classes=split.classes,
        data=name,
        options=options,
    )
