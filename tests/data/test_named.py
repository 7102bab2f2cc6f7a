"""Data sets by name: found, read, parted as in the literature, or the person is told what to do."""

import os
import pickle
import shutil
import socket
import subprocess
import sys
import tarfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import DATA, cifar, load, stl10
from phinets.data.home import Archive, Home, data_root
from phinets.data.images import InMemory
from phinets.data.pickles import read_pickle
from phinets.data.split import Split
from tests.data import making

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("nobody asked for the network")

    monkeypatch.setattr(socket, "socket", refuse)


def at(root: Path, **more: Any) -> DataOptions:
    return DataOptions(root=str(root), **more)


def pixels(split: Split, part: str = "train") -> np.ndarray:
    images = split.parts[part].images
    return images.take(torch.arange(len(images))).images.numpy()


def test_cifar10_is_five_files_in_their_order_and_one_to_ask_about(tmp_path: Path) -> None:
    images = making.cifar10(tmp_path)
    split = load("cifar10", at(tmp_path))
    assert (pixels(split) == images).all()
    assert (len(split.train), len(split.test)) == (100, 20)
    assert split.train.labels is not None
    assert split.train.labels[:22].tolist() == [*range(10), *range(10), 1, 2]
    assert split.classes == tuple(making.TEN)
    assert split.known is split.train


def test_cifar100_has_the_fine_labels(tmp_path: Path) -> None:
    making.cifar100(tmp_path)
    split = load("cifar100", at(tmp_path))
    assert len(split.classes) == 100
    assert split.test.labels is not None
    assert split.test.labels.tolist() == list(range(30))


def test_stl10_learns_from_all_knows_the_labelled_and_asks_about_the_test_part(tmp_path: Path) -> None:
    looks = making.stl10(tmp_path)
    split = load("stl10", at(tmp_path))
    assert (pixels(split) == np.concatenate([looks["train"], looks["unlabeled"]])).all()
    assert (pixels(split, "test") == looks["test"]).all()
    assert (pixels(split, "bank") == looks["train"]).all()
    assert split.train.labels is not None
    assert split.train.labels.tolist() == [0, 1, 2, 3, 4, 5, *[-1] * 9]
    assert split.known.labels is not None
    assert split.known.labels.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("asked", "given"), [(3, 3), (6, 6), (8, 8), (100, 15)])
def test_of_stl10_no_more_is_read_than_asked_for(asked: int, given: int, tmp_path: Path) -> None:
    looks = making.stl10(tmp_path)
    split = load("stl10", at(tmp_path, train_images=asked))
    assert len(split.train) == given
    assert isinstance(split.train.images, InMemory)
    assert split.train.images.pixels.untyped_storage().nbytes() == max(given, 6) * stl10.BYTES
    assert len(split.known) == 6
    assert (pixels(split) == np.concatenate([looks["train"], looks["unlabeled"]])[:asked]).all()


def test_the_checksums_are_those_that_torchvision_knows() -> None:
    from torchvision.datasets import CIFAR10, CIFAR100, STL10

    for theirs, home, layout in (
        (CIFAR10, cifar.HOME10, cifar.LAYOUT10),
        (CIFAR100, cifar.HOME100, cifar.LAYOUT100),
    ):
        assert home.archive == Archive(url=theirs.url, md5=theirs.tgz_md5)
        assert home.folder == theirs.base_folder
        assert {**layout.train, **layout.test} == dict(theirs.train_list + theirs.test_list)
        assert layout.meta == (theirs.meta["filename"], theirs.meta["md5"])
        assert layout.names == theirs.meta["key"]
    assert stl10.HOME.archive == Archive(url=STL10.url, md5=STL10.tgz_md5)
    assert stl10.HOME.folder == STL10.base_folder


