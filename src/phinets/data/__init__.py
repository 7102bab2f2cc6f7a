"""Data sets by name: images and labels, without augmentation."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from phinets.config.errors import UserError, look_up
from phinets.config.run import DataOptions
from phinets.data import cifar, folder, npz, stl10
from phinets.data import cifar5m as five_million
from phinets.data.blocks import BlockImages
from phinets.data.files import Files
from phinets.data.fingerprint import fingerprint
from phinets.data.image_sets import (
    BadImage,
    BadImages,
    DataSplits,
    ImageBatch,
    Images,
    ImageSet,
    InMemory,
    Order,
    batches,
    select_classes,
)
from phinets.data.locations import Source
from phinets.data.shapes.dataset import shapes, shapes_stream, single_shapes, single_shapes_stream

__all__ = [
    "DATA", "PLACES", "BadImage", "BadImages", "DataSplits", "Files", "ImageBatch", "ImageSet", "Images", "InMemory",
    "Order", "batches", "describe_data", "fingerprint", "load", "load_task",
]  # fmt: skip

DATA: Mapping[str, Source] = {
    "shapes": Source(shapes),
    "shapes/single": Source(single_shapes),
    "cifar10": Source(cifar.cifar10, cifar.CIFAR10.folder),
    "cifar100": Source(cifar.cifar100, cifar.CIFAR100.folder),
    "stl10": Source(stl10.stl10, stl10.FOLDER),
    "cifar5m": Source(five_million.cifar5m, five_million.FOLDER),
    "imagenet": Source(folder.imagenet, folder.IMAGENET),
}
GENERATED_STREAMS: Mapping[str, Callable[[DataOptions], DataSplits]] = {
    "shapes": shapes_stream,
    "shapes/single": single_shapes_stream,
}
"""Data that are generated when needed: `stream:shapes`."""


def stream(name: str, options: DataOptions) -> DataSplits:
    """Any of these data in their own order, not shuffled; stream:shapes is endless.

    Files come by path (frame 10 after frame 9), all else in the order of its file, in every epoch. Images at the end
    that fill no batch are left out.
    """
    if name.partition(":")[0] == "stream":
        raise UserError(f"'stream:{name}' says stream twice. Use stream:NAME, e.g. stream:shapes.")
    if name in GENERATED_STREAMS:
        return GENERATED_STREAMS[name](options)
    return _in_sequence(_read(name, options))


def _in_sequence(split: DataSplits) -> DataSplits:
    images = split.train.images
    assert isinstance(images, InMemory | BlockImages | Files)
    return replace(split, train=replace(split.train, images=replace(images, sequential=True)))


PLACES: Mapping[str, Callable[[str, DataOptions], DataSplits]] = {
    "folder": folder.folder,
    "npz": npz.npz,
    "stream": stream,
}
"""Kinds of data at a place, `folder:PATH`, or in other data, `stream:NAME`."""


def load(name: str, options: DataOptions) -> DataSplits:
    """Load a data set.

    Args:
        name: A name of `DATA`, or folder:PATH, npz:PATH, stream:NAME.
        options: Where the data are, which classes, how many images (the first ones), and at which size.

    Returns:
        The train and test splits, the class names and, where the data have one, the labeled bank.

    Raises:
        UserError: There are no such data, they are damaged, or they have no such classes.
    """
    return _select(_read(name, options), options)


def load_task(name: str, options: DataOptions) -> DataSplits:
    """The same for a task of a stream: where all pictures are in one subfolder, that is their class."""
    kind, _, place = name.removeprefix("stream:").partition(":")
    if kind != "folder" or not place:
        return load(name, options)
    split = folder.folder(place, options, one_class=True)
    return _select(_in_sequence(split) if name.startswith("stream:") else split, options)


def _select(split: DataSplits, options: DataOptions) -> DataSplits:
    if options.classes:
        split = select_classes(split, options.classes)
    return replace(split, train=_first(split.train, options.train_images), test=split.test.head(options.test_images))


def _first(image_set: ImageSet, n: int | None) -> ImageSet:
    """The first n images; in a stream those that come first.

    Their numbering stays: a stream's images may be numbered by a shuffle, and then a small bank, the first few of them,
    has every class.
    """
    images = image_set.images
    if n is None or not isinstance(images, InMemory | Files) or not images.sequential:
        return image_set.head(n)
    return image_set.subset(images.order(torch.Generator())[:n].sort().values)


def _read(name: str, options: DataOptions) -> DataSplits:
    """The data set, before classes and images are selected."""
    kind, colon, place = name.partition(":")
    if not place and (colon or name in PLACES):
        raise UserError(f"'{name}' needs a {'name' if kind == 'stream' else 'path'}. Use {_usage(kind)}.")
    if colon:
        return look_up("kind of place", kind, PLACES)(place, options)
    return look_up("data set", name, DATA).read(options)


def describe_data() -> dict[str, str]:
    """Every data set and every kind of place, in one line each."""
    readers = {name: source.read for name, source in DATA.items()} | {_usage(kind): PLACES[kind] for kind in PLACES}
    return {name: (reader.__doc__ or "").splitlines()[0] for name, reader in readers.items()}


def _usage(kind: str) -> str:
    return f"{kind}:{'NAME' if kind == 'stream' else 'PATH'}"
