"""A folder of images: every picture below it, whatever the nesting; labelled by subfolder, or not at all."""

import os
from pathlib import Path

import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.files import ENDINGS, Files
from phinets.data.split import ImageSet, Split

TEST_FOLDERS = ("test", "val", "valid", "validation")


def folder(path: str, options: DataOptions) -> Split:
    """folder:PATH, any folder of images; with train/ and val/ (or test/) inside, those are the two parts.

    Without them every tenth picture is asked about and the others are learned from. Subfolders are classes where
    every picture lies in one and there are at least two.
    """
    root = Path(path).expanduser()
    if not root.is_dir():
        raise UserError(f"there is no folder '{root}'. Say --data folder:PATH; `--data shapes` works without any data.")
    test_root = next((root / name for name in TEST_FOLDERS if (root / name).is_dir()), None)
    if (root / "train").is_dir() and test_root is not None:
        train_paths, test_paths, roots = _pictures(root / "train"), _pictures(test_root), (root / "train", test_root)
    else:
        every, roots = _pictures(root), (root, root)
        train_paths, test_paths = [p for i, p in enumerate(every) if i % 10], every[::10]
    if not train_paths or not test_paths:
        raise UserError(f"'{root}' holds no images to learn from and to ask about ({', '.join(ENDINGS)}).")
    train_paths, test_paths = train_paths[: options.train_images], test_paths[: options.test_images]
    classes = _classes(train_paths, roots[0])
    side = options.image_size * 8 // 7
    train, test = (
        ImageSet(Files(paths, side), _labels(paths, base, classes))
        for paths, base in zip((train_paths, test_paths), roots, strict=True)
    )
    return Split(train, test, classes)


def _pictures(root: Path) -> list[Path]:
    """Every picture below a folder, spread evenly over the classes and the same on every machine."""
    found = [Path(base) / name for base, _, names in os.walk(root) for name in names]
    pictures = sorted(p for p in found if p.suffix.lower() in ENDINGS)
    order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(0))
    return [pictures[i] for i in order.tolist()]


def _classes(paths: list[Path], root: Path) -> tuple[str, ...]:
    inside = [p.relative_to(root).parts for p in paths]
    names = sorted({parts[0] for parts in inside})
    return tuple(names) if len(names) > 1 and all(len(parts) > 1 for parts in inside) else ()


def _labels(paths: list[Path], root: Path, classes: tuple[str, ...]) -> Tensor | None:
    numbers = {name: i for i, name in enumerate(classes)}
    found = [numbers.get(p.relative_to(root).parts[0]) for p in paths]
    if not classes or None in found:
        return None
    return torch.tensor(found)
