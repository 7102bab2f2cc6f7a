"""CIFAR-5m: converted once, whole or not at all, and read from the disk; and the npz files that it comes in."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import cifar5m, load
from phinets.data.cifar5m import PreparedFile, images_path, labels_path, prepare
from tests.data.making import cifar5m_parts, noise


def states(parts: list[PreparedFile]) -> list[str]:
    return [part.state for part in parts]


def damaged(path: Path, at: float = 0.5) -> None:
    """One byte of the file changed, some way into it."""
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 0xFF
    path.write_bytes(bytes(content))


def test_parts_become_what_they_were_with_channels_first(tmp_path: Path) -> None:
    images = cifar5m_parts(tmp_path / "from", n=50)
    done = list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    assert [part[:2] for part in done] == [(f"part{i}", 50) for i in range(6)]
    for i, pixels in enumerate(images):
        assert (np.load(images_path(tmp_path / "cifar5m", i)) == pixels.transpose(0, 3, 1, 2)).all()
        assert (np.load(labels_path(tmp_path / "cifar5m", i)) == np.arange(50) % 10).all()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_packed_or_not_and_longer_than_a_chunk(save: Callable[..., None], tmp_path: Path) -> None:
    pixels = noise(2_345, 32, 32, 3)
    save(tmp_path / "part2.npz", X=pixels, Y=np.zeros(2_345, np.int32))
    list(prepare(tmp_path, tmp_path / "to"))
    assert (np.load(images_path(tmp_path / "to", 2)) == pixels.transpose(0, 3, 1, 2)).all()


def test_learned_from_is_parts_0_to_4_asked_about_is_part_5_known_is_part_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cifar5m, "BANK", 30)
    monkeypatch.setattr(cifar5m, "TEST", 20)
    images = cifar5m_parts(tmp_path / "from", n=50)
    list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    split = load("cifar5m", DataOptions(root=str(tmp_path)))
    expected = {"train": np.concatenate(images[:5]), "test": images[5][:20], "bank": images[0][:30]}
    for name, part in split.splits.items():
        found = part.images.fetch(torch.arange(len(part))).images.numpy()
        assert (found == expected[name].transpose(0, 3, 1, 2)).all()
        assert part.labels is not None
        assert (part.labels.numpy() == np.arange(len(part)) % 10).all()
        assert part.labels.dtype == torch.int64
    assert set(split.splits) == set(expected)


def test_the_published_numbers() -> None:
    assert (cifar5m.BANK, cifar5m.TEST, list(cifar5m.FILES)) == (50_000, 10_000, [0, 1, 2, 3, 4, 5])


def test_chosen_classes_are_streamed_too(tmp_path: Path) -> None:
    cifar5m_parts(tmp_path / "from", n=50)
    list(prepare(tmp_path / "from", tmp_path / "cifar5m"))
    split = load("cifar5m", DataOptions(root=str(tmp_path), classes=("cat", "bird")))
    assert (len(split.train), len(split.test), len(split.eval_train)) == (50, 10, 10)
    assert split.train.labels is not None
    assert split.train.labels[:4].tolist() == [1, 0, 1, 0]


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    cifar5m_parts(tmp_path / "from", parts=(0, 1))
    assert states(list(prepare(tmp_path / "from", tmp_path / "to"))) == ["converted"] * 2 + ["not found"] * 4
    before = images_path(tmp_path / "to", 0).stat().st_mtime_ns
    cifar5m_parts(tmp_path / "from", parts=(2, 3, 4, 5))
    assert states(list(prepare(tmp_path / "from", tmp_path / "to"))) == ["already there"] * 2 + ["converted"] * 4
    assert images_path(tmp_path / "to", 0).stat().st_mtime_ns == before
    for path in (tmp_path / "from").iterdir():
        path.unlink()
    assert states(list(prepare(tmp_path / "from", tmp_path / "to"))) == ["already there"] * 6


@pytest.mark.parametrize("which", [images_path, labels_path])
def test_a_part_that_was_cut_or_lost_since_is_made_anew(which: Callable[[Path, int], Path], tmp_path: Path) -> None:
    cifar5m_parts(tmp_path)
    list(prepare(tmp_path, tmp_path / "to"))
    path = which(tmp_path / "to", 3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    assert states(list(prepare(tmp_path, tmp_path / "to")))[3] == "converted"
    assert path.read_bytes() == whole
    np.save(path, np.load(path)[:-1])  # a whole file, but it no longer agrees with the other one
    assert states(list(prepare(tmp_path, tmp_path / "to")))[3] == "converted"
    path.unlink()
    assert states(list(prepare(tmp_path, tmp_path / "to")))[3] == "converted"
    assert path.read_bytes() == whole


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_part_is_refused_and_leaves_nothing_but_the_parts_before(
    save: Callable[..., None], tmp_path: Path
) -> None:
    cifar5m_parts(tmp_path / "from")
    save(tmp_path / "from" / "part1.npz", X=noise(50, 32, 32, 3), Y=np.zeros(50, int))
    damaged(tmp_path / "from" / "part1.npz")
    with pytest.raises(UserError, match=r"part1.npz' is not a complete .npz file: .*Fetch it again"):
        list(prepare(tmp_path / "from", tmp_path / "to"))
    assert not images_path(tmp_path / "to", 1).exists()
    assert not list((tmp_path / "to").glob(".*"))
    assert cifar5m.prepared_images(tmp_path / "to", 0) == 50


def test_a_part_cut_short_in_its_download_is_refused(tmp_path: Path) -> None:
    cifar5m_parts(tmp_path, parts=(0,))
    whole = (tmp_path / "part0.npz").read_bytes()
    (tmp_path / "part0.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"part0.npz' is not a complete"):
        list(prepare(tmp_path, tmp_path / "to"))
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"X": noise(5, 3, 32, 32), "Y": np.zeros(5, int)}, r"not uint8 \(n, 32, 32, 3\)"),
        ({"X": noise(5, 16, 16, 3), "Y": np.zeros(5, int)}, r"\(5, 16, 16, 3\)"),
        ({"X": noise(5, 32, 32, 3) / 255, "Y": np.zeros(5, int)}, "Multiply values from 0 to 1 by 255"),
        ({"X": noise(5, 32, 32, 3), "Y": np.zeros(4, int)}, r"not whole numbers \(5,\)"),
        ({"X": noise(5, 32, 32, 3), "Y": np.zeros(5)}, "float64"),
        ({"X": noise(5, 32, 32, 3), "Y": np.full(5, 10)}, "the label 10, but there are 10 classes"),
        ({"X": noise(5, 32, 32, 3), "Y": np.full(5, -1)}, "the label -1"),
        ({"X": noise(5, 32, 32, 3)}, "no array 'Y', only: X"),
        ({"images": noise(5, 32, 32, 3)}, "no array 'X', only: images"),
        ({"X": np.array([{}], dtype=object), "Y": np.zeros(1, int)}, "no plain array"),
        ({"X": np.asfortranarray(noise(5, 32, 32, 3)), "Y": np.zeros(5, int)}, "column by column"),
        ({"X": noise(0, 32, 32, 3), "Y": np.zeros(0, int)}, "not uint8"),
    ],
)
def test_other_arrays_are_refused(arrays: dict[str, np.ndarray], says: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "part0.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=says):
        list(prepare(tmp_path, tmp_path / "to"))
    assert not list((tmp_path / "to").iterdir())


def test_a_header_that_lies_about_the_length_is_refused(tmp_path: Path) -> None:
    cifar5m_parts(tmp_path, n=50, parts=(0,))
    with zipfile.ZipFile(tmp_path / "part0.npz") as archive:
        x, y = archive.read("X.npy"), archive.read("Y.npy")
    for claimed, says in ((b"(60, 32, 32, 3)", "ends in row 50 of 60"), (b"(40, 32, 32, 3)", "longer than its header")):
        n = int(claimed[1:3])
        with zipfile.ZipFile(tmp_path / "part0.npz", "w") as archive:
            archive.writestr("X.npy", x.replace(b"(50, 32, 32, 3)", claimed))
            archive.writestr("Y.npy", y.replace(b"(50,)", b"(%d,)" % n)[: -8 * 50] + bytes(8 * n))
        with pytest.raises(UserError, match=says):
            list(prepare(tmp_path, tmp_path / "to"))
        assert cifar5m.prepared_images(tmp_path / "to", 0) == 0


def test_a_full_disk_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cifar5m_parts(tmp_path)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=50 * 3072 - 1))
    with pytest.raises(UserError, match=r"has 0.0 GB free.*converted files stay"):
        list(prepare(tmp_path, tmp_path / "to"))
    assert not list((tmp_path / "to").iterdir())


def test_nothing_to_convert_is_said_with_the_way_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none of part0.npz to part5.npz.*curl -O https://.*part0.npz"):
        list(prepare(tmp_path, tmp_path / "to"))
    assert not (tmp_path / "to").exists()


def test_missing_parts_are_named(tmp_path: Path) -> None:
    cifar5m_parts(tmp_path / "cifar5m", parts=(0, 1, 2, 5))
    list(prepare(tmp_path / "cifar5m", tmp_path / "cifar5m"))
    with pytest.raises(UserError, match=r"part3, part4 of cifar5m can't be found.*phinets data prepare cifar5m"):
        load("cifar5m", DataOptions(root=str(tmp_path)))
