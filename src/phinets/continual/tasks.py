"""The tasks of a stream: classes of one data set, domains, or one data set each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from phinets.config.continual import ContinualConfig, StreamOptions
from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import DataSplits, Files, Images, ImageSet, fingerprint, load, load_task
from phinets.data.decode import printable
from phinets.data.folder import TEST_FOLDERS
from phinets.data.image_sets import class_number
from phinets.views import random_stream

MAX_CLASS_NAMES = 3
"""A task with at most this many classes is named after all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The images of one task; labels are numbers in the stream's list of classes."""

    name: str
    train: ImageSet
    eval_train: ImageSet
    """The train images of kNN and the linear probe: the data set's bank, else `train`."""
    test: ImageSet

    @property
    def splits(self) -> dict[str, ImageSet]:
        """The splits by name; `bank` where it differs from `train`."""
        bank = {} if self.eval_train is self.train else {"bank": self.eval_train}
        return {"train": self.train, "test": self.test, **bank}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Tasks one after the other."""

    tasks: tuple[Task, ...] = ()
    classes: tuple[str, ...] = ()
    """The classes of all tasks, in order of appearance."""

    def with_task(self, name: str, split: DataSplits) -> "Stream":
        """The stream with one more task: classes of an existing name keep their number, others get the next ones.

        `train` keeps images without a label; `eval_train` and `test` do not.
        """
        classes = self.classes + tuple(new for new in split.classes if new not in self.classes)
        numbers = torch.tensor([*(classes.index(one) for one in split.classes), -1])  # so that −1 maps to −1
        train, test = _renumber(split.train, numbers), _renumber(split.test, numbers).labeled
        eval_train = train.labeled if split.bank is None else _renumber(split.bank, numbers).labeled
        task = Task(name=self.unused_name(name), train=train, eval_train=eval_train, test=test)
        return Stream(tasks=(*self.tasks, task), classes=classes)

    def unused_name(self, name: str) -> str:
        """This name or, where a task has it already, the first unused one of `name (2)`, `name (3)`, …"""
        taken = [task.name for task in self.tasks]
        others = (f"{name} ({again})" for again in range(2, len(taken) + 2))
        return next(one for one in (name, *others) if one not in taken)


def stream(config: ContinualConfig) -> Stream:
    """The tasks of a run in order, the appended ones last.

    Later tasks change neither the names nor the class numbers of earlier ones.

    Raises:
        UserError: the data of a task can't be used.
    """
    tasks_so_far = _first_tasks(config)
    for more in config.appended:
        source = replace(
            config.source, classes=more.classes, train_images=more.train_images, test_images=more.test_images
        )
        tasks_so_far = _add_tasks(tasks_so_far, [more.data], source)
    for number, task in enumerate(tasks_so_far.tasks, start=1):
        _require_images(number, task)
    _require_one_size(tasks_so_far)
    return tasks_so_far


def fingerprints(stream: Stream) -> dict[str, str]:
    """Checksums of the images of each split of each task: `task 1 train` and so on."""
    return {
        f"task {number} {split}": checksum
        for number, task in enumerate(stream.tasks, start=1)
        for split, checksum in fingerprint(DataSplits(task.train, task.test, (), task.splits.get("bank"))).items()
    }


def _first_tasks(config: ContinualConfig) -> Stream:
    if config.stream.task_data:
        return _add_tasks(Stream(), config.stream.task_data, config.source)
    return _by_domain(config) if config.stream.split == "domain" else _by_class(config)


def _add_tasks(tasks_so_far: Stream, names: Sequence[str], source: DataOptions) -> Stream:
    """The stream with one more task per data set.

    Classes with equal names are the same class in all data sets; classes that are only numbers are not.
    """
    for name in names:
        split = _load(name, source, len(tasks_so_far.tasks) + 1)
        task = tasks_so_far.unused_name(_last_component(name))
        own = tuple(f"{task} {one}" if one.isdecimal() else one for one in split.classes)
        tasks_so_far = tasks_so_far.with_task(task, replace(split, classes=own))
    return tasks_so_far


def _by_domain(config: ContinualConfig) -> Stream:
    """One task per folder; class numbers mean the same in all of them."""
    tasks_so_far = Stream()
    for number, name in enumerate(_domains(config.data), start=1):
        tasks_so_far = tasks_so_far.with_task(_last_component(name), _load(name, config.source, number))
    return tasks_so_far


def _load(name: str, source: DataOptions, number: int) -> DataSplits:
    """Load the data of a task; errors name the task."""
    try:
        return load_task(name, source)
    except UserError as error:
        raise UserError(f"task {number}, '{printable(name)}': {error}") from error


def _renumber(images: ImageSet, numbers: Tensor) -> ImageSet:
    return images if images.labels is None else ImageSet(images.images, numbers[images.labels])


def _last_component(data: str) -> str:
    """A short name for data: the last component of the path, else the name."""
    _, colon, place = data.partition(":")
    return printable(os.path.basename(os.path.abspath(os.path.expanduser(place))) if colon else data) or data


def _domains(data: str) -> list[str]:
    """The first-level folders of `folder:PATH`, as one data name each."""
    kind, _, place = data.partition(":")
    root = Path(place).expanduser()
    if kind != "folder" or not place:
        raise UserError(
            f"--split domain takes each first-level folder of folder:PATH as a domain, but the data are '{data}'. "
            "Use --data folder:PATH, or --task-data A B C for domains in other places."
        )
    try:
        names = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise UserError(
            f"'{printable(root)}' can't be read: {error.strerror}. Use --data folder:PATH with one folder per domain."
        ) from error
    if not names:
        raise UserError(f"'{printable(root)}' has no subfolders. --split domain needs one subfolder per domain.")
    if "train" in names and set(names) & set(TEST_FOLDERS):
        raise UserError(
            f"'{printable(root)}' holds {' and '.join(names)}, which are splits of one data set, not domains. Put "
            "each domain into its own folder, with its splits inside."
        )
    return [f"folder:{root / name}" for name in names]


def _by_class(config: ContinualConfig) -> Stream:
    split = load(config.data, config.source)
    if not split.classes or any(images.labels is None for images in split.splits.values()):
        raise UserError(
            f"'{printable(config.data)}' has no labels to split by class. Put the images into one folder per class, "
            "use labeled data, or name the data of each task: --task-data A B C."
        )
    order = _order(split.classes, config.stream)
    of = "--class-order names" if config.stream.class_order else f"'{printable(config.data)}' has"
    count, each = _shape(config.stream, len(order), f"{of} {len(order)}")
    order = order[: count * each]
    numbers = torch.full((len(split.classes) + 1,), -1)  # one more, so that −1 finds −1
    numbers[torch.tensor(order)] = torch.arange(len(order))
    classes = tuple(split.classes[i] for i in order)
    groups = [classes[i : i + each] for i in range(0, len(classes), each)]
    splits = zip(*(_split_by_task(s, numbers, each, count) for s in split.splits.values()), strict=True)
    tasks = [
        Task(name=_join(group), train=train, test=test, eval_train=bank[0] if bank else train)
        for group, (train, test, *bank) in zip(groups, splits, strict=True)
    ]
    return Stream(tasks=tuple(tasks), classes=classes)


def _order(classes: tuple[str, ...], tasks: StreamOptions) -> list[int]:
    """The classes' numbers in the data set, in order of appearance."""
    if tasks.order_seed is not None:
        numbers = torch.randperm(len(classes), generator=random_stream(tasks.order_seed, "class order"))
        return [int(number) for number in numbers]
    if not tasks.class_order:
        return list(range(len(classes)))
    order = [class_number(name, classes) for name in tasks.class_order]
    twice = next((name for name, number in zip(tasks.class_order, order, strict=True) if order.count(number) > 1), None)
    if twice is not None:
        raise UserError(f"--class-order names the class '{twice}' twice, by name or by number. Name each once.")
    return order


