"""Images in one .npz file."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import load
from tests.data.making import noise


def npz(path: Path, **arrays: np.ndarray) -> str:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return f"npz:{path}"


def test_an_npz_gives_nine_tenths_to_learn_from_and_one_to_ask_about(tmp_path: Path) -> None:
    pixels, labels = noise(50, 7, 9, 3), np.arange(50) // 10
    split = load(npz(tmp_path / "a.npz", X=pixels, Y=labels), DataOptions())
    assert (len(split.train), len(split.test)) == (45, 5)
    assert split.classes == ("0", "1", "2", "3", "4")
    known = {image.transpose(2, 0, 1).tobytes(): label for image, label in zip(pixels, labels, strict=True)}
    seen = []
    for part in (split.train, split.test):
        images = part.images.fetch(torch.arange(len(part))).images.numpy()
        assert part.labels is not None
        assert [known[image.tobytes()] for image in images] == part.labels.tolist()
        seen += [image.tobytes() for image in images]
    assert sorted(seen) == sorted(known)
    again = load(f"npz:{tmp_path / 'a.npz'}", DataOptions())
    assert torch.equal(again.train.labels, split.train.labels)  # type: ignore[arg-type]


def test_an_npz_may_have_no_labels(tmp_path: Path) -> None:
    split = load(npz(tmp_path / "a.npz", X=noise(12, 8, 8, 3)), DataOptions())
    assert split.train.labels is None
    assert split.classes == ()
    with pytest.raises(UserError, match="these images have none"):
        load(f"npz:{tmp_path / 'a.npz'}", DataOptions(classes=("0",)))


def test_an_npz_that_claims_more_than_the_memory_is_not_begun(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w") as archive, archive.open("X.npy", "w") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (10**10, 32, 32, 3)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(UserError, match="GB of memory"):
        load(f"npz:{tmp_path / 'bomb.npz'}", DataOptions())


def test_an_npz_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        load(f"npz:{tmp_path / 'none.npz'}", DataOptions())
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(UserError, match=r"is not a complete .npz file"):
        load(f"npz:{tmp_path / 'text.npz'}", DataOptions())
    with pytest.raises(UserError, match="holds one image"):
        load(npz(tmp_path / "one.npz", X=noise(1, 8, 8, 3)), DataOptions())
    with pytest.raises(UserError, match="no plain array"):
        load(npz(tmp_path / "evil.npz", X=np.array([{}], dtype=object)), DataOptions())


def test_the_labels_that_occur_are_the_classes_however_large(tmp_path: Path) -> None:
    labels = np.array([7, 4294967295] * 10, np.uint32)
    split = load(npz(tmp_path / "a.npz", X=noise(20, 8, 8, 3), Y=labels), DataOptions())
    assert split.classes == ("7", "4294967295")
    assert split.train.labels is not None
    assert split.train.labels.bincount().tolist() == [9, 9]
    beyond = np.full(20, 2**63, np.uint64)
    with pytest.raises(UserError, match="9223372036854775808"):
        load(npz(tmp_path / "b.npz", X=noise(20, 8, 8, 3), Y=beyond), DataOptions())


def test_the_test_images_are_a_tenth_of_each_class(tmp_path: Path) -> None:
    labels = np.repeat([0, 1, 2, 3, 4], [100, 30, 8, 2, 1])
    split = load(npz(tmp_path / "a.npz", X=noise(141, 4, 4, 3), Y=labels), DataOptions())
    assert split.test.labels is not None
    assert split.test.labels.bincount(minlength=5).tolist() == [10, 3, 1, 1, 0]
    alone = load(npz(tmp_path / "b.npz", X=noise(20, 4, 4, 3), Y=np.arange(20)), DataOptions())
    assert (len(alone.train), len(alone.test)) == (18, 2)
