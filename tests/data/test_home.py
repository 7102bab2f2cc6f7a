"""Where data lie, what is said when they do not, and what a download may do."""

import shutil
import tarfile
from pathlib import Path

import pytest

from phinets.config.errors import UserError
from phinets.data import DATA, load
from phinets.data.locations import DatasetFolder, data_root
from tests.data import making
from tests.data.making import at

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")


ON_DISK = [name for name, source in DATA.items() if source.folder is not None]


@pytest.mark.parametrize("name", ON_DISK)
def test_what_is_not_there_says_where_it_was_sought_and_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as told:
        load(name, at(tmp_path))
    said = str(told.value)
    folder = DATA[name].folder
    assert folder is not None
    assert str(tmp_path / folder.folder) in said
    assert "--data shapes" in said
    assert "phinets data " in said or name == "imagenet"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ON_DISK)
def test_the_state_says_whether_it_is_there(name: str, tmp_path: Path) -> None:
    folder = DATA[name].folder
    assert folder is not None
    assert DATA[name].state(str(tmp_path)).startswith("not in")
    (tmp_path / folder.folder).mkdir()
    assert DATA[name].state(str(tmp_path)).startswith("found in")


def test_the_root_is_what_was_said_else_the_variable_else_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHINETS_DATA", str(tmp_path / "there"))
    assert data_root("here") == Path("here")
    assert data_root(None) == tmp_path / "there"
    monkeypatch.delenv("PHINETS_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_root(None) == tmp_path / ".cache" / "phinets" / "data"
    assert data_root("~/x") == tmp_path / "x"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose files take the place of the net."""
    served = tmp_path / "net"
    served.mkdir()

    def fetch(url: str, root: Path, filename: str, md5: str) -> None:
        shutil.copy(served / filename, Path(root) / filename)

    monkeypatch.setattr("torchvision.datasets.utils.download_url", fetch)
    return served


def test_with_leave_to_download_it_is_fetched_unpacked_and_read(served: Path, tmp_path: Path) -> None:
    making.cifar10(tmp_path / "made")
    making.tar(served / "cifar-10-python.tar.gz", tmp_path / "made" / "cifar-10-batches-py", "cifar-10-batches-py")
    root = tmp_path / "root"
    split = load("cifar10", at(root, download=True))
    assert len(split.train) == 100
    assert {path.name for path in root.iterdir()} == {"cifar-10-batches-py", "cifar-10-python.tar.gz"}
    (served / "cifar-10-python.tar.gz").unlink()
    assert len(load("cifar10", at(root, download=True)).train) == 100  # it is there: the net is not asked


def test_a_download_that_fails_leaves_no_half_of_it_and_names_the_cure(served: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"https://.*cifar-10-python.tar.gz can't be downloaded.*MD5"):
        load("cifar10", at(tmp_path / "root", download=True))
    (served / "cifar-10-python.tar.gz").write_bytes(b"half of it")
    with pytest.raises(UserError, match="can't be downloaded"):
        load("cifar10", at(tmp_path / "root", download=True))
    assert not (tmp_path / "root" / "cifar-10-batches-py").exists()
    assert not list((tmp_path / "root").glob(".unpacking*"))


def test_an_archive_can_t_write_outside_its_folder(served: Path, tmp_path: Path) -> None:
    with tarfile.open(served / "cifar-10-python.tar.gz", "w:gz") as archive:
        (tmp_path / "evil").write_text("evil")
        archive.add(tmp_path / "evil", "../../evil-was-here")
    with pytest.raises(UserError, match="can't be downloaded"):
        load("cifar10", at(tmp_path / "a" / "root", download=True))
    assert not list(tmp_path.rglob("evil-was-here"))


def test_a_home_may_be_the_root_itself(tmp_path: Path) -> None:
    folder = DatasetFolder(name="x", folder="x", inside=("train", "val"))
    assert folder.path(str(tmp_path)) == tmp_path / "x"
    for name in folder.inside:
        (tmp_path / name).mkdir()
    assert folder.path(str(tmp_path)) == tmp_path
    assert folder(at(tmp_path)) == tmp_path
