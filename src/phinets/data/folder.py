"""A folder of images: every picture below it, at any depth; subfolders are the classes."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.decode import ENDINGS, printable
from phinets.data.files import Files
from phinets.data.image_sets import DataSplits, ImageSet, stratified_rows
from phinets.data.locations import DatasetFolder

TEST_FOLDERS = ("test", "val", "valid", "validation")
IMAGENET = DatasetFolder(
    name="imagenet",
    folder="imagenet",
    inside=("train", "val"),
    cure="It has no free download: put (or link) its folders train and val, with the class folders, into "
    "'{root}/imagenet'.",
)


def folder(path: str | Path, options: DataOptions, one_class: bool = False) -> DataSplits:
    """Any folder of images; subfolders train/ and val/ (or test/) are the two splits.

    Without val/ a tenth of the images, with labels a tenth of each class, are test images. Subfolders are classes if
    there are two or more (with `one_class`, one that holds all images) and most images are in them.
    """
    root = Path(path).expanduser()
    if not root.is_dir():
        raise UserError(
            f"there is no folder '{printable(root)}'. Use --data folder:PATH, or --data shapes, which needs no files."
        )
    test_root = next((root / name for name in TEST_FOLDERS if (root / name).is_dir()), None)
    if test_root is not None and (root / "train").is_dir():
        return _two_folders(root / "train", test_root, options, one_class)
    names = sorted(_pictures(root))
    if names and all(name.startswith(f"train{os.sep}") for name in names):
        warnings.warn(f"'{printable(root)}' has train/ but no val/: a tenth of train/ is the test split.", stacklevel=2)
        return folder(root / "train", options, one_class)
    if len(names) < 2:
        raise UserError(_too_few(root, len(names)))
    images, classes = _image_set({root: names}, options, one_class)
    train, test = (images.subset(rows) for rows in stratified_rows(len(names), images.labels))
    return DataSplits(train, test, classes)


def single_image(path: str, options: DataOptions) -> DataSplits | None:
    """The picture of a folder that holds only one, without test images; None where it holds more."""
    root = Path(path).expanduser()
    names = list(islice(_pictures(root), 2)) if root.is_dir() else []
    if len(names) != 1 or options.classes:
        return None
    images, _ = _image_set({root: names}, options)
    return DataSplits(images, images.head(0), ())


def imagenet(options: DataOptions) -> DataSplits:
    """ImageNet (or other data) in class folders under train/ and val/ of ROOT/imagenet, or of ROOT itself."""
    root = IMAGENET(options)
    for name in IMAGENET.inside:
        if not (root / name).is_dir():
            raise UserError(f"'{root}' has no folder '{name}'. {IMAGENET.advice(options.root)}")
    return _two_folders(root / "train", root / "val", options)


def _two_folders(train_root: Path, test_root: Path, options: DataOptions, one_class: bool = False) -> DataSplits:
    """Training images in one folder and test images in another, both in a fixed random order: the first few have every
    class."""
    names = {root: sorted(_pictures(root)) for root in (train_root, test_root)}
    for root, some in names.items():
        if not some:
            raise UserError(_too_few(root, 0))
    images, classes = _image_set(names, options, one_class)
    n_train, n_test = map(len, names.values())
    train, test = (torch.randperm(n, generator=torch.Generator().manual_seed(0)) for n in (n_train, n_test))
    return DataSplits(images.subset(train), images.subset(n_train + test), classes)


def _image_set(
    names: Mapping[Path, Sequence[str]], options: DataOptions, one_class: bool = False
) -> tuple[ImageSet, tuple[str, ...]]:
    """The images of these names below these folders, and their classes, as `folder` says."""
    paths = [os.path.join(root, name) for root, some in names.items() for name in some]
    files = Files(paths, options.image_size, max_pixels=options.max_pixels)
    subfolders = [name.split(os.sep, 1)[0] if os.sep in name else "" for some in names.values() for name in some]
    classes, outside = sorted(set(subfolders) - {""}), subfolders.count("")
    if len(classes) < (1 if one_class and not outside else 2):
        return ImageSet(files, None), ()
    most = outside > len(files) / 2
    if outside:
        first = printable(files.paths[subfolders.index("")])
        effect = "no image gets a label" if most else "they get no label, and all others that of their folder"
        warnings.warn(
            f"{outside} of {len(files)} images are outside of the class folders ('{first}'): {effect}. Move them into "
            "class folders, or elsewhere.",
            stacklevel=3,
        )
    if most:
        return ImageSet(files, None), ()
    numbers = {name: i for i, name in enumerate(classes)}
    labels = torch.tensor([numbers.get(name, -1) for name in subfolders])
    return ImageSet(files, labels), tuple(map(printable, classes))


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
