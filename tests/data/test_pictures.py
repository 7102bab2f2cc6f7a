"""One picture from one file: of every kind, damaged, or meant to do harm."""

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phinets.data.decode import LARGEST, UnusableError, open_picture
from phinets.data.files import center, decode_square
from tests.data.making import noise, picture, save, smooth


def pixels(path: Path) -> np.ndarray:
    return np.asarray(open_picture(path))


def test_rgb_comes_as_it_is(tmp_path: Path) -> None:
    assert (pixels(save(tmp_path / "a.png", picture(5, 7))) == np.asarray(picture(5, 7))).all()


def test_grey_is_three_equal_channels(tmp_path: Path) -> None:
    gray = noise(6, 6)
    found = pixels(save(tmp_path / "a.png", Image.fromarray(gray)))
    assert (found == gray[:, :, None]).all()


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
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue", "blue")]
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
    small = decode_square(tmp_path / "a.jpg", 32).transpose(1, 2, 0)
    plain = np.asarray(smooth(32, 32)).astype(int)
    assert np.abs(small - np.rot90(plain, -1)).mean() < 4
    assert np.abs(small - plain).mean() > 40


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_an_array_is_a_picture_too(dtype: type, tmp_path: Path) -> None:
    image = noise(6, 6, 3)
    np.save(tmp_path / "a.npy", image if dtype is np.uint8 else (image / 255).astype(dtype))
    assert (pixels(tmp_path / "a.npy") == image).all()


def test_one_pixel_is_a_picture(tmp_path: Path) -> None:
    found = decode_square(save(tmp_path / "a.png", Image.new("RGB", (1, 1), (9, 8, 7))), 36)
    assert (found == np.array([9, 8, 7])[:, None, None]).all()


@pytest.mark.parametrize(("wide", "tall"), [(60_000, 1), (1, 60_000), (333, 100), (20, 31)])
def test_the_square_is_the_centre_whatever_the_shape(wide: int, tall: int) -> None:
    strip = smooth(wide, tall)
    found = center(strip, 16)
    assert found.shape == (3, 16, 16)
    if wide > 10 * tall:
        assert abs(found[0].mean() - 127) < 2
    if min(wide, tall) > 16:
        short = min(wide, tall)
        left, top = (wide - short) // 2, (tall - short) // 2
        cut = strip.crop((left, top, left + short, top + short)).resize((16, 16), Image.Resampling.BICUBIC)
        assert np.abs(found - np.asarray(cut).transpose(2, 0, 1).astype(int)).max() <= 6


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
        contents = {"gray array": np.zeros((4, 4)), "NaN": np.full((4, 4, 3), np.nan), "range": np.full((4, 4, 3), 2.0)}
        np.save(path.with_suffix(".npy"), contents.get(kind, np.zeros((4, 4, 3), int)))
        return path.with_suffix(".npy")
    return path


BAD = {
    "truncated": "truncated",
    "text": "none of JPEG, PNG",
    "empty": "none of JPEG, PNG",
    "bomb": "more than the limit",
    "small bomb": "more than the limit",
    "broken link": "No such file",
    "pipe": "no regular file",
    "another format": "none of JPEG, PNG",
    "floats": "unknown range",
    "lying array": "not a complete array",
    "gray array": "height, width, 3",
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

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(UnusableError, match=r"^Permission denied$"):
        open_picture(path)
