"""What a detector sees: sizes, mirror images, order."""

from collections import Counter
from pathlib import Path

import pytest
import torch

from phinets.config.detection import ImageOptions
from phinets.config.errors import UserError
from phinets.detection.loader import DetectionLoader, load_sample, require_readable, resized_size
from phinets.detection.voc import read_voc
from tests.detection.helpers import squares, voc


@pytest.mark.parametrize(
    ("size", "seen"),
    [((640, 480), (1067, 800)), ((480, 640), (800, 1067)), ((500, 200), (1333, 533)), ((800, 800), (800, 800))],
)
def test_the_shorter_side_is_brought_to_800_unless_the_longer_one_exceeds_1333(
    size: tuple[int, int], seen: tuple[int, int]
) -> None:
    assert resized_size(*size, 800, 1333) == seen


def test_boxes_follow_the_picture_when_it_is_resized_and_mirrored(tmp_path: Path) -> None:
    options = ImageOptions(data=f"voc:{squares(tmp_path)}")
    scene = read_voc(options).train[0]
    square = list(read_voc(options).classes).index("square")
    for side in (64, 100, 128):
        for mirrored in (False, True):
            seen = load_sample(scene, options, side, flip=mirrored)
            left, top, right, bottom = (
                round(v) for v in seen.boxes[scene.truth.labels.tolist().index(square)].tolist()
            )
            inside = seen.pixels[:, top + 2 : bottom - 2, left + 2 : right - 2]
            assert (inside[0] > 1.5).float().mean() > 0.95  # red
            assert right - left == pytest.approx(18 * side / 64, abs=1)


def test_a_picture_twice_as_large_has_boxes_twice_as_large_and_mirroring_twice_is_nothing(tmp_path: Path) -> None:
    options = ImageOptions(data=f"voc:{voc(tmp_path)}")
    scene = read_voc(options).train[0]
    plain, mirrored = (load_sample(scene, options, 60, flip=flag) for flag in (False, True))
    assert plain.pixels.shape == (3, 60, 80)
    assert torch.equal(plain.boxes, 2 * torch.from_numpy(scene.truth.boxes).float())
    width = plain.pixels.shape[2]
    assert torch.equal(plain.pixels, mirrored.pixels.flip(2))
    back = torch.stack([width - mirrored.boxes[:, 2], mirrored.boxes[:, 1], width - mirrored.boxes[:, 0]], 1)
    assert torch.allclose(back, plain.boxes[:, :3])


def test_pixels_are_normalized_by_the_given_mean_and_deviation(tmp_path: Path) -> None:
    options = ImageOptions(data=f"voc:{voc(tmp_path)}", pixel_mean=(0, 0, 0), pixel_std=(1, 1, 1))
    scene = read_voc(options).train[0]
    plain = load_sample(scene, options, 30).pixels
    assert 0 <= float(plain.min()) < float(plain.max()) <= 1
    usual = load_sample(scene, ImageOptions(), 30).pixels
    mean, std = (torch.tensor(v).view(3, 1, 1) / 255 for v in ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)))
    assert torch.allclose(usual, (plain - mean) / std, atol=1e-5)


def lessons(home: Path, **changes: int) -> DetectionLoader:
    options = ImageOptions(data=f"voc:{home}", train_sides=(40, 48, 56), max_side=100, test_side=48)
    every = {"batch": 4, "seed": 0, **changes}
    return DetectionLoader(images=read_voc(options).train, options=options, batch=every["batch"], seed=every["seed"])


def test_every_pass_shows_every_picture_once_whatever_the_batch(tmp_path: Path) -> None:
    home = squares(tmp_path, train=10, test=1)
    for batch in (3, 4, 25):
        plan = lessons(home, batch=batch)
        seen = [row for step in range(30) for row in plan.rows(step)]
        passes = [seen[i : i + 10] for i in range(0, len(seen) - 9, 10)]
        assert all(sorted(one) == list(range(10)) for one in passes)
        assert passes[0] != passes[1]


def test_a_batch_depends_on_seed_and_step_alone(tmp_path: Path) -> None:
    home = squares(tmp_path, train=6, test=1)
    one, again, other = lessons(home), lessons(home), lessons(home, seed=1)
    first = one.batch_of(5)
    for a, b in zip(first, again.batch_of(5), strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    assert [s.pixels.shape for s in first] != [s.pixels.shape for s in other.batch_of(5)] or one.rows(5) != other.rows(
        5
    )


def test_all_sizes_and_both_sides_are_drawn(tmp_path: Path) -> None:
    plan = lessons(squares(tmp_path, train=6, test=1))
    sides = Counter(min(shown.pixels.shape[1:]) for step in range(20) for shown in plan.batch_of(step))
    assert set(sides) == {40, 48, 56}
    assert min(sides.values()) > 10


def test_a_picture_that_breaks_half_way_is_named(tmp_path: Path) -> None:
    options = ImageOptions(data=f"voc:{voc(tmp_path)}")
    scene = read_voc(options).train[0]
    whole = scene.path.read_bytes()
    scene.path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"a\.jpg' can't be used"):
        load_sample(scene, options, 30)
    with pytest.raises(UserError, match=r"1 of the 2 images can't be used: the first is '.*a\.jpg' \("):
        require_readable(read_voc(options).train)
