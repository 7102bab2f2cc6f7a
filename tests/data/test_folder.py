"""Folders of images as people have them: of every kind, some of them damaged, some of them meant to do harm."""

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.data import load
from phinets.data.files import Files, square
from phinets.data.pictures import LARGEST, UnusableError, open_picture, shown
from phinets.data.split import Split
from tests.data.making import noise


def picture(wide: int = 12, tall: int = 12, seed: int = 0) -> Image.Image:
    return Image.fromarray(noise(tall, wide, 3, seed=seed))


def smooth(wide: int, tall: int) -> Image.Image:
    """A picture that JPEG hardly changes: red grows to the right, green grows downwards."""
    x, y = np.meshgrid(np.linspace(0, 255, wide), np.linspace(0, 255, tall))
    return Image.fromarray(np.stack([x, y, np.full_like(x, 80)], axis=-1).astype(np.uint8))


def save(path: Path, image: Image.Image | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image or picture(seed=zlib.crc32(path.name.encode()))).save(path)
    return path


def here(root: Path, **more: object) -> Split:
    return load(f"folder:{root}", DataOptions(**more))  # type: ignore[arg-type]


def names(split: Split, part: str = "train") -> list[str]:
    images = split.parts[part].images
    assert isinstance(images, Files)
    return sorted(os.path.basename(path) for path in images.paths)


# what is found


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
    for part in split.parts.values():
        assert part.labels is not None
        assert isinstance(part.images, Files)
        for path, label in zip(part.images.paths, part.labels.tolist(), strict=True):
            assert split.classes[label] in Path(path).parts
    save(tmp_path / "stray.png")
    assert here(tmp_path).classes == ()


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


# what is usable


def pixels(path: Path) -> np.ndarray:
    return np.asarray(open_picture(path))


def test_rgb_comes_as_it_is(tmp_path: Path) -> None:
    assert (pixels(save(tmp_path / "a.png", picture(5, 7))) == np.asarray(picture(5, 7))).all()


def test_grey_is_three_equal_channels(tmp_path: Path) -> None:
    grey = noise(6, 6)
    found = pixels(save(tmp_path / "a.png", Image.fromarray(grey)))
    assert (found == grey[:, :, None]).all()


def test_transparency_is_left_out(tmp_path: Path) -> None:
    rgba = noise(6, 6, 4)
    assert (pixels(save(tmp_path / "a.png", Image.fromarray(rgba))) == rgba[:, :, :3]).all()


