"""What a survey says is what is there."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from phinets.data.files import Files
from phinets.data.image_sets import ImageSet, InMemory
from phinets.data.summary import BATCH, summarize
from tests.data.making import noise


def test_mean_and_std_are_those_of_all_pixels() -> None:
    pixels = noise(2 * BATCH + 3, 3, 6, 6)
    pixels[:, 1] //= 2
    found = summarize(ImageSet(InMemory(torch.from_numpy(pixels)), None), (), 6)
    assert found.mean == pytest.approx((pixels / 255).mean(axis=(0, 2, 3)))
    assert found.std == pytest.approx((pixels / 255).std(axis=(0, 2, 3)))
    assert (found.images, found.labeled, found.classes, found.bad) == (2 * BATCH + 3, 0, {}, ())
    assert found.smallest == found.largest == (6, 6)


def test_labels_are_counted_and_unknown_ones_are_not() -> None:
    labels = torch.tensor([0, 2, 2, -1, -1])
    found = summarize(ImageSet(InMemory(torch.zeros(5, 3, 4, 4, dtype=torch.uint8)), labels), ("a", "b", "c"), 4)
    assert found.classes == {"a": 1, "b": 0, "c": 2}
    assert (found.images, found.labeled) == (5, 3)


def test_bad_files_are_told_once_and_what_stands_in_for_them_is_not_counted_twice(tmp_path: Path) -> None:
    images = noise(3, 8, 8, 3)
    for i, image in enumerate(images):
        Image.fromarray(image).save(tmp_path / f"{i}.png")
    Image.fromarray(np.zeros((40, 20, 3), np.uint8)).save(tmp_path / "3.png")
    (tmp_path / "bad.png").write_text("text")
    paths = [str(tmp_path / name) for name in ("0.png", "bad.png", "1.png", "2.png", "3.png")]
    found = summarize(ImageSet(Files(paths, 8), None), (), 8)
    printable = np.concatenate([images, np.zeros((1, 8, 8, 3), np.uint8)])
    assert found.mean == pytest.approx((printable / 255).mean(axis=(0, 1, 2)))
    assert [one.where for one in found.bad] == [str(tmp_path / "bad.png")]
    assert (found.images, found.smallest, found.largest) == (5, (8, 8), (20, 40))


def test_mean_and_std_are_measured_at_the_size_of_training() -> None:
    pixels = torch.from_numpy(noise(8, 3, 24, 32))
    squares = [
        np.asarray(Image.fromarray(one).resize((8, 8), Image.Resampling.BICUBIC, (4, 0, 28, 24)))
        for one in pixels.permute(0, 2, 3, 1).numpy()
    ]
    found = summarize(ImageSet(InMemory(pixels), None), (), 8)
    assert (found.image_size, found.largest) == (8, (32, 24))
    assert found.std == pytest.approx((np.stack(squares) / 255).std(axis=(0, 1, 2)))
    assert found.std[0] < (pixels / 255).std() / 2
