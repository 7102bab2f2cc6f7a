"""A large JPEG is decoded at a fraction of its size, and shows the same picture."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.run import DataOptions
from phinets.config.views import PLANS, Window
from phinets.data import decode, load
from phinets.data.decode import UnusableError, decode_crops, open_picture, picture_size, true_box
from phinets.data.files import center, decode_square, image_batches
from phinets.views import prepare
from tests.data.making import noise, smooth

ORIENTATIONS = range(1, 9)
PHOTOS = Path(__file__).parents[3] / "shared" / "data" / "photos" / "val"


def photograph(wide: int, tall: int) -> Image.Image:
    """Noise with the 1/f spectrum of photographs."""
    generator = np.random.default_rng(0)
    frequency = np.hypot(np.fft.fftfreq(tall)[:, None], np.fft.rfftfreq(wide)[None]) + 1 / max(wide, tall)
    spectrum = np.fft.rfft2(generator.standard_normal((3, tall, wide))) / frequency
    pixels = np.fft.irfft2(spectrum, (tall, wide))
    pixels = 128 + 50 * (pixels - pixels.mean()) / pixels.std()
    return Image.fromarray(pixels.clip(0, 255).round().astype(np.uint8).transpose(1, 2, 0))


def save_jpeg(path: Path, picture: Image.Image, orientation: int = 1) -> Path:
    exif = Image.Exif()
    exif[decode.ORIENTATION] = orientation
    picture.save(path, quality=95, subsampling=0, exif=exif)
    return path


def error(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> float:
    return float(np.abs(ours.astype(int) - theirs).mean())


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_reduced_picture_is_neither_moved_nor_scaled(orientation: int, tmp_path: Path) -> None:
    for size in ((505, 505), (507, 401)):
        path = save_jpeg(tmp_path / "a.jpg", smooth(*size), orientation)
        reduced, whole = open_picture(path, 70), open_picture(path)
        left, top, right, bottom = true_box(reduced)
        assert (4 * (right - left), 4 * (bottom - top)) == whole.size
        assert error(center(reduced, 32), center(whole, 32)) < 0.2


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_window_of_a_reduced_picture_shows_the_same_pixels(orientation: int, tmp_path: Path) -> None:
    path = save_jpeg(tmp_path / "a.jpg", smooth(507, 401), orientation)
    whole = open_picture(path)
    for window in (
        Window(0, 0, 301, 303, "bicubic"),
        Window(whole.width - 310, whole.height - 305, *whole.size, "bicubic"),
    ):
        ours = decode_crops(path, lambda width, height, window=window: [window], 32)[0]  # type: ignore[misc]
        theirs = whole.crop(window[:4]).resize((32, 32), Image.Resampling.BICUBIC)
        assert error(ours, np.asarray(theirs).transpose(2, 0, 1)) < 0.5


def test_a_picture_has_the_same_features_by_every_way_in(tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = backbone("resnet-tiny").eval()
    path = save_jpeg(tmp_path / "a.jpg", photograph(1201, 901))
    whole = open_picture(path)
    loaded = Image.open(path)
    loaded.load()
    ways: list[Any] = [
        path,
        Image.open(path),
        loaded,
        Image.open(path).convert("RGB"),
        np.asarray(whole),
        torch.tensor(np.asarray(whole)),
    ]
    features = []
    for way in ways:
        (images,) = image_batches(way, 32, 8)
        with torch.no_grad():
            features.append(encoder(prepare(images, PLANS["simsiam-cifar"], 32)))
    for other in features:
        assert (other - features[2]).norm() <= 1e-3 * features[2].norm()


def test_a_picture_above_pillow_s_limit_is_decoded_in_little_memory(tmp_path: Path, monkeypatch: Any) -> None:
    """Limits are lowered, so that a small picture stands for a large one."""
    path = save_jpeg(tmp_path / "a.jpg", photograph(1200, 900))
    photograph(1200, 900).save(tmp_path / "a.png")
    whole, cut = open_picture(path), Window(100, 100, 900, 900, "bicubic")
    square, crop = decode_square(path, 32), decode_crops(path, lambda width, height: [cut], 32)
    monkeypatch.setattr(decode, "LARGEST", 50_000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50_000)
    assert open_picture(path).width * open_picture(path).height <= 50_000
    assert true_box(open_picture(path))[2] == whole.width / 8
    assert picture_size(path) == (1200, 900)
    for ours, full in ((decode_square(path, 32), square), (decode_crops(path, lambda w, h: [cut], 32), crop)):
        assert error(ours, full) < 0.5
    with pytest.raises(UnusableError, match="limit of 50,000"):
        open_picture(tmp_path / "a.png")
    assert open_picture(tmp_path / "a.png", max_pixels=2_000_000).size == (1200, 900)
    for limit in (None, 1_000_000):
        monkeypatch.setattr(decode, "LARGEST_JPEG", 1_000_000)
        with pytest.raises(UnusableError, match="limit of 1,000,000"):
            open_picture(path, max_pixels=limit)


def test_the_option_reaches_the_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_jpeg(tmp_path / f"{name}.jpg", photograph(60, 40))
    split = load(f"folder:{tmp_path}", DataOptions(max_pixels=2_399))
    with pytest.raises(UserError, match=r"2,399 \(--max-pixels\)"):
        split.train.images.fetch(torch.tensor([0]))


@pytest.mark.skipif(not PHOTOS.is_dir(), reason="needs the photographs")
def test_reduced_photographs_are_within_half_a_level_of_a_full_decode(monkeypatch: Any) -> None:
    paths, errors = sorted(PHOTOS.glob("*/*.JPEG"))[::5], []
    for path in paths:
        whole = open_picture(path)
        window = Window(0, 0, *whole.size, "bicubic")
        ours = decode_crops(path, lambda width, height, window=window: [window], 32)[0]  # type: ignore[misc]
        theirs = whole.resize((32, 32), Image.Resampling.BICUBIC)
        errors.append(error(ours, np.asarray(theirs).transpose(2, 0, 1)))
    assert len(paths) >= 20
    assert np.mean(errors) <= 0.5


def test_arrays_are_resized_as_files_are(tmp_path: Path) -> None:
    pixels = noise(50, 70, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    plan = PLANS["simsiam-cifar"]
    from_file = prepare(torch.from_numpy(decode_square(tmp_path / "a.png", 24))[None], plan)
    assert torch.equal(prepare(torch.from_numpy(pixels).permute(2, 0, 1)[None], plan, 24), from_file)
