"""A fingerprint changes with the data and the labels, and with nothing else."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phinets.config.run import DataOptions
from phinets.data import DataSplits, Files, ImageSet, fingerprint, load
from tests.data import making


def painted(root: Path, classes: tuple[str, ...] = ("ant", "bee"), n: int = 10) -> Path:
    """So many pictures in each class folder; their names don't say the class."""
    for k, name in enumerate(classes):
        for i in range(n):
            making.save(root / name / f"{k * n + i:03}.png")
    return root


def said(root: Path) -> dict[str, str]:
    return fingerprint(load(f"folder:{root}", DataOptions()))


def test_labels_of_an_npz_that_have_changed_are_noticed(tmp_path: Path) -> None:
    images, labels = making.noise(40, 8, 8, 3), np.arange(40) % 2
    found = []
    for name, known in (("one", labels), ("same", labels), ("other", 1 - labels), ("none", None)):
        arrays: dict[str, Any] = {"X": images} | ({} if known is None else {"Y": known})
        np.savez(tmp_path / f"{name}.npz", **arrays)
        found.append(fingerprint(load(f"npz:{tmp_path / name}.npz", DataOptions())))
    assert found[0] == found[1]
    for part in ("train", "test"):
        assert len({one[part] for one in found}) == 3


def test_the_label_of_a_single_image_is_noticed() -> None:
    images = load("shapes", DataOptions(train_images=20, test_images=5, image_size=8)).train.images
    labels = torch.arange(20) % 2
    other = labels.clone()
    other[7] = -1
    one, two = (DataSplits(ImageSet(images, known), ImageSet(images, labels), ()) for known in (labels, other))
    assert fingerprint(one)["train"] != fingerprint(two)["train"]
    assert fingerprint(one)["test"] == fingerprint(two)["test"]


@pytest.mark.parametrize("moved", ["019.png", "*.png"])
def test_files_that_were_moved_to_another_class_are_noticed(moved: str, tmp_path: Path) -> None:
    """Also where there is no label to tell it, and where the order of the paths stays as it was."""
    (painted(tmp_path) / "cat").mkdir()
    before = said(tmp_path)
    for path in list((tmp_path / "bee").glob(moved)):
        path.rename(tmp_path / "cat" / path.name)
    assert said(tmp_path) != before


def test_files_that_were_moved_among_folders_that_are_no_classes_are_noticed(tmp_path: Path) -> None:
    painted(tmp_path)
    making.save(tmp_path / "cover.png")
    before = said(tmp_path)
    (tmp_path / "bee").rename(tmp_path / "bug")
    assert said(tmp_path) != before


@pytest.mark.parametrize("parts", [("",), ("train", "val")])
def test_data_that_were_moved_as_a_whole_are_the_same(
    parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in parts:
        painted(tmp_path / "here" / part)
    before = said(tmp_path / "here")
    elsewhere = tmp_path / "far" / "away"
    elsewhere.parent.mkdir()
    (tmp_path / "here").rename(elsewhere)
    assert said(elsewhere) == before
    for place, told in ((elsewhere.parent, "away"), (elsewhere, "."), (elsewhere, "../away")):
        monkeypatch.chdir(place)
        assert said(Path(told)) == before


def test_imagenet_is_the_same_under_another_root(tmp_path: Path) -> None:
    for part in ("train", "val"):
        painted(tmp_path / "a" / "imagenet" / part)
    before = fingerprint(load("imagenet", DataOptions(root=str(tmp_path / "a"))))
    (tmp_path / "a").rename(tmp_path / "b")
    assert fingerprint(load("imagenet", DataOptions(root=str(tmp_path / "b")))) == before


def test_no_file_and_one_file_have_a_fingerprint() -> None:
    sets = [ImageSet(Files(paths, 8), None) for paths in ([], ["a/1.png"], ["b/1.png"])]
    none, one, same = (fingerprint(DataSplits(part, part, ())) for part in sets)
    assert none != one == same


def test_a_file_that_was_replaced_is_noticed_by_its_size_or_its_time(tmp_path: Path) -> None:
    painted(tmp_path)
    before, path = said(tmp_path), tmp_path / "ant" / "003.png"
    assert said(tmp_path) == before
    times = path.stat()
    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    larger = said(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert said(tmp_path) == before
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 10**9))
    later = said(tmp_path)
    for other in (larger, later):
        (changed,) = (name for name in before if before[name] != other[name])
        assert before[changed].partition(", sizes and times")[0] == other[changed].partition(", sizes and times")[0]
