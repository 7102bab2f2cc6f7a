"""Data sets by name: found, read, parted as in the literature, or the person is told what to do."""

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import cifar, load, stl10
from phinets.data.cifar import read_pickle
from phinets.data.image_sets import DataSplits, InMemory
from tests.data import making
from tests.data.making import at

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")


def pixels(split: DataSplits, part: str = "train") -> np.ndarray:
    images = split.splits[part].images
    return images.fetch(torch.arange(len(images))).images.numpy()


def test_cifar10_is_five_files_in_their_order_and_one_to_ask_about(tmp_path: Path) -> None:
    images = making.cifar10(tmp_path)
    split = load("cifar10", at(tmp_path))
    assert (pixels(split) == images).all()
    assert (len(split.train), len(split.test)) == (100, 20)
    assert split.train.labels is not None
    assert split.train.labels[:22].tolist() == [*range(10), *range(10), 1, 2]
    assert split.classes == tuple(making.TEN)
    assert split.eval_train is split.train


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
    assert split.eval_train.labels is not None
    assert split.eval_train.labels.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("asked", "given"), [(3, 3), (6, 6), (8, 8), (100, 15)])
def test_of_stl10_no_more_is_read_than_asked_for(asked: int, given: int, tmp_path: Path) -> None:
    looks = making.stl10(tmp_path)
    split = load("stl10", at(tmp_path, train_images=asked))
    assert len(split.train) == given
    assert isinstance(split.train.images, InMemory)
    assert split.train.images.pixels.untyped_storage().nbytes() == max(given, 6) * stl10.BYTES
    assert len(split.eval_train) == 6
    assert (pixels(split) == np.concatenate([looks["train"], looks["unlabeled"]])[:asked]).all()


def test_the_checksums_are_those_that_torchvision_knows() -> None:
    from torchvision.datasets import CIFAR10, CIFAR100, STL10

    for theirs, layout in ((CIFAR10, cifar.CIFAR10), (CIFAR100, cifar.CIFAR100)):
        folder = layout.folder
        assert (folder.url, folder.md5) == (theirs.url, theirs.tgz_md5)
        assert folder.folder == theirs.base_folder
        assert {**layout.train, **layout.test} == dict(theirs.train_list + theirs.test_list)
        assert layout.meta == (theirs.meta["filename"], theirs.meta["md5"])
        assert layout.names == theirs.meta["key"]
    assert (stl10.FOLDER.url, stl10.FOLDER.md5) == (STL10.url, STL10.tgz_md5)
    assert stl10.FOLDER.folder == STL10.base_folder


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


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cifar-10", "Did you mean 'cifar10'"),
        ("folder", "Use folder:PATH"),
        ("npz:", "Use npz:PATH"),
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
