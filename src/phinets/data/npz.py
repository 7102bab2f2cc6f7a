"""Images in one .npz file."""

import os
from pathlib import Path

import torch
from torch import Tensor

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.images import InMemory
from phinets.data.members import Member, member, opened, read_labels, require_pictures
from phinets.data.split import ImageSet, Split, every_tenth

CHUNK = 1_000


def npz(path: str, options: DataOptions) -> Split:
    """Arrays X (uint8, n × height × width × 3) and, where labels are known, Y (n whole numbers from 0).

    Every tenth image of a fixed shuffle is asked about and the others are learned from.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"there is no file '{file}'. Say --data npz:PATH; `--data shapes` works without any data.")
    with opened(file) as archive:
        with member(archive, "X") as found:
            require_pictures(found, file)
            pixels = _pixels(found, file)
        named = "Y.npy" in archive.namelist()
        labels = torch.from_numpy(read_labels(archive, "Y", len(pixels))) if named else None
    if len(pixels) < 2:
        raise UserError(f"'{file}' holds one image, but at least two are needed: to learn from and to ask about.")
    classes = () if labels is None else tuple(str(i) for i in range(int(labels.max()) + 1))
    every = ImageSet(InMemory(pixels, torch.arange(len(pixels))), labels)
    train, test = (every.pick(rows) for rows in every_tenth(len(pixels)))
    return Split(train, test, classes)


def _pixels(found: Member, file: Path) -> Tensor:
    """All images, channels first. A file that claims more than the machine's memory is not even begun."""
    n, height, width, _ = found.shape
    needed, there = 2 * n * height * width * 3, _memory()
    if needed > there:
        raise UserError(f"'{file}' needs {needed / 2**30:.1f} GB of memory, and this machine has {there / 2**30:.1f}.")
    pixels, done = torch.empty((n, 3, height, width), dtype=torch.uint8), 0
    for chunk in found.chunks(CHUNK):
        pixels[done : done + len(chunk)] = torch.tensor(chunk).permute(0, 3, 1, 2)
        done += len(chunk)
    return pixels


def _memory() -> int:
    """Bytes of memory in this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
