"""Data by name: images and labels, never augmented."""

from collections.abc import Callable, Mapping

from phinets.config.errors import UserError, look_up
from phinets.config.run import DataOptions
from phinets.data import cifar, folder, npz, stl10
from phinets.data import cifar5m as five_million
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
from phinets.data.locations import Source, first_line
from phinets.data.shapes.dataset import shapes, shapes_stream
from phinets.data.streams import as_stream, first

__all__ = [
    "DATA",
    "PLACES",
    "BadImage",
    "BadImages",
    "DataSplits",
    "Files",
    "ImageBatch",
    "ImageSet",
    "Images",
    "InMemory",
    "Order",
    "batches",
    "describe_data",
    "fingerprint",
    "load",
    "load_task",
]

DATA: Mapping[str, Source] = {
    "shapes": Source(shapes),
    "cifar10": Source(cifar.cifar10, cifar.FOLDER10),
    "cifar100": Source(cifar.cifar100, cifar.FOLDER100),
    "stl10": Source(stl10.stl10, stl10.FOLDER),
    "cifar5m": Source(five_million.cifar5m, five_million.FOLDER),
    "imagenet": Source(folder.imagenet, folder.IMAGENET),
}
GENERATED_STREAMS: Mapping[str, Callable[[DataOptions], DataSplits]] = {
    "shapes": shapes_stream,
}
"""Data that are made as they arrive: `stream:shapes`."""


def stream(name: str, options: DataOptions) -> DataSplits:
    """Any of these data, arriving in their own order, not shuffled; stream:shapes is endless.

    Files arrive by path (frame 10 after frame 9), all else as it lies there, in every pass. Images at the end that fill
    no batch are not seen.
    """
    if name.partition(":")[0] == "stream":
        raise UserError(f"'stream:{name}' says stream twice. Say stream:NAME, e.g. stream:shapes.")
    return GENERATED_STREAMS[name](options) if name in GENERATED_STREAMS else as_stream(_read(name, options))


PLACES: Mapping[str, Callable[[str, DataOptions], DataSplits]] = {
    "folder": folder.folder,
    "npz": npz.npz,
    "stream": stream,
}
"""Kinds of data that are found at a place, `folder:PATH`, or in others, `stream:NAME`."""


def load(name: str, options: DataOptions) -> DataSplits:
    """The data set called `name`: the classes that `options` asks for, and no more images of each part.

    Of data that arrive they are the first ones to come.
    """
    return _asked_for(_read(name, options), options)


def load_task(name: str, options: DataOptions) -> DataSplits:
    """The same as a task of a stream, where pictures that all lie in one subfolder are of one class: the new one."""
    split = _read(name, options)
    kind, _, place = name.removeprefix("stream:").partition(":")
    return _asked_for(folder.single_class(place, split) if kind == "folder" else split, options)


def _asked_for(split: DataSplits, options: DataOptions) -> DataSplits:
    if options.classes:
        split = select_classes(split, options.classes)
    train, test = first(split.train, options.train_images), split.test.head(options.test_images)
    return DataSplits(train, test, split.classes, split.bank)


def _read(name: str, options: DataOptions) -> DataSplits:
    """The data set, which may have more than `options` asks for."""
    kind, colon, place = name.partition(":")
    if colon and not place:
        raise UserError(f"'{name}' does not say {'which' if kind == 'stream' else 'where'}. Say {_usage(kind)}.")
    return look_up("kind of place", kind, PLACES)(place, options) if colon else _named(name)(options)


def _named(name: str) -> Callable[[DataOptions], DataSplits]:
    if name in PLACES:
        raise UserError(f"'{name}' needs a {'name' if name == 'stream' else 'place'}. Say {_usage(name)}.")
    return look_up("data set", name, DATA).read


def describe_data() -> dict[str, str]:
    """Every data set and every kind of place, in one line each."""
    return {name: source.what for name, source in DATA.items()} | {
        _usage(kind): first_line(reader) for kind, reader in PLACES.items()
    }


def _usage(kind: str) -> str:
    """How a kind of place is said."""
    return f"{kind}:{'NAME' if kind == 'stream' else 'PATH'}"
