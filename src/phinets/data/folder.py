"""A folder of images: every picture below it, at any depth; subfolders are the classes."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.decode import ENDINGS, printable
from phinets.data.files import Files
from phinets.data.image_sets import DataSplits, ImageSet, holdout_rows
from phinets.data.locations import DatasetFolder

TEST_FOLDERS = ("test", "val", "valid", "validation")
IMAGENET = DatasetFolder(
    name="imagenet",
    folder="imagenet",
    inside=("train", "val"),
    cure="It has no free download: put (or link) its folders train and val, with the class folders, into "
    "'{root}/imagenet'.",
)


def folder(path: str, options: DataOptions) -> DataSplits:
    """Any folder of images; subfolders train/ and val/ (or test/) are the two splits.

    Without them every tenth picture is a test image. Subfolders are classes if every picture is in one and there are
    at least two.
    """
    root = Path(path).expanduser()
    if not root.is_dir():
        raise UserError(
            f"there is no folder '{printable(root)}'. Use --data folder:PATH, or --data shapes, which needs no files."
        )
    roots = _split_folders(root)
    if roots is not None:
        return _two_folders(*roots, options)
    names = sorted(_pictures(root))
    if len(names) < 2:
        raise UserError(_too_few(root, len(names)))
    train, test = ([names[i] for i in rows.tolist()] for rows in holdout_rows(len(names)))
    return _splits(root, train, root, test, options)


def single_class(path: str, split: DataSplits) -> DataSplits:
    """`folder`'s splits; where they have no classes and all pictures are in one subfolder, that is their class."""
    if split.classes:
        return split
    root = Path(path).expanduser()
    subfolders: set[str | None] = set()
    for base, image_set in zip(_split_folders(root) or (root, root), (split.train, split.test), strict=True):
        assert isinstance(image_set.images, Files)
        names = (os.fspath(file)[len(os.path.join(base, "")) :] for file in image_set.images.paths)
        subfolders |= {name.split(os.sep, 1)[0] if os.sep in name else None for name in names}
    if len(subfolders) != 1 or None in subfolders:
        return split
    one = split.map(lambda images: ImageSet(images.images, torch.zeros(len(images), dtype=torch.int64)))
    return replace(one, classes=tuple(printable(name) for name in subfolders if name is not None))


def single_image(path: str, options: DataOptions) -> DataSplits | None:
    """The picture of a folder that holds only one, without test images; None where it holds more."""
    root = Path(path).expanduser()
    names = list(islice(_pictures(root), 2)) if root.is_dir() else []
    return _splits(root, names, root, [], options) if len(names) == 1 and not options.classes else None


def imagenet(options: DataOptions) -> DataSplits:
    """ImageNet (or other data) in class folders under train/ and val/ of ROOT/imagenet, or of ROOT itself."""
    root = IMAGENET(options)
    for name in IMAGENET.inside:
        if not (root / name).is_dir():
            raise UserError(f"'{root}' has no folder '{name}'. {IMAGENET.advice(options.root)}")
    return _two_folders(root / "train", root / "val", options)


def _two_folders(train_root: Path, test_root: Path, options: DataOptions) -> DataSplits:
    """Training images in one folder and test images in another, both in a fixed random order: the first few have every
    class."""
    train, test = (sorted(_pictures(root)) for root in (train_root, test_root))
    for root, names in ((train_root, train), (test_root, test)):
        if not names:
            raise UserError(_too_few(root, 0))
        order = torch.randperm(len(names), generator=torch.Generator().manual_seed(0))
        names[:] = [names[i] for i in order.tolist()]
    return _splits(train_root, train, test_root, test, options)


def _split_folders(root: Path) -> tuple[Path, Path] | None:
    """train/ and val/ (or test/), where a folder has both."""
    test_root = next((root / name for name in TEST_FOLDERS if (root / name).is_dir()), None)
    return (root / "train", test_root) if (root / "train").is_dir() and test_root is not None else None


def _splits(train_root: Path, train: list[str], test_root: Path, test: list[str], options: DataOptions) -> DataSplits:
    """The splits of these names below these folders; the classes are their first-level subfolders."""
    names = train + test
    subfolders = sorted({name.split(os.sep, 1)[0] for name in names})
    labeled = len(subfolders) > 1 and all(os.sep in name for name in names)
    numbers = {name: i for i, name in enumerate(subfolders)}

    def image_set(root: Path, names: list[str]) -> ImageSet:
        labels = torch.tensor([numbers[name.split(os.sep, 1)[0]] for name in names]) if labeled else None
        return ImageSet(Files([os.path.join(root, name) for name in names], options.image_size), labels)

    classes = tuple(map(printable, subfolders)) if labeled else ()
    return DataSplits(image_set(train_root, train), image_set(test_root, test), classes)


def _pictures(root: Path, inside: str = "", above: frozenset[str] = frozenset()) -> Iterator[str]:
    """The paths of all pictures, relative to the folder, without hidden ones.

    Linked folders are followed, but not back into a folder that holds them (`above`, without links).
    """
    folder = os.path.join(root, inside)
    real = os.path.realpath(folder)
    if real in above:
        return
    try:
        with os.scandir(folder) as listing:
            entries = [entry for entry in listing if not entry.name.startswith(".")]
    except OSError as error:
        raise UserError(
            f"the folder '{printable(folder)}' can't be read: {error.strerror}. Fix its permissions, or move it."
        ) from error
    for entry in entries:
        path = os.path.join(inside, entry.name)
        if os.path.isdir(entry) if entry.is_symlink() else entry.is_dir():  # a link to itself makes is_dir raise
            yield from _pictures(root, path, above | {real})
        elif entry.name.lower().endswith(ENDINGS):
            yield path


def _too_few(root: Path, n: int) -> str:
    return (
        f"'{printable(root)}' holds {f'only {n} image' if n else 'no images'}, but training and test need at least one "
        f"each. Images end in {', '.join(ENDINGS)}; hidden files are left out."
    )