def test_a_file_that_is_not_the_published_one_is_read_with_a_note(tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    making.stl10(tmp_path)
    for name, says in (("cifar10", "data_batch_3' is not the published file"), ("stl10", "not 100000")):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            load(name, at(tmp_path))
        assert any(says in str(one.message) for one in told)


class Evil:
    """Writes a file when it is unpickled by something that trusts it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    batch = {"data": making.noise(2, 3072), "labels": [0, Evil(tmp_path / "owned")]}
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(UserError, match=r"data_batch_2.*mkdir"):
        load("cifar10", at(tmp_path))
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        pickle.dumps({"data": 1})[:-3],
        pickle.dumps([1, 2]),
        b"cbuiltins\neval\n(S'1+1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"(dS'data'\nc_codecs\nencode\n(S'x'\nS'zip'\ntRs.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I99999999999999\ntS'b'\ntR.",
        b"Psomewhere\n.",
    ],
)
def test_a_damaged_or_greedy_pickle_is_refused_in_words(content: bytes) -> None:
    with pytest.raises(UserError, match=r"'x' .*fetch it again"):
        read_pickle(content, "x")


@pytest.mark.parametrize("protocol", range(5))
def test_arrays_numbers_and_text_come_back_whole(protocol: int) -> None:
    value = {"data": making.noise(3, 4), "labels": [1, 2], "name": "Ä", "more": np.arange(3.0)}
    found = read_pickle(pickle.dumps(value, protocol), "x")
    assert (found["data"] == value["data"]).all()
    assert (found["more"] == value["more"]).all()
    assert (found["labels"], found["name"]) == ([1, 2], "Ä")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": making.noise(5, 3072).astype(np.int64)}, "no bytes of shape"),
        ({"data": making.noise(5, 3071)}, "no bytes of shape"),
        ({"data": [1, 2]}, "no bytes of shape"),
        ({"labels": [0, 1]}, "no 5 labels"),
        ({"labels": [0, 1, 2, 3, 10]}, "from 0 to 9"),
        ({"labels": [0, 1, 2, 3, -1]}, "from 0 to 9"),
        ({"labels": None}, "no 5 labels"),
    ],
)
def test_a_batch_that_is_not_one_is_refused(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    batch = {"data": making.noise(5, 3072), "labels": [0, 1, 2, 3, 4], **change}
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(making.python2(batch))
    with pytest.raises(UserError, match=says):
        load("cifar10", at(tmp_path))


def test_a_missing_or_cut_file_is_named(tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    making.stl10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_4").unlink()
    with pytest.raises(UserError, match=r"data_batch_4' is missing.*--download"):
        load("cifar10", at(tmp_path))
    path = tmp_path / "stl10_binary" / "unlabeled_X.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"unlabeled_X.bin.*cut short"):
        load("stl10", at(tmp_path))
    (tmp_path / "stl10_binary" / "train_y.bin").write_bytes(bytes([1, 2, 11]))
    with pytest.raises(UserError, match="labels from 1 to 10"):
        load("stl10", at(tmp_path))


ON_DISK = [name for name, source in DATA.items() if source.home is not None]


@pytest.mark.parametrize("name", ON_DISK)
def test_what_is_not_there_says_where_it_was_sought_and_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as told:
        load(name, at(tmp_path))
    said = str(told.value)
    home = DATA[name].home
    assert home is not None
    assert str(tmp_path / home.folder) in said
    assert "--data shapes" in said
    assert "phinets data " in said or name == "imagenet"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ON_DISK)
def test_the_state_says_whether_it_is_there(name: str, tmp_path: Path) -> None:
    home = DATA[name].home
    assert home is not None
    assert DATA[name].state(str(tmp_path)).startswith("not in")
    (tmp_path / home.folder).mkdir()
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
    with pytest.raises(UserError, match=r"https://.*cifar-10-python.tar.gz can't be brought.*MD5"):
        load("cifar10", at(tmp_path / "root", download=True))
    (served / "cifar-10-python.tar.gz").write_bytes(b"half of it")
    with pytest.raises(UserError, match="can't be brought"):
        load("cifar10", at(tmp_path / "root", download=True))
    assert not (tmp_path / "root" / "cifar-10-batches-py").exists()
    assert not list((tmp_path / "root").glob(".unpacking*"))


def test_an_archive_can_t_write_outside_its_folder(served: Path, tmp_path: Path) -> None:
    with tarfile.open(served / "cifar-10-python.tar.gz", "w:gz") as archive:
        (tmp_path / "evil").write_text("evil")
        archive.add(tmp_path / "evil", "../../evil-was-here")
    with pytest.raises(UserError, match="can't be brought"):
        load("cifar10", at(tmp_path / "a" / "root", download=True))
    assert not list(tmp_path.rglob("evil-was-here"))


def test_a_home_may_be_the_root_itself(tmp_path: Path) -> None:
    home = Home(name="x", folder="x", inside=("train", "val"))
    assert home.path(str(tmp_path)) == tmp_path / "x"
    for name in home.inside:
        (tmp_path / name).mkdir()
    assert home.path(str(tmp_path)) == tmp_path
    assert home(at(tmp_path)) == tmp_path


@pytest.mark.parametrize("wanted", [("cat", "ship"), ("3", "8"), ("cat", "8")])
def test_classes_are_chosen_by_name_or_number(wanted: tuple[str, ...], tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    whole, some = load("cifar10", at(tmp_path)), load("cifar10", at(tmp_path, classes=wanted))
    assert some.classes == ("cat", "ship")
    assert whole.train.labels is not None
    rows = [i for i, label in enumerate(whole.train.labels.tolist()) if label in (3, 8)]
    assert (pixels(some) == pixels(whole)[rows]).all()
    assert some.train.labels is not None
    assert some.train.labels.tolist() == [(3, 8).index(int(whole.train.labels[i])) for i in rows]


def test_chosen_classes_count_in_the_order_of_asking(tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    one, other = (load("cifar10", at(tmp_path, classes=names)) for names in (("cat", "ship"), ("ship", "cat")))
    assert other.classes == ("ship", "cat")
    assert one.test.labels is not None
    assert other.test.labels is not None
    assert (one.test.labels == 1 - other.test.labels).all()


def test_of_stl10_chosen_classes_leave_out_what_has_no_label(tmp_path: Path) -> None:
    making.stl10(tmp_path, train=10, test=10)
    split = load("stl10", at(tmp_path, classes=("bird", "truck")))  # the last class: −1 must not be taken for it
    assert (len(split.train), len(split.known), len(split.test)) == (2, 2, 2)


def test_limits_come_after_the_choice(tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    split = load("cifar10", at(tmp_path, classes=("cat",), train_images=4, test_images=1))
    assert (len(split.train), len(split.test)) == (4, 1)


@pytest.mark.parametrize("wanted", [("5",), ("0", "1", "2")])
def test_shapes_draws_as_many_of_the_chosen_classes_as_are_asked_for(wanted: tuple[str, ...]) -> None:
    split = load("shapes", DataOptions(classes=wanted, train_images=50, test_images=20, image_size=8))
    assert (len(split.train), len(split.test)) == (50, 20)
    assert split.train.labels is not None
    assert set(split.train.labels.tolist()) == set(range(len(wanted)))


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (("cats",), "Did you mean 'cat'"),
        (("10",), "from 0 to 9"),
        (("-1",), "no class called '-1'"),
        (("cat", "3"), "names a class twice"),
    ],
)
def test_a_class_that_is_not_there_is_said(wanted: tuple[str, ...], says: str, tmp_path: Path) -> None:
    making.cifar10(tmp_path)
    with pytest.raises(UserError, match=says):
        load("cifar10", at(tmp_path, classes=wanted))


def test_a_part_without_any_of_the_classes_is_said(tmp_path: Path) -> None:
    making.stl10(tmp_path, train=6, test=4)
    with pytest.raises(UserError, match="the test part holds no image of --classes dog"):
        load("stl10", at(tmp_path, classes=("dog",)))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cifar-10", "Did you mean 'cifar10'"),
        ("folder", "Say folder:PATH"),
        ("npz:", "Say npz:PATH"),
        ("foldr:x", "Did you mean 'folder'"),
    ],
)
def test_a_name_that_is_none_is_said(name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        load(name, DataOptions())


def test_importing_the_data_needs_neither_the_net_nor_torchvision() -> None:
    code = "import sys, phinets.data; print([m for m in ('torchvision', 'matplotlib', 'requests') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
