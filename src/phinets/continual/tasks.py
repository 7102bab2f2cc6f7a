"""The tasks of a stream, made from data: classes of one data set, domains, or one data set each."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from phinets.config.continual import AppendedTask, ContinualConfig, StreamOptions
from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import DataSplits, Files, Images, ImageSet, fingerprint, load, load_task
from phinets.data.decode import printable
from phinets.data.folder import TEST_FOLDERS
from phinets.data.image_sets import class_number
from phinets.views import random_stream

NAMED = 3
"""A task of no more classes than these is named by all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is learned from, known and asked about in one task; labels count in the stream's own list of classes."""

    name: str
    train: ImageSet
    known: ImageSet
    """The images that kNN and the linear probe know: the data set's bank, else `train`."""
    test: ImageSet

    @property
    def parts(self) -> dict[str, ImageSet]:
        """The parts by name; `bank` is there where it is not what is learned from."""
        bank = {} if self.known is self.train else {"bank": self.known}
        return {"train": self.train, "test": self.test, **bank}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Tasks one after the other."""

    tasks: tuple[Task, ...] = ()
    classes: tuple[str, ...] = ()
    """The classes of all tasks, in the order in which they come."""

    def followed_by(self, name: str, split: DataSplits) -> "Stream":
        """The same stream and one more task: classes of a known name keep their number, the others get the next ones.

        What is learned from keeps images without a label; what is known and asked about has none of them.
        """
        classes = self.classes + tuple(new for new in split.classes if new not in self.classes)
        numbers = torch.tensor([*(classes.index(one) for one in split.classes), -1])  # so that −1 finds −1
        train, test = _renumbered(split.train, numbers), _renumbered(split.test, numbers).labeled
        known = train.labeled if split.bank is None else _renumbered(split.bank, numbers).labeled
        task = Task(name=self.free_name(name), train=train, known=known, test=test)
        return Stream(tasks=(*self.tasks, task), classes=classes)

    def free_name(self, name: str) -> str:
        """This name for one more task, or, where one has it already, the first of `name (2)`, `name (3)`, … left."""
        taken = [task.name for task in self.tasks]
        others = (f"{name} ({again})" for again in range(2, len(taken) + 2))
        return next(one for one in (name, *others) if one not in taken)


def stream(config: ContinualConfig) -> Stream:
    """The tasks that a run learns one after the other, the appended ones last; or what is wrong with them.

    What comes later changes nothing about what comes before: neither names nor the numbers of classes.
    """
    found = _first_tasks(config)
    for more in config.appended:
        found = _extended(found, [more.data], _source(config.source, more))
    for number, task in enumerate(found.tasks, start=1):
        _require_images(number, task)
    _require_one_size(found)
    return found


def _source(source: DataOptions, more: AppendedTask) -> DataOptions:
    """An appended task says itself which images it has; where they lie and how large they are seen the run says."""
    return replace(source, classes=more.classes, train_images=more.train_images, test_images=more.test_images)


def fingerprints(stream: Stream) -> dict[str, str]:
    """Which images each part of each task has, in few words: `task 1 train` and so on (data/fingerprint.py)."""
    return {
        f"task {number} {part}": said
        for number, task in enumerate(stream.tasks, start=1)
        for part, said in fingerprint(_split_of(task)).items()
    }


def _split_of(task: Task) -> DataSplits:
    return DataSplits(task.train, task.test, (), task.parts.get("bank"))


def _first_tasks(config: ContinualConfig) -> Stream:
    if config.stream.task_data:
        return _extended(Stream(), config.stream.task_data, config.source)
    return _by_domain(config) if config.stream.split == "domain" else _by_class(config)


def _extended(found: Stream, names: Sequence[str], source: DataOptions) -> Stream:
    """A stream, and one more task for each data set, whose classes are its own where they are mere numbers.

    0 and 1 are one thing here and another there; data sets that call their classes by name mean the same by the same.
    """
    for name in names:
        split = _loaded(name, source, len(found.tasks) + 1)
        task = found.free_name(_last_component(name))
        own = tuple(f"{task} {one}" if one.isdecimal() else one for one in split.classes)
        found = found.followed_by(task, replace(split, classes=own))
    return found


def _by_domain(config: ContinualConfig) -> Stream:
    """One data set in several folders: what it calls 0 is the same in all of them."""
    found = Stream()
    for number, name in enumerate(_domains(config.data), start=1):
        found = found.followed_by(_last_component(name), _loaded(name, config.source, number))
    return found


def _loaded(name: str, source: DataOptions, number: int) -> DataSplits:
    """The data of a task, or what is wrong with them and with which task."""
    try:
        return load_task(name, source)
    except UserError as error:
        raise UserError(f"task {number}, '{printable(name)}': {error}") from error


def _renumbered(part: ImageSet, numbers: Tensor) -> ImageSet:
    return part if part.labels is None else ImageSet(part.images, numbers[part.labels])


def _last_component(data: str) -> str:
    """What a person calls data: the last folder or file of their place, else their name."""
    _, colon, place = data.partition(":")
    return printable(os.path.basename(os.path.abspath(os.path.expanduser(place))) if colon else data) or data


def _domains(data: str) -> list[str]:
    """The first-level folders of `folder:PATH`, each as data of its own."""
    kind, _, place = data.partition(":")
    root = Path(place).expanduser()
    if kind != "folder" or not place:
        raise UserError(
            f"--split domain takes each first-level folder of folder:PATH for a domain, but the data are '{data}'. "
            "Say --data folder:PATH, or --task-data A B C for domains that lie elsewhere."
        )
    try:
        found = sorted(path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError as error:
        raise UserError(
            f"'{printable(root)}' can't be looked into: {error.strerror}. Say --data folder:PATH, with a folder for each "
            "domain inside."
        ) from error
    if not found:
        raise UserError(
            f"'{printable(root)}' holds no folders to take for domains. Put each domain into one of its own."
        )
    if "train" in found and set(found) & set(TEST_FOLDERS):
        raise UserError(
            f"'{printable(root)}' holds {' and '.join(found)}, which are parts of one data set, no domains. Put each "
            "domain into a folder of its own, with those inside of it."
        )
    return [f"folder:{root / name}" for name in found]


def _by_class(config: ContinualConfig) -> Stream:
    split = load(config.data, config.source)
    if not split.classes or any(part.labels is None for part in split.splits.values()):
        raise UserError(
            f"'{printable(config.data)}' has no labels to split it by class. Put pictures into one folder per class, use "
            "labelled data, or say what each task has: --task-data A B C."
        )
    order = _order(split.classes, config.stream)
    of = "--class-order names" if config.stream.class_order else f"'{printable(config.data)}' has"
    count, each = _shape(config.stream, len(order), f"{of} {len(order)}")
    order = order[: count * each]
    numbers = torch.full((len(split.classes) + 1,), -1)  # one more, so that −1 finds −1
    numbers[torch.tensor(order)] = torch.arange(len(order))
    classes = tuple(split.classes[i] for i in order)
    groups = [classes[i : i + each] for i in range(0, len(classes), each)]
    parts = zip(*(_cut(part, numbers, each, count) for part in split.splits.values()), strict=True)
    tasks = [
        Task(name=_joined(group), train=train, test=test, known=bank[0] if bank else train)
        for group, (train, test, *bank) in zip(groups, parts, strict=True)
    ]
    return Stream(tasks=tuple(tasks), classes=classes)


def _order(classes: tuple[str, ...], tasks: StreamOptions) -> list[int]:
    """The classes' numbers in the data set, in the order in which they come."""
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
    """How many tasks, and how many classes in each; `of` says whose classes they are."""
    count, each = tasks.shape or (classes // 2, 2)
    if tasks.shape is None and classes % 2:
        left = f" or --tasks {count}x2, which leaves one out" if count else ""
        raise UserError(
            f"{of} {'classes' if count else 'class'}, which can't be parted into tasks of two. "
            f"Say --tasks {_fitting(classes)}{left}."
        )
    if count * each > classes:
        raise UserError(
            f"--tasks {count}x{each} takes {count * each} classes, but {of}. Say --tasks {_fitting(classes)}."
        )
    return count, each


def _fitting(classes: int) -> str:
    """The shapes that use up so many classes."""
    found = [f"{classes // each}x{each}" for each in range(1, classes // 2 + 1) if classes % each == 0]
    return ", ".join(found) or "1x1"


def _cut(part: ImageSet, numbers: Tensor, each: int, count: int) -> Iterator[ImageSet]:
    """The images of each task's classes, in the order in which they lie; those of no class in use are left out."""
    assert part.labels is not None
    labels = numbers[part.labels]
    for task in range(count):
        rows = ((labels >= task * each) & (labels < (task + 1) * each)).nonzero().flatten()
        yield ImageSet(part.images.subset(rows), labels[rows])


def _joined(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{names[0]} … {names[-1]}"


def _require_images(number: int, task: Task) -> None:
    what = {"train": "no images to learn from", "test": "no test images", "bank": "no labelled images to be known"}
    empty = next((part for part, images in task.parts.items() if not len(images)), None)
    if empty is not None:
        raise UserError(
            f"task {number}, '{task.name}', has {what[empty]}. Leave it out, or let it have some: more --train-images "
            "or --test-images, other classes, other data."
        )


def _require_one_size(found: Stream) -> None:
    """Refuse arrays of images that differ in size from task to task; pictures in files are brought to one."""
    sizes = [(number, task, _size(task.train.images)) for number, task in enumerate(found.tasks, start=1)]
    fixed = [(number, task, size) for number, task, size in sizes if size is not None]
    for number, task, size in fixed:
        first = fixed[0][2]
        if size != first:
            raise UserError(
                f"task {number}, '{task.name}', holds images of {_said(size)} pixels, and the tasks before it have "
                f"{_said(first)}. Resize them to {_said(first)}, or begin another run with them."
            )


def _size(images: Images) -> tuple[int, int] | None:
    """Height and width of arrays; None for pictures in files."""
    if isinstance(images, Files):
        return None
    height, width = images.fetch(torch.zeros(1, dtype=torch.int64)).images.shape[2:]
    return height, width


def _said(size: tuple[int, int]) -> str:
    return f"{size[1]} × {size[0]}"
