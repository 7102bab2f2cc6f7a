"""Folders of images as people have them: which pictures are found, and what their classes are."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import load
from phinets.data.decode import picture_size, printable
from phinets.data.files import Files
from phinets.data.image_sets import DataSplits
from tests.data.making import picture, save


def here(root: Path, **more: object) -> DataSplits:
    return load(f"folder:{root}", DataOptions(**more))  # type: ignore[arg-type]


def names(split: DataSplits, part: str = "train") -> list[str]:
    images = split.splits[part].images
    assert isinstance(images, Files)
    return sorted(os.path.basename(path) for path in images.paths)


def test_every_picture_below_is_found_whatever_the_nesting_and_the_case(tmp_path: Path) -> None:
    for name in ("a.png", "b.JPG", "x/c.jpeg", "x/y/z/d.webp", "x/e.gif", "f.bmp", "g.tiff"):
        save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    split = here(tmp_path)
    assert sorted(names(split) + names(split, "test")) == sorted(
        ["a.png", "b.JPG", "c.jpeg", "d.webp", "e.gif", "f.bmp", "g.tiff"]
    )
    assert split.train.labels is None


def test_subfolders_are_classes_where_every_picture_lies_in_one(tmp_path: Path) -> None:
    for i in range(20):
        save(tmp_path / ("cat" if i % 2 else "dog") / "deeper" / f"{i}.png")
    split = here(tmp_path)
    assert split.classes == ("cat", "dog")
    for part in split.splits.values():
        assert part.labels is not None
        assert isinstance(part.images, Files)
        for path, label in zip(part.images.paths, part.labels.tolist(), strict=True):
            assert split.classes[label] in Path(path).parts


def test_an_image_beside_the_class_folders_has_no_label_and_the_others_keep_theirs(tmp_path: Path) -> None:
    for i in range(8):
        save(tmp_path / ("cat" if i % 2 else "dog") / f"{i}.png", picture(2, 2))
    save(tmp_path / "stray.png", picture(2, 2))
    with pytest.warns(UserWarning, match=r"1 of 9 images.*stray\.png"):
        split = here(tmp_path)
    assert split.classes == ("cat", "dog")
    assert split.train.labels is not None
    assert (split.train.labels + 1).bincount().tolist() == [1, 3, 3]
    assert "stray.png" in names(split)
    for i in range(8):
        save(tmp_path / f"{i}.png", picture(2, 2))
    with pytest.warns(UserWarning, match="9 of 17 images"):
        assert here(tmp_path).classes == ()


def test_train_without_val_keeps_its_classes_and_gives_a_tenth_of_each_to_the_test(tmp_path: Path) -> None:
    for i in range(38):
        save(tmp_path / "train" / ("x" if i < 30 else "y") / f"{i}.png", picture(2, 2))
    with pytest.warns(UserWarning, match="no val/"):
        split = here(tmp_path)
    assert split.classes == ("x", "y")
    assert split.test.labels is not None
    assert split.test.labels.bincount().tolist() == [3, 1]
    assert names(here(tmp_path), "test") == names(split, "test")


def test_train_and_val_are_the_parts_and_classes_are_those_of_both(tmp_path: Path) -> None:
    for name in ("train/cat/1.png", "train/dog/2.png", "val/dog/3.png", "val/emu/4.png"):
        save(tmp_path / name)
    split = here(tmp_path)
    assert (names(split), names(split, "test")) == (["1.png", "2.png"], ["3.png", "4.png"])
    assert split.classes == ("cat", "dog", "emu")


@pytest.mark.parametrize("inside", ["imagenet", "."])
def test_imagenet_is_train_and_val_under_the_root(inside: str, tmp_path: Path) -> None:
    for name in ("train/n01/1.JPEG", "train/n02/2.JPEG", "val/n01/3.JPEG", "val/n02/4.JPEG"):
        save(tmp_path / inside / name)
    split = load("imagenet", DataOptions(root=str(tmp_path)))
    assert split.classes == ("n01", "n02")
    assert (names(split), names(split, "test")) == (["1.JPEG", "2.JPEG"], ["3.JPEG", "4.JPEG"])


def test_imagenet_without_val_is_told(tmp_path: Path) -> None:
    save(tmp_path / "imagenet" / "train" / "n01" / "1.JPEG")
    with pytest.raises(UserError, match="no folder 'val'"):
        load("imagenet", DataOptions(root=str(tmp_path)))


def test_the_parts_do_not_depend_on_where_the_folder_is(tmp_path: Path) -> None:
    for root in ("one", "elsewhere/two"):
        for i in range(30):
            save(tmp_path / root / f"{i}.png", picture(2, 2))
    one, two = here(tmp_path / "one"), here(tmp_path / "elsewhere" / "two")
    assert names(one, "test") == names(two, "test")
    assert len(one.test) == 3
    assert not set(names(one)) & set(names(one, "test"))


def test_the_first_few_are_of_every_class(tmp_path: Path) -> None:
    for i in range(60):
        save(tmp_path / "train" / f"class{i // 20}" / f"{i}.png", picture(2, 2))
    save(tmp_path / "val" / "class0" / "x.png")
    split = here(tmp_path, train_images=15)
    assert split.train.labels is not None
    assert set(split.train.labels.tolist()) == {0, 1, 2}


def test_links_that_lead_back_are_not_followed(tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / f"{i}.png")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    split = here(tmp_path)
    assert len(split.train) + len(split.test) == 3


def test_a_linked_class_folder_is_a_class(tmp_path: Path) -> None:
    for i in range(4):
        save(tmp_path / "data" / "cat" / f"{i}.png")
        save(tmp_path / "elsewhere" / "deep" / f"{i + 4}.png")
    (tmp_path / "data" / "dog").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "elsewhere" / "deep" / "back").symlink_to(tmp_path / "data", target_is_directory=True)
    for gone in ("nowhere", "itself"):
        (tmp_path / "data" / gone).symlink_to("itself", target_is_directory=True)
    split = here(tmp_path / "data")
    assert split.classes == ("cat", "dog")
    assert len(names(split) + names(split, "test")) == 8


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / "real" / f"{i}.png")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert len(here(tmp_path / "link").train) == 2


def test_hidden_files_are_no_pictures(tmp_path: Path) -> None:
    for name in ("1.png", "2.png", "._1.png", ".thumbs/3.png"):
        save(tmp_path / name)
    split = here(tmp_path)
    assert sorted(names(split) + names(split, "test")) == ["1.png", "2.png"]


def test_a_folder_without_pictures_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        here(tmp_path / "none")
    with pytest.raises(UserError, match=r"holds no images.*\.png"):
        here(tmp_path)
    save(tmp_path / "one.png")
    with pytest.raises(UserError, match="only 1 image"):
        here(tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "val").mkdir()
    with pytest.raises(UserError, match="train' holds no images"):
        here(tmp_path)


def test_a_folder_that_can_t_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "1.png")
    (tmp_path / "locked").mkdir()
    scan = os.scandir

    def refuse(path: str) -> object:  # root may read everything, so permissions alone would not show it
        if os.fspath(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=r"locked' can't be read: Permission denied"):
        here(tmp_path)


def broken(path: Path) -> Path:
    path.write_text("I am no picture")
    return path


def test_a_bad_one_is_replaced_by_the_next_good_one_and_named(tmp_path: Path) -> None:
    good = [save(tmp_path / f"{i}.png", picture(8, 8, seed=i)) for i in range(3)]
    bad = broken(tmp_path / "bad.png")
    images = Files([str(p) for p in (good[0], bad, good[1], good[2], bad)], 8)
    taken = images.fetch(torch.tensor([0, 1, 4, 3]))
    assert taken.rows.tolist() == [0, 2, 0, 3]
    expected = np.stack([np.asarray(picture(8, 8, seed=i)).transpose(2, 0, 1) for i in (0, 1, 0, 2)])
    assert (taken.images.numpy() == expected).all()
    assert [one.where for one in taken.bad] == [str(bad)]


def test_where_all_are_bad_the_first_is_told(tmp_path: Path) -> None:
    images = Files([str(broken(tmp_path / f"{i}.png")) for i in range(3)], 8)
    with pytest.raises(UserError, match=r"none of the 3 images can be used.*0\.png"):
        images.fetch(torch.tensor([0, 1]))


def test_the_size_of_a_picture_is_that_of_its_file(tmp_path: Path) -> None:
    assert picture_size(save(tmp_path / "a.png", picture(50, 30))) == (50, 30)


@pytest.mark.skipif(os.name != "posix", reason="only there may a name be any bytes")
def test_a_name_that_is_not_utf8_is_read_and_can_be_said(tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / "x" / f"{i}.png")
    raw = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(raw)
    for i in range(3):
        os.rename(os.fsencode(tmp_path / "x" / f"{i}.png"), raw + b"/%d\xff.png" % i)
    save(tmp_path / "x" / "a.png")
    split = here(tmp_path)
    assert split.classes == ("caf\\xe9", "x")
    assert len(split.train.images.fetch(torch.arange(len(split.train))).images) == 3
    with open(raw + b"/9\xff.png", "w") as file:
        file.write("no picture")
    bad = Files([os.fsdecode(raw + b"/9\xff.png"), str(tmp_path / "x" / "a.png")], 8).fetch(torch.tensor([0])).bad
    assert bad[0].where.encode().endswith(b"caf\\xe9/9\\xff.png")
    assert printable("Ä.png") == "Ä.png"
