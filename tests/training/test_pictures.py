"""Views of pictures in files: cut out of each picture as torchvision does it, while it is decoded."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

from phinets.config.views import PLANS, Interpolation, ViewPlan, Window
from phinets.data import Files, InMemory
from phinets.data.decode import decode_crops
from phinets.training.loader import ViewLoader
from phinets.views import BatchSlice, CropPlan, random_stream

CPU = torch.device("cpu")
MODES = {"bilinear": InterpolationMode.BILINEAR, "bicubic": InterpolationMode.BICUBIC}


def smooth(height: int, width: int, seed: int = 0) -> Image.Image:
    """A picture of large, soft spots, clear of black and white, as photographs mostly are."""
    spots = np.random.default_rng(seed).integers(60, 200, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(spots).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_a_window_is_torchvision_s_resized_crop(interpolation: Interpolation, tmp_path: Path) -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (70, 90, 3), dtype=np.uint8))
    picture.save(tmp_path / "noise.png")
    for left, top, right, bottom in ((0, 0, 90, 70), (5, 9, 50, 61), (80, 60, 90, 70), (3, 3, 4, 4)):
        window = Window(left, top, right, bottom, interpolation)
        ours = decode_crops(tmp_path / "noise.png", lambda width, height, w=window: [w], 24)[0]  # type: ignore[misc]
        theirs = F.resized_crop(picture, top, left, bottom - top, right - left, [24, 24], MODES[interpolation])
        assert np.array_equal(ours, np.asarray(theirs).transpose(2, 0, 1))


def test_a_large_jpeg_is_decoded_at_a_fraction_and_looks_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smooth(900, 1200).save(tmp_path / "large.jpg", quality=95)
    window = Window(100, 60, 1100, 860, "bilinear")
    decoded: list[tuple[int, int]] = []
    crop = Image.Image.crop

    def watched(self: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
        decoded.append(self.size)
        return crop(self, box)

    monkeypatch.setattr(Image.Image, "crop", watched)
    ours = decode_crops(tmp_path / "large.jpg", lambda width, height: [window], 32)[0]
    assert decoded == [(150, 113)]
    with Image.open(tmp_path / "large.jpg") as whole:
        theirs = np.asarray(F.resized_crop(whole, 60, 100, 800, 1000, [32, 32], MODES["bilinear"]))
    assert np.abs(ours.transpose(1, 2, 0).astype(int) - theirs).max() <= 4


def test_a_small_window_is_never_taken_from_too_small_a_picture(tmp_path: Path) -> None:
    smooth(900, 1200).save(tmp_path / "large.jpg", quality=95)
    windows = [Window(0, 0, 1200, 900, "bilinear"), Window(10, 10, 42, 42, "bilinear")]
    ours = decode_crops(tmp_path / "large.jpg", lambda width, height: windows, 32)[1]
    with Image.open(tmp_path / "large.jpg") as whole:
        assert np.array_equal(ours, np.asarray(whole.crop((10, 10, 42, 42))).transpose(2, 0, 1))


def test_a_picture_held_sideways_is_cut_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    smooth(400, 800).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    sizes: list[tuple[int, int]] = []

    def windows(width: int, height: int) -> list[Window]:
        sizes.append((width, height))
        return [Window(0, 0, width, height // 2, "bilinear")]

    seen = decode_crops(tmp_path / "turned.jpg", windows, 16)[0]
    assert sizes == [(400, 800)]
    upright = smooth(400, 800).transpose(Image.Transpose.ROTATE_270)
    expected = np.asarray(upright.crop((0, 0, 400, 400)).resize((16, 16), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(seen.astype(int) - expected).max() <= 6


def loaders(tmp_path: Path, plan: ViewPlan) -> tuple[ViewLoader, ViewLoader]:
    """The same twelve pictures, in files and in memory."""
    pictures = [smooth(40, 40, seed) for seed in range(12)]
    paths = [tmp_path / f"{i}.png" for i in range(12)]
    for picture, path in zip(pictures, paths, strict=True):
        picture.save(path)
    pixels = torch.from_numpy(np.stack([np.asarray(picture).transpose(2, 0, 1) for picture in pictures]))
    files, memory = (
        ViewLoader(images=images, plan=plan, anchor="original", batch=6, seed=3, size=32, device=CPU)
        for images in (Files(paths, 32), InMemory(pixels))
    )
    return files, memory


@pytest.mark.parametrize("name", ["simsiam-cifar", "simsiam-imagenet", "byol-asymmetric", "ucl"])
def test_pictures_of_one_size_are_seen_as_images_in_memory_are(name: str, tmp_path: Path) -> None:
    """The same boxes, flips and colors; a file's crop is rounded to bytes before its colors change."""
    plan = PLANS[name]
    files, memory = loaders(tmp_path, plan)
    for ours, theirs in zip(files.batches(0, 4), memory.batches(0, 4), strict=True):
        for one, two in zip(ours.views, theirs.views, strict=True):
            assert one is not None
            assert two is not None
            difference = (one - two).abs() * torch.tensor(plan.std)[:, None, None]
            assert float(difference.mean()) < 2 / 255
            assert float((difference > 4 / 255).float().mean()) < 0.02


def test_a_share_of_a_batch_of_pictures_is_seen_as_in_the_whole(tmp_path: Path) -> None:
    for i in range(6):
        smooth(30 + 7 * i, 64 - 5 * i, i).save(tmp_path / f"{i}.png")
    files = Files([tmp_path / f"{i}.png" for i in range(6)], 24)

    def seen(first: int, n: int) -> torch.Tensor:
        share = BatchSlice(first, 6)
        frames = CropPlan(
            PLANS["simsiam-imagenet"], random_stream(0, "views", 1), anchor="augmented", size=24, share=share
        )
        views = frames.views(files.fetch_crops(torch.arange(first, first + n), frames.windows, 24).images)
        assert views.anchor is not None
        return torch.stack([views.first, views.second, views.anchor])

    whole = seen(0, 6)
    assert torch.allclose(torch.cat([seen(0, 2), seen(2, 4)], dim=1), whole, atol=1e-5)
    assert not torch.equal(whole[0], whole[2])


def test_the_crop_has_the_picture_s_own_size_to_choose_from() -> None:
    """Over many draws the boxes reach every edge of a wide picture, and their areas are the plan's shares of it."""
    plan, share = PLANS["simsiam-cifar"], BatchSlice(0, 2000)
    frames = CropPlan(plan, random_stream(0), anchor=None, size=32, share=share)
    boxes = np.array([frames.windows(i, 300, 100)[0][:4] for i in range(2000)])
    assert boxes[:, 0].min() == boxes[:, 1].min() == 0
    assert boxes[:, 2].max() == 300
    assert boxes[:, 3].max() == 100
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) / 30_000
    assert plan.first is not None
    assert areas.min() >= plan.first.crop_scale[0] * 0.95
