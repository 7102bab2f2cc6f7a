"""Which data a run has seen, in few words, so that a resumed one notices when they have changed."""

from pathlib import Path
from zlib import crc32

from phinets.data.blocks import Stored
from phinets.data.files import Files
from phinets.data.images import Images, InMemory
from phinets.data.split import Split


def fingerprint(split: Split) -> dict[str, str]:
    """For each part the number of its images and a check sum: of the pixels in memory, of the names of files, of which
    images of arrays on the disk were picked.

    The contents of files and of arrays on the disk are not read for it.
    """
    return {name: f"{len(part)} images, {_checked(part.images):08x}" for name, part in split.parts.items()}


def _checked(images: Images) -> int:
    if isinstance(images, InMemory):
        return crc32(images.pixels.contiguous().numpy().data)
    if isinstance(images, Files):
        return crc32("\0".join(Path(path).name for path in images.paths).encode(errors="surrogateescape"))
    if isinstance(images, Stored) and not isinstance(images.rows, range):
        return crc32(images.rows.contiguous().numpy().data)
    return 0
