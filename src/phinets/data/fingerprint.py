"""Which data a run has seen, in few words, so that a resumed one notices when they have changed."""

import os
from pathlib import Path
from zlib import crc32

from torch import Tensor

from phinets.data.blocks import Stored
from phinets.data.drawn import Endless
from phinets.data.files import Files
from phinets.data.images import Images, InMemory
from phinets.data.split import ImageSet, Split


def fingerprint(split: Split) -> dict[str, str]:
    """For each part the number of its images and a check sum: of the pixels in memory, of the names of files, of which
    images of arrays on the disk were picked, of the world and the size of pictures that are drawn as they arrive.

    The contents of files and of arrays on the disk are not read for it.
    """
    return {name: f"{len(part)} images, {_checked(part.images):08x}" for name, part in split.parts.items()}


def set_fingerprint(part: ImageSet) -> str:
    """The same for one set, more sharply: files by their whole paths, sizes and times, and the labels too."""
    images = part.images
    of_images = _states(images) if isinstance(images, Files) else _checked(images)
    of_labels = 0 if part.labels is None else crc32(part.labels.contiguous().numpy().data)
    return f"{len(part)} images, {of_images:08x}, {of_labels:08x}"


def _states(files: Files) -> int:
    """A check sum over what the system knows of files without reading them."""
    found = 0
    for path in files.paths:
        try:
            state = os.stat(path)
            known = f"{state.st_size} {state.st_mtime_ns}"
        except OSError:
            known = "gone"
        found = crc32(os.fsencode(path) + f"\0{known}\0".encode(), found)
    return found


def _checked(images: Images) -> int:
    if isinstance(images, InMemory):
        return crc32(images.pixels.contiguous().numpy().data)
    if isinstance(images, Files):
        return crc32("\0".join(Path(path).name for path in images.paths).encode(errors="surrogateescape"))
    if isinstance(images, Endless):
        return crc32(f"{images.world} {images.size}".encode(), _rows(images.rows))
    return _rows(images.rows) if isinstance(images, Stored) else 0


def _rows(rows: range | Tensor) -> int:
    """Which ones of all were picked; 0 where they lie side by side."""
    return 0 if isinstance(rows, range) else crc32(rows.contiguous().numpy().data)