def _shape(tasks: StreamOptions, classes: int, of: str) -> tuple[int, int]:
    """Number of tasks, and of classes per task; `of` describes the classes in an error."""
    count, each = tasks.shape or (classes // 2, 2)
    if tasks.shape is None and classes % 2:
        left = f" or --tasks {count}x2, which leaves one out" if count else ""
        raise UserError(
            f"{of} {'classes' if count else 'class'}, which can't be split into tasks of two. "
            f"Use --tasks {_valid_shapes(classes)}{left}."
        )
    if count * each > classes:
        raise UserError(
            f"--tasks {count}x{each} takes {count * each} classes, but {of}. Use --tasks {_valid_shapes(classes)}."
        )
    return count, each


def _valid_shapes(classes: int) -> str:
    """The values of --tasks that use all classes."""
    shapes = [f"{classes // each}x{each}" for each in range(1, classes // 2 + 1) if classes % each == 0]
    return ", ".join(shapes) or "1x1"


def _split_by_task(images: ImageSet, numbers: Tensor, each: int, count: int) -> Iterator[ImageSet]:
    """The images of each task's classes, in their order; images of unused classes are left out."""
    assert images.labels is not None
    labels = numbers[images.labels]
    for task in range(count):
        rows = ((labels >= task * each) & (labels < (task + 1) * each)).nonzero().flatten()
        yield ImageSet(images.images.subset(rows), labels[rows])


def _join(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= MAX_CLASS_NAMES else f"{names[0]} … {names[-1]}"


def _require_images(number: int, task: Task) -> None:
    what = {"train": "no training images", "test": "no test images", "bank": "no labeled images in its bank"}
    empty = next((split for split, images in task.splits.items() if not len(images)), None)
    if empty is not None:
        raise UserError(
            f"task {number}, '{task.name}', has {what[empty]}. Leave the task out, or use more --train-images or "
            "--test-images, other classes or other data."
        )


def _require_one_size(stream: Stream) -> None:
    """Refuse arrays whose image size differs between tasks; image files are resized."""
    sizes = [(number, task, _size(task.train.images)) for number, task in enumerate(stream.tasks, start=1)]
    fixed = [(number, task, size) for number, task, size in sizes if size is not None]
    for number, task, size in fixed:
        first = fixed[0][2]
        if size != first:
            raise UserError(
                f"task {number}, '{task.name}', has images of {_format_size(size)} pixels, but earlier tasks have "
                f"{_format_size(first)}. Resize them to {_format_size(first)}, or start another run with them."
            )


def _size(images: Images) -> tuple[int, int] | None:
    """Height and width of arrays; None for image files."""
    if isinstance(images, Files):
        return None
    height, width = images.fetch(torch.zeros(1, dtype=torch.int64)).images.shape[2:]
    return height, width


def _format_size(size: tuple[int, int]) -> str:
    return f"{size[1]} × {size[0]}"
