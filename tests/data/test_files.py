"""Pictures in files: whatever can't be used is named and never shown."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import BadImage, BadImages, load
from phinets.data.decode import UnusableError
from phinets.data.files import Files, decode_square
from phinets.runs.trainer import run
from tests.runs.test_pretrain import TINY, Listener

RANDOM = np.random.default_rng(0)


def picture(height: int = 20, width: int = 24) -> np.ndarray:
    return RANDOM.integers(0, 256, (height, width, 3), dtype=np.uint8)


def write_bad(path: Path) -> Path:
    """A file that can't be used, of the kind that its name says."""
    if path.name == "torn.png":
        whole = path.with_name("whole.png")
        Image.fromarray(picture()).save(whole)
        path.write_bytes(whole.read_bytes()[:200])
        whole.unlink()
    elif path.name == "text.jpg":
        path.write_text("not a picture")
    elif path.name == "nan.npy":
        pixels = picture() / 255
        pixels[3, 4, 1] = np.nan
        np.save(path, pixels)
    elif path.name == "cut.npy":
        np.save(path, picture())
        path.write_bytes(path.read_bytes()[:-50])
    return path


def write_folder(root: Path, good: int, bad: tuple[str, ...] = ()) -> Path:
    """A folder of random pictures, some of them bad."""
    root.mkdir(parents=True)
    for i in range(good):
        Image.fromarray(picture()).save(root / f"{i:03}.png")
    for name in bad:
        write_bad(root / name)
    return root


def test_a_square_is_the_centre_of_the_picture(tmp_path: Path) -> None:
    pixels = picture(20, 30)
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    assert np.array_equal(decode_square(tmp_path / "wide.png", 20), pixels[:, 5:25].transpose(2, 0, 1))
    np.save(tmp_path / "wide.npy", pixels)
    assert np.array_equal(decode_square(tmp_path / "wide.npy", 20), decode_square(tmp_path / "wide.png", 20))
    np.save(tmp_path / "floats.npy", pixels / 255)
    assert np.array_equal(decode_square(tmp_path / "floats.npy", 20), decode_square(tmp_path / "wide.png", 20))


@pytest.mark.parametrize(
    ("name", "says"),
    [("torn.png", "truncated"), ("text.jpg", "none of JPEG"), ("nan.npy", "NaN"), ("cut.npy", "not a complete array")],
)
def test_a_bad_file_says_why(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=says):
        decode_square(write_bad(tmp_path / name), 16)


def test_the_next_good_picture_stands_in_for_a_bad_one(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "photos", good=3, bad=("torn.png", "nan.npy"))
    paths = [root / name for name in ("000.png", "torn.png", "nan.npy", "001.png", "002.png")]
    taken = Files(paths, 16).fetch(torch.tensor([4, 1, 2, 0]))
    assert taken.rows.tolist() == [4, 3, 3, 0]
    assert {Path(bad.where).name for bad in taken.bad} == {"torn.png", "nan.npy"}
    assert torch.equal(taken.images[1], torch.from_numpy(decode_square(root / "001.png", 16)))


def test_a_bad_picture_at_the_end_is_replaced_from_the_beginning(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "photos", good=1, bad=("torn.png",))
    assert Files([root / "000.png", root / "torn.png"], 16).fetch(torch.tensor([1])).rows.tolist() == [0]


def test_where_no_picture_is_good_the_first_is_named(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "photos", good=0, bad=("torn.png", "nan.npy"))
    with pytest.raises(UserError, match="none of the 2 images"):
        Files(sorted(root.iterdir()), 16).fetch(torch.tensor([0]))


def test_each_bad_image_counts_once_and_too_many_are_fatal() -> None:
    bad_images = BadImages(limit=1)
    for _ in range(2):
        bad_images.add([BadImage("a.png", "torn")])
    assert bad_images.drain() == [BadImage("a.png", "torn")]
    assert bad_images.drain() == []
    bad_images.require_few()
    bad_images.add([BadImage("b.png", "torn too")])
    with pytest.raises(UserError, match=r"2 images can't be used.*'b\.png': torn too.*--max-bad-images"):
        bad_images.require_few()


def test_a_run_skips_a_few_bad_images_names_each_once_and_counts_them(tmp_path: Path) -> None:
    names = ("torn.png", "text.jpg", "nan.npy", "cut.npy")
    root = write_folder(tmp_path / "photos", good=60, bad=names)
    listener = Listener()
    config = replace(TINY, data=f"folder:{root}", source=DataOptions(image_size=16, max_bad_images=4))
    record = run(config, tmp_path / "run", callback=listener)
    lines = [row for row in record.journal if row["kind"] == "bad-image"]
    train = {Path(path).name for path in load(config.data, config.source).train.images.paths}  # type: ignore[attr-defined]
    assert {Path(row["path"]).name for row in lines} == set(names) & train
    assert len(lines) == len(listener.heard) == record.summary.bad_images > 1
    assert all(row["why"] and row["step"] >= 1 for row in lines)
    assert record.summary.knn is None
    assert "no labels" in record.summary.protocol


def test_a_run_with_too_many_bad_images_stops_with_their_paths(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "photos", good=60, bad=("torn.png", "text.jpg", "nan.npy", "cut.npy"))
    config = replace(TINY, data=f"folder:{root}", source=DataOptions(image_size=16, max_bad_images=0))
    with pytest.raises(UserError, match=r"can't be used, and --max-bad-images is 0.*photos.*--resume"):
        run(config, tmp_path / "run")


def test_a_folder_s_subfolders_are_its_classes(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        write_folder(tmp_path / "photos" / name, good=20)
    split = load(f"folder:{tmp_path / 'photos'}", DataOptions(image_size=16))
    assert split.classes == ("cat", "dog")
    assert len(split.train) == 36
    assert len(split.test) == 4
    assert split.train.labels is not None
    names = [Path(path).parent.name for path in split.train.images.paths]  # type: ignore[attr-defined]
    assert names == [split.classes[label] for label in split.train.labels.tolist()]


def test_train_and_val_are_the_two_parts(tmp_path: Path) -> None:
    for part, good in (("train", 5), ("val", 3)):
        for name in ("cat", "dog"):
            write_folder(tmp_path / part / name, good=good)
    split = load(f"folder:{tmp_path}", DataOptions(image_size=16))
    assert (len(split.train), len(split.test)) == (10, 6)
    assert split.test.labels is not None
    assert sorted(split.test.labels.tolist()) == [0] * 3 + [1] * 3


def test_a_folder_that_is_not_there_or_empty_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no folder.*missing"):
        load(f"folder:{tmp_path / 'missing'}", DataOptions())
    with pytest.raises(UserError, match="holds no images"):
        load(f"folder:{tmp_path}", DataOptions())
    with pytest.raises(UserError, match=r"kind of place called 'foldr'.*Did you mean 'folder'"):
        load("foldr:x", DataOptions())
