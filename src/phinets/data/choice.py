"""Some classes of a data set."""

import torch
from torch import Tensor

from phinets.config.errors import UserError, unknown
from phinets.data.split import ImageSet, Split


def choose(split: Split, wanted: tuple[str, ...]) -> Split:
    """The images of the wanted classes, by name or by number, whose labels then count 0, 1, … in the order of asking.

    Images of which nobody knows the class are left out.
    """
    if any(part.labels is None for part in split.parts.values()):
        raise UserError("--classes chooses by label, but these images have none. Leave it out.")
    numbers = [class_number(name, split.classes) for name in wanted]
    if len(set(numbers)) < len(numbers):
        raise UserError(f"--classes {' '.join(wanted)} names a class twice. Name each once.")
    new = torch.full((len(split.classes) + 1,), -1)  # one more, so that −1 finds −1
    new[torch.tensor(numbers)] = torch.arange(len(numbers))
    chosen = split.map(lambda part: _only(part, new))
    for name, part in chosen.parts.items():
        if not len(part):
            raise UserError(f"the {name} part holds no image of --classes {' '.join(wanted)}. Choose other classes.")
    return Split(chosen.train, chosen.test, tuple(split.classes[i] for i in numbers), chosen.bank)


def _only(part: ImageSet, new: Tensor) -> ImageSet:
    assert part.labels is not None
    labels = new[part.labels]
    rows = torch.nonzero(labels >= 0).flatten()
    return ImageSet(part.images.pick(rows), labels[rows])


def class_number(name: str, classes: tuple[str, ...]) -> int:
    """The number of a class that was called by its name or its number."""
    if name in classes:
        return classes.index(name)
    if name.isdecimal() and int(name) < len(classes):
        return int(name)
    raise UserError(f"{unknown('class', name, list(classes))} A number from 0 to {len(classes) - 1} would do, too.")
