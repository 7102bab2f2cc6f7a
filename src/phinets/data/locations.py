"""Where data lie on the disk, and what to say when they do not."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits

VARIABLE = "PHINETS_DATA"


def data_root(root: str | None) -> Path:
    """The folder of all data: what was said, else $PHINETS_DATA, else ~/.cache/phinets/data."""
    said = root or os.environ.get(VARIABLE)
    return Path(said).expanduser() if said else cache_folder() / "data"


def cache_folder() -> Path:
    """Where the package keeps what can be made again."""
    return Path.home() / ".cache" / "phinets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Something that can be downloaded."""

    url: str
    md5: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFolder:
    """A data set's own folder under the root."""

    name: str
    folder: str
    inside: tuple[str, ...] = ()
    """Folders that make the root itself the home, where they all lie in it."""
    archive: Archive | None = None
    cure: str = ""
    """How to get it, where no download does; may name {root}."""

    def __call__(self, options: DataOptions) -> Path:
        """The folder, downloaded first where that was allowed; or what to do."""
        path = self.path(options.root)
        if path.is_dir():
            return path
        if options.download and self.archive is not None:
            download(self.archive, path)
            return path
        raise UserError(
            f"'{self.name}' was sought in '{path}' and is not there. {self.advice(options.root)} "
            f"Data elsewhere: --root DIR or ${VARIABLE}. `--data shapes` works at once."
        )

    def path(self, root: str | None) -> Path:
        """Where it is, or would be."""
        base = data_root(root)
        here = bool(self.inside) and all((base / name).is_dir() for name in self.inside)
        return base if here else base / self.folder

    def advice(self, root: str | None) -> str:
        """How to get it."""
        if self.archive is None:
            return self.cure.format(root=data_root(root))
        option = f" --root {root}" if root else ""
        return f"Get it with `phinets data check {self.name}{option} --download`."


def first_line(reader: Callable[..., DataSplits]) -> str:
    """What a reader of data says of itself."""
    return (reader.__doc__ or "").splitlines()[0]


@dataclass(frozen=True, slots=True)
class Source:
    """A data set that has a name."""

    read: Callable[[DataOptions], DataSplits]
    folder: DatasetFolder | None = None
    """Where it lies; None where it needs no place."""

    @property
    def what(self) -> str:
        """The data set in one line."""
        return first_line(self.read)

    def state(self, root: str | None) -> str:
        """Whether it can be used at once."""
        if self.folder is None:
            return "always there"
        path = self.folder.path(root)
        return f"found in '{path}'" if path.is_dir() else f"not in '{path}'. {self.folder.advice(root)}"


def download(archive: Archive, place: Path) -> None:
    """Fetch an archive, compare its checksum, and put its folder in place: all of it or nothing."""
    from torchvision.datasets.utils import download_url, extract_archive

    root, folder = place.parent, place.name
    filename = archive.url.rsplit("/", 1)[-1]
    try:
        root.mkdir(parents=True, exist_ok=True)
        download_url(archive.url, root, filename, archive.md5)
        with tempfile.TemporaryDirectory(dir=root, prefix=".unpacking-") as aside:
            extract_archive(root / filename, aside)
            (Path(aside) / folder).replace(place)
    except Exception as error:  # the network, the disk and the archive each have their own words for it
        raise UserError(
            f"{archive.url} can't be brought to '{root}': {error}. Try again, or fetch it by other means, "
            f"compare its MD5 ({archive.md5}), and unpack it there as '{folder}'."
        ) from error


def file_in(folder: Path, name: str, cure: str) -> Path:
    """A file that must be there."""
    path = folder / name
    if not path.is_file():
        raise UserError(f"'{path}' is missing. {cure}")
    return path


def resolve_data_name(data: str) -> str:
    """The name of data, and where they lie in full where they have a place."""
    kind, colon, place = data.partition(":")
    if colon and kind == "stream":
        return f"stream:{resolve_data_name(place)}"
    return f"{kind}:{Path(place).expanduser().absolute()}" if colon else data
