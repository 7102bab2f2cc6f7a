"""Folders of data sets: where they are, how to get them, and downloads."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data.image_sets import DataSplits

VARIABLE = "PHINETS_DATA"
DOWNLOAD_AGAIN = "Remove its folder and fetch it again with --download."


def data_root(root: str | None) -> Path:
    """The folder of all data: `root`, else $PHINETS_DATA, else ~/.cache/phinets/data."""
    path = root or os.environ.get(VARIABLE)
    return Path(path).expanduser() if path else Path.home() / ".cache" / "phinets" / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFolder:
    """A data set's folder under the root, with the URL and MD5 sum of its archive if it can be downloaded."""

    name: str
    folder: str
    inside: tuple[str, ...] = ()
    """Where the root has all these subfolders, it is itself the data set's folder."""
    url: str | None = None
    md5: str | None = None
    cure: str = ""
    """How to get it without a download; may contain {root}."""

    def __call__(self, options: DataOptions) -> Path:
        """The folder, downloaded first if `options` allow it; UserError if it is missing."""
        path = self.path(options.root)
        if path.is_dir():
            return path
        if options.download and self.url is not None:
            self._download(self.url, path)
            return path
        raise UserError(
            f"'{self.name}' is not in '{path}'. {self.advice(options.root)} "
            f"Data elsewhere: --root DIR or ${VARIABLE}. `--data shapes` needs no files."
        )

    def path(self, root: str | None) -> Path:
        """Its folder, which may not exist."""
        base = data_root(root)
        here = bool(self.inside) and all((base / name).is_dir() for name in self.inside)
        return base if here else base / self.folder

    def advice(self, root: str | None) -> str:
        """How to get it."""
        if self.url is None:
            return self.cure.format(root=data_root(root))
        option = f" --root {root}" if root else ""
        return f"Get it with `phinets data check {self.name}{option} --download`."

    def _download(self, url: str, place: Path) -> None:
        """Fetch the archive, compare its checksum, and move its folder into place: all of it or nothing."""
        from torchvision.datasets.utils import download_url, extract_archive

        root, filename = place.parent, url.rsplit("/", 1)[-1]
        try:
            root.mkdir(parents=True, exist_ok=True)
            download_url(url, root, filename, self.md5)
            with tempfile.TemporaryDirectory(dir=root, prefix=".unpacking-") as temporary:
                extract_archive(root / filename, temporary)
                (Path(temporary) / place.name).replace(place)
        except Exception as error:  # the network, the disk and the archive each raise their own kinds
            raise UserError(
                f"{url} can't be downloaded to '{root}': {error}. Try again, or fetch it by other means, compare its "
                f"MD5 ({self.md5}), and unpack it there as '{place.name}'."
            ) from error


def require_file(path: Path) -> Path:
    """The path of a file, or UserError if it does not exist."""
    if not path.is_file():
        raise UserError(f"'{path}' is missing. {DOWNLOAD_AGAIN}")
    return path


@dataclass(frozen=True, slots=True)
class Source:
    """A named data set: its reader and its folder, if it needs one."""

    read: Callable[[DataOptions], DataSplits]
    folder: DatasetFolder | None = None

    def state(self, root: str | None) -> str:
        """Whether it is there."""
        if self.folder is None:
            return "always there"
        path = self.folder.path(root)
        return f"found in '{path}'" if path.is_dir() else f"not in '{path}'. {self.folder.advice(root)}"


def resolve_data_name(data: str) -> str:
    """The name of data, with an absolute path if it has one."""
    kind, colon, place = data.partition(":")
    if colon and kind == "stream":
        return f"stream:{resolve_data_name(place)}"
    return f"{kind}:{Path(place).expanduser().absolute()}" if colon else data
