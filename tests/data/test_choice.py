"""Some classes of a data set."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import load
from phinets.data.image_sets import DataSplits
from tests.data import making

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")


def at(root: Path, **more: Any) -> DataOptions:
    return DataOptions(root=str(root), **more)


def pixels(split: DataSplits, part: str = "train") -> np.ndarray:
    images = split.splits[part].images
    return images.fetch(torch.arange(len(images))).images.numpy()


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
    assert (len(split.train), len(split.eval_train), len(split.test)) == (2, 2, 2)


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
    with pytest.raises(UserError, match="the test split holds no image of --classes dog"):
        load("stl10", at(tmp_path, classes=("dog",)))