@pytest.mark.filterwarnings("error")
def test_a_palette_with_transparency_raises_no_word(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    picture().quantize(8).save(path, transparency=bytes(range(8)))
    assert pixels(path).shape == (12, 12, 3)


@pytest.mark.parametrize("ending", ["png", "tiff"])
def test_sixteen_bits_lose_their_lower_half_and_nothing_else(ending: str, tmp_path: Path) -> None:
    deep = np.random.default_rng(0).integers(0, 65536, (6, 6), dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / f"a.{ending}")
    assert (pixels(tmp_path / f"a.{ending}") == (deep // 256)[:, :, None]).all()


def test_cmyk_is_turned_into_rgb(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jpg", smooth(32, 32).convert("CMYK"))
    with Image.open(path) as file:
        assert file.mode == "CMYK"
    assert np.abs(pixels(path).astype(int) - np.asarray(smooth(32, 32))).mean() < 6


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_of_a_moving_picture_the_first_frame_counts(ending: str, tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "blue")]
    frames[0].save(tmp_path / f"a.{ending}", save_all=True, append_images=frames[1:], lossless=True)
    assert pixels(tmp_path / f"a.{ending}")[4, 4].tolist() == [255, 0, 0]


TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a.swapaxes(0, 1)[::-1, ::-1],
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.parametrize("orientation", TURNS)
def test_a_picture_is_upright_as_its_camera_says(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture(5, 7).save(tmp_path / "a.png", exif=exif)
    assert (pixels(tmp_path / "a.png") == TURNS[orientation](np.asarray(picture(5, 7)))).all()


def test_a_turned_jpeg_is_turned_when_decoded_small_too(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    smooth(320, 320).save(tmp_path / "a.jpg", exif=exif, quality=95)
    small = square(open_picture(tmp_path / "a.jpg", 32), 32).transpose(1, 2, 0)
    plain = np.asarray(smooth(32, 32)).astype(int)
    assert np.abs(small - np.rot90(plain, -1)).mean() < 4
    assert np.abs(small - plain).mean() > 40


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_an_array_is_a_picture_too(dtype: type, tmp_path: Path) -> None:
    image = noise(6, 6, 3)
    np.save(tmp_path / "a.npy", image if dtype is np.uint8 else (image / 255).astype(dtype))
    assert (pixels(tmp_path / "a.npy") == image).all()


def test_one_pixel_is_a_picture(tmp_path: Path) -> None:
    found = square(open_picture(save(tmp_path / "a.png", Image.new("RGB", (1, 1), (9, 8, 7)))), 36)
    assert (found == np.array([9, 8, 7])[:, None, None]).all()


@pytest.mark.parametrize(("wide", "tall"), [(60_000, 1), (1, 60_000), (333, 100), (20, 31)])
def test_the_square_is_the_centre_whatever_the_shape(wide: int, tall: int) -> None:
    strip = smooth(wide, tall)
    found = square(strip, 16)
    assert found.shape == (3, 16, 16)
    if wide > 10 * tall:
        assert abs(found[0].mean() - 127) < 2
    if min(wide, tall) > 16:
        short = min(wide, tall)
        left, top = (wide - short) // 2, (tall - short) // 2
        cut = strip.crop((left, top, left + short, top + short)).resize((16, 16), Image.Resampling.BICUBIC)
        assert np.abs(found - np.asarray(cut).transpose(2, 0, 1).astype(int)).max() <= 6


# what is not


def bomb(path: Path, wide: int, tall: int) -> None:
    """A PNG that claims a size and brings nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", wide, tall, 8, 2, 0, 0, 0)
    end = chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + end)


def make_bad(kind: str, path: Path) -> Path:
    """A file that holds no usable picture; where its name matters, with another ending."""
    if kind == "truncated":
        save(path.with_suffix(".jpg"), picture(64, 64))
        content = path.with_suffix(".jpg").read_bytes()
        path.with_suffix(".jpg").write_bytes(content[: 3 * len(content) // 4])
        return path.with_suffix(".jpg")
    if kind == "text":
        path.write_text("I am no picture")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "bomb":
        bomb(path, 60_000, 60_000)
    elif kind == "small bomb":
        bomb(path, 10_000, LARGEST // 10_000 + 1)
    elif kind == "broken link":
        path.symlink_to(path.with_name("nowhere.png"))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "another format":
        save(path.with_suffix(".eps"))
        path.with_suffix(".eps").rename(path)
    elif kind == "floats":
        Image.fromarray(np.zeros((4, 4), np.float32)).save(path.with_suffix(".tiff"))
        return path.with_suffix(".tiff")
    elif kind == "lying array":
        with path.with_suffix(".npy").open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**6, 3)}
            np.lib.format.write_array_header_1_0(file, header)
        return path.with_suffix(".npy")
    else:
        contents = {"grey array": np.zeros((4, 4)), "NaN": np.full((4, 4, 3), np.nan), "range": np.full((4, 4, 3), 2.0)}
        np.save(path.with_suffix(".npy"), contents.get(kind, np.zeros((4, 4, 3), int)))
        return path.with_suffix(".npy")
    return path


BAD = {
    "truncated": "truncated",
    "text": "none of JPEG, PNG",
    "empty": "none of JPEG, PNG",
    "bomb": "decompression bomb",
    "small bomb": "more than a picture should have",
    "broken link": "No such file",
    "pipe": "no ordinary file",
    "another format": "none of JPEG, PNG",
    "floats": "nobody said what is white",
    "lying array": "file size",
    "grey array": "no picture",
    "NaN": "NaN",
    "range": r"not in \[0, 1\]",
    "whole numbers": "int64",
}


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(("kind", "says"), BAD.items())
def test_a_bad_file_says_why(kind: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=says):
        open_picture(make_bad(kind, tmp_path / "a.png"))


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.png")

    def refuse(*_: object, **__: object) -> None:  # root may read everything
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("PIL.Image.open", refuse)
    with pytest.raises(UnusableError, match=r"^Permission denied$"):
        open_picture(path)


def test_a_bad_one_is_replaced_by_the_next_good_one_and_named(tmp_path: Path) -> None:
    good = [save(tmp_path / f"{i}.png", picture(8, 8, seed=i)) for i in range(3)]
    bad = make_bad("text", tmp_path / "bad.png")
    images = Files([str(p) for p in (good[0], bad, good[1], good[2], bad)], 8)
    taken = images.take(torch.tensor([0, 1, 4, 3]))
    assert taken.rows.tolist() == [0, 2, 0, 3]
    expected = np.stack([np.asarray(picture(8, 8, seed=i)).transpose(2, 0, 1) for i in (0, 1, 0, 2)])
    assert (taken.images.numpy() == expected).all()
    assert [one.where for one in taken.bad] == [str(bad)]


def test_where_all_are_bad_the_first_is_told(tmp_path: Path) -> None:
    images = Files([str(make_bad("text", tmp_path / f"{i}.png")) for i in range(3)], 8)
    with pytest.raises(UserError, match=r"none of the 3 images can be used.*0\.png"):
        images.take(torch.tensor([0, 1]))


def test_the_hook_for_crops_gives_the_picture_itself(tmp_path: Path) -> None:
    images = Files([str(save(tmp_path / "a.png", picture(50, 30))), str(make_bad("text", tmp_path / "b.png"))], 8)
    assert (np.asarray(images.open(0)) == np.asarray(picture(50, 30))).all()
    assert images.size(0) == (50, 30)
    with pytest.raises(UnusableError):
        images.open(1)


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
    assert len(split.train.images.take(torch.arange(len(split.train))).images) == 3
    with open(raw + b"/9\xff.png", "w") as file:
        file.write("no picture")
    bad = Files([os.fsdecode(raw + b"/9\xff.png"), str(tmp_path / "x" / "a.png")], 8).take(torch.tensor([0])).bad
    assert bad[0].where.encode().endswith(b"caf\\xe9/9\\xff.png")
    assert shown("Ä.png") == "Ä.png"
