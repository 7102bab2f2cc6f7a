"""A folder of images: every picture below it, whatever the nesting; labelled by subfolder, or not at all."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor

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
    cure="It can't be downloaded freely: put (or link) its folders train and val, with the classes in them, into "
    "'{root}/imagenet'.",
)


def folder(path: str, options: DataOptions) -> DataSplits:
    """Any folder of images; with train/ and val/ (or test/) inside, those are the two parts.

    Without them every tenth picture is asked about and the others are learned from. Subfolders are classes where
    every picture lies in one and there are at least two.
    """
    root = Path(path).expanduser()
    if not root.is_dir():
        raise UserError(
            f"there is no folder '{printable(root)}'. Say --data folder:PATH; `--data shapes` works without any data."
        )
    parts = _part_folders(root)
    if parts is not None:
        return train_and_test_folders(*parts, options)
    every = _pictures(root)
    if len(every) < 2:
        raise UserError(_too_few(root, len(every)))
    classes = _classes(every)
    train, test = ([every[i] for i in rows.tolist()] for rows in holdout_rows(len(every)))
    return DataSplits(_part(root, train, classes, options), _part(root, test, classes, options), classes)


def single_class(path: str, split: DataSplits) -> DataSplits:
    """What `folder` found there; where every picture lies in one and the same subfolder, that is their class."""
    if split.classes:
        return split
    root = Path(path).expanduser()
    train_root, test_root = _part_folders(root) or (root, root)
    tops = _tops(train_root, split.train) | _tops(test_root, split.test)
    if len(tops) != 1 or None in tops:
        return split
    one = split.map(lambda part: ImageSet(part.images, torch.zeros(len(part), dtype=torch.int64)))
    return replace(one, classes=tuple(printable(top) for top in tops if top is not None))


def single_image(path: str, options: DataOptions) -> DataSplits | None:
    """The picture of a folder that holds no other, with nothing beside it to ask about; None where it holds more."""
    root = Path(path).expanduser()
    found = list(islice(_walked(root), 2)) if root.is_dir() else []
    if len(found) != 1 or options.classes:
        return None
    return DataSplits(_part(root, found, (), options), _part(root, [], (), options), ())


def imagenet(options: DataOptions) -> DataSplits:
    """ImageNet (or any other data) in class folders under train/ and val/ of ROOT/imagenet, or of ROOT itself."""
    root = IMAGENET(options)
    for part in IMAGENET.inside:
        if not (root / part).is_dir():
            raise UserError(f"'{root}' has no folder '{part}'. {IMAGENET.advice(options.root)}")
    return train_and_test_folders(root / "train", root / "val", options)


def train_and_test_folders(train_root: Path, test_root: Path, options: DataOptions) -> DataSplits:
    """What is learned from in one folder, what is asked about in another."""
    train, test = _shuffled(_pictures(train_root)), _shuffled(_pictures(test_root))
    for root, names in ((train_root, train), (test_root, test)):
        if not names:
            raise UserError(_too_few(root, 0))
    classes = _classes(train + test)
    return DataSplits(_part(train_root, train, classes, options), _part(test_root, test, classes, options), classes)


def _part_folders(root: Path) -> tuple[Path, Path] | None:
    """train/ and val/ (or test/), where a folder has both."""
    test_root = next((root / name for name in TEST_FOLDERS if (root / name).is_dir()), None)
    return (root / "train", test_root) if (root / "train").is_dir() and test_root is not None else None


def _part(root: Path, names: list[str], classes: tuple[str, ...], options: DataOptions) -> ImageSet:
    side = options.image_size
    return ImageSet(Files([os.path.join(root, name) for name in names], side), _labels(names, classes))


def _pictures(root: Path) -> list[str]:
    """Every picture below a folder, by its path from there, in an order that is the same on every machine."""
    return sorted(_walked(root))


def _walked(root: Path) -> Iterator[str]:
    """The pictures as they are met.

    Hidden files are no pictures, and folders behind links are not entered: they might lead back here.
    """
    for base, folders, names in os.walk(root, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = os.path.relpath(base, root)
        for name in names:
            if name.lower().endswith(ENDINGS) and not name.startswith("."):
                yield os.path.normpath(os.path.join(inside, name))


def _unreadable(error: OSError) -> NoReturn:
    raise UserError(
        f"the folder '{printable(error.filename)}' can't be read: {error.strerror}. Fix its permissions, or move it."
    ) from error


def _too_few(root: Path, n: int) -> str:
    held = f"only {n} image" if n else "no images"
    return (
        f"'{printable(root)}' holds {held} to learn from and to ask about. Images end in {', '.join(ENDINGS)}; "
        "hidden files and linked folders are not looked at."
    )


def _shuffled(names: list[str]) -> list[str]:
    """So that the first few are of every class; always in the same way."""
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(0))
    return [names[i] for i in order.tolist()]


def _classes(names: list[str]) -> tuple[str, ...]:
    tops = [name.split(os.sep, 1) for name in names]
    found = sorted({top for top, *_ in tops})
    return tuple(map(printable, found)) if len(found) > 1 and all(len(parts) > 1 for parts in tops) else ()


def _tops(root: Path, part: ImageSet) -> set[str | None]:
    """The subfolders in which the pictures of a part lie; None stands for the folder itself."""
    assert isinstance(part.images, Files)
    inside = (os.fspath(path)[len(os.path.join(root, "")) :].split(os.sep, 1) for path in part.images.paths)
    return {parts[0] if len(parts) > 1 else None for parts in inside}


def _labels(names: list[str], classes: tuple[str, ...]) -> Tensor | None:
    if not classes:
        return None
    numbers = {name: i for i, name in enumerate(classes)}
    return torch.tensor([numbers[printable(name.split(os.sep, 1)[0])] for name in names])
