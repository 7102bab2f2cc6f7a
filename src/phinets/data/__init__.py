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
    Images,
    ImageSet,
    InMemory,
    Order,
    Split,
    Taken,
    batches,
    choose,
)
from phinets.data.locations import Source, first_line
from phinets.data.shapes.dataset import endless, shapes
from phinets.data.streams import arriving, first

__all__ = [
    "DATA",
    "PLACES",
    "BadImage",
    "BadImages",
    "Files",
    "ImageSet",
    "Images",
    "InMemory",
    "Order",
    "Split",
    "Taken",
    "batches",
    "describe_data",
    "fingerprint",
    "load",
    "load_task",
]

DATA: Mapping[str, Source] = {
    "shapes": Source(shapes),
    "cifar10": Source(cifar.cifar10, cifar.HOME10),
    "cifar100": Source(cifar.cifar100, cifar.HOME100),
    "stl10": Source(stl10.stl10, stl10.HOME),
    "cifar5m": Source(five_million.cifar5m, five_million.HOME),
    "imagenet": Source(folder.imagenet, folder.IMAGENET),
}
ENDLESS: Mapping[str, Callable[[DataOptions], Split]] = {
    "shapes": endless,
}
"""Data that are made as they arrive: `stream:shapes`."""


def stream(name: str, options: DataOptions) -> Split:
    """Any of these data, arriving in their own order, not shuffled; stream:shapes is endless.

    Files arrive by path (frame 10 after frame 9), all else as it lies there, in every pass. Images at the end that fill
    no batch are not seen.
    """
    if name.partition(":")[0] == "stream":
        raise UserError(f"'stream:{name}' says stream twice. Say stream:NAME, e.g. stream:shapes.")
    return ENDLESS[name](options) if name in ENDLESS else arriving(_read(name, options))


PLACES: Mapping[str, Callable[[str, DataOptions], Split]] = {
    "folder": folder.folder,
    "npz": npz.npz,
    "stream": stream,
}
"""Kinds of data that are found at a place, `folder:PATH`, or in others, `stream:NAME`."""


def load(name: str, options: DataOptions) -> Split:
    """The data set called `name`: the classes that `options` asks for, and no more images of each part.

    Of data that arrive they are the first ones to come.
    """
    return _asked_for(_read(name, options), options)


def load_task(name: str, options: DataOptions) -> Split:
    """The same as a task of a stream, where pictures that all lie in one subfolder are of one class: the new one."""
    split = _read(name, options)
    kind, _, place = name.removeprefix("stream:").partition(":")
    return _asked_for(folder.lone_class(place, split) if kind == "folder" else split, options)


def _asked_for(split: Split, options: DataOptions) -> Split:
    if options.classes:
        split = choose(split, options.classes)
    train, test = first(split.train, options.train_images), split.test.head(options.test_images)
    return Split(train, test, split.classes, split.bank)


def _read(name: str, options: DataOptions) -> Split:
    """The data set, which may have more than `options` asks for."""
    kind, colon, place = name.partition(":")
    if colon and not place:
        raise UserError(f"'{name}' does not say {'which' if kind == 'stream' else 'where'}. Say {_usage(kind)}.")
    return look_up("kind of place", kind, PLACES)(place, options) if colon else _named(name)(options)


def _named(name: str) -> Callable[[DataOptions], Split]:
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
