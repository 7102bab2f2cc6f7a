"""The world of shapes: the same pictures for everyone, for ever; ten forms that nothing but form tells apart."""

import hashlib
from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest
from numpy.typing import NDArray

from phinets.config.errors import UserError
from phinets.data.shapes import CLASSES, FORMS, TEST, WORLD, contact_sheet, draw, finite, object_cover, stream
from phinets.data.shapes.rendering import Plane
from phinets.data.shapes.scene import LUMA, direction

CALM = replace(WORLD, noise=0.0)
FLAT = replace(WORLD, noise=0.0, clutter=0.0, shading=0.0, gain=(1.0, 1.0))


def grid(points: int, turn: float = 0.0) -> tuple[Plane, Plane]:
    """Points of the square [−1.2, 1.2]², turned by a share of the full circle."""
    axis = np.linspace(-1.2, 1.2, points)
    x, y = np.meshgrid(axis, axis)
    cos, sin = np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)
    return (cos * x + sin * y).astype(np.float32), (cos * y - sin * x).astype(np.float32)


def overlap(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    return float((a & b).sum() / (a | b).sum())


def brightness(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.tensordot(images, np.array(LUMA), axes=(1, 0)) / 255.0


def test_a_picture_does_not_depend_on_its_neighbors_or_their_order() -> None:
    indices = np.array([5, 999, 3, TEST + 7, 2**62, 5])
    images, labels = draw(indices, seed=4)
    for index, image, label in zip(indices, images, labels, strict=True):
        alone, its_label = draw([index], seed=4)
        assert (alone[0] == image).all()
        assert its_label[0] == label
    many, _ = draw(np.arange(5000), seed=4)
    assert (many[[5, 999, 3]] == images[:3]).all()


def test_the_pictures_are_the_same_on_any_machine() -> None:
    images, labels = draw(np.arange(64), seed=0)
    digest = hashlib.sha256(images.tobytes() + labels.astype("<i8").tobytes()).hexdigest()
    assert digest == "95f6d0163fb519bb8dd72ac652f3e1eb4ced7417aaa196d903964c7cd3577e33"


def test_every_index_and_every_seed_gives_another_picture() -> None:
    pictures = [image.tobytes() for seed in (0, 1, -1) for image in draw(np.arange(300), seed=seed)[0]]
    assert len(set(pictures)) == 900


def test_train_and_test_share_no_picture() -> None:
    train, test = (finite(500, split=part)[0] for part in ("train", "test"))
    assert not {image.tobytes() for image in train} & {image.tobytes() for image in test}


def test_classes_are_equally_likely_and_independent_of_the_one_before() -> None:
    _, labels = draw(np.arange(20_000), size=8)
    counts = np.bincount(labels, minlength=10)
    pairs = np.bincount(10 * labels[:-1] + labels[1:], minlength=100)
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9  # chi-square, 9 degrees of freedom, p = 0.001
    assert ((pairs - 200) ** 2 / 200).sum() < 148.2  # 99 degrees of freedom, p = 0.001


def test_a_stream_is_the_train_part_and_goes_on() -> None:
    images, labels = finite(70, split="train", seed=3)
    first, second = islice(stream(20, seed=3, start=10), 2)
    assert (np.concatenate([first[0], second[0]]) == images[10:50]).all()
    assert (np.concatenate([first[1], second[1]]) == labels[10:50]).all()


def test_a_larger_size_shows_the_same_scene() -> None:
    small, labels = draw(np.arange(200), size=32, world=CALM)
    large, same = draw(np.arange(200), size=64, world=CALM)
    shrunk = large.reshape(200, 3, 32, 2, 32, 2).mean(axis=(3, 5))
    assert (labels == same).all()
    assert np.abs(shrunk - small).mean() < 1.5
    assert np.abs(shrunk[1:] - small[:-1]).mean() > 30


@pytest.mark.parametrize("size", [8, 33, 96])
def test_any_size_is_filled_with_pixels_of_every_kind(size: int) -> None:
    images, labels = draw(np.arange(40), size=size)
    assert images.shape == (40, 3, size, size)
    assert images.dtype == np.uint8
    assert labels.dtype == np.int64
    assert images.std(axis=(1, 2, 3)).min() > 5


@pytest.mark.parametrize("name", CLASSES)
def test_every_form_fills_a_fair_part_of_the_unit_disc_and_nothing_beyond(name: str) -> None:
    u, v = grid(241)
    inside = FORMS[name](u, v) < 0
    assert not inside[u * u + v * v > 1.01].any()
    assert 0.15 < inside.sum() / (u * u + v * v < 1).sum() < 0.8


@pytest.mark.parametrize("name", CLASSES)
def test_every_form_measures_distance_near_its_outline(name: str) -> None:
    u, v = grid(481)
    distance = FORMS[name](u, v)
    steepness = np.hypot(*np.gradient(distance, 2.4 / 480))
    outline = steepness[np.abs(distance) < 0.02]
    assert 0.9 < np.median(outline) < 1.05
    assert np.quantile(outline, 0.98) < 1.05  # grid differences overshoot at a few corners


@pytest.mark.parametrize("name", CLASSES)
def test_every_form_is_its_own_mirror_image_up_to_a_turn(name: str) -> None:
    u, v = grid(121)
    mirrored = FORMS[name](-u, v) < 0
    assert max(overlap(FORMS[name](*grid(121, turn)) < 0, mirrored) for turn in np.arange(0, 1, 1 / 72)) > 0.97


@pytest.mark.parametrize(("one", "other"), list(combinations(CLASSES, 2)))
def test_no_turn_makes_one_form_look_like_another(one: str, other: str) -> None:
    still = FORMS[one](*grid(61)) < 0
    for scale in (0.8, 1.0, 1.25):
        for turn in np.arange(0, 1, 1 / 36):
            u, v = grid(61, turn)
            assert overlap(still, FORMS[other](u * np.float32(scale), v * np.float32(scale)) < 0) < 0.8


@pytest.mark.parametrize("across", [1, 2, 3])
def test_every_cell_holds_an_object_that_stays_inside(across: int) -> None:
    cover = object_cover(np.arange(300), size=48, world=replace(WORLD, across=across))
    cells = cover.reshape(300, across, 48 // across, across, 48 // across).swapaxes(2, 3)
    assert cells.mean(axis=(3, 4)).min() > 0.05
    corners = cells[..., [0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.max() == 0


def test_an_object_stands_out_everywhere_along_its_outline() -> None:
    indices = np.arange(500)
    light, cover = brightness(draw(indices, world=FLAT)[0]), object_cover(indices, world=FLAT)
    outside, inside = cover[:, :, :-2] == 0, cover[:, :, 2:] == 1
    step = np.abs(light[:, :, 2:] - light[:, :, :-2])[outside & inside]
    drift = np.abs(light[:, :, 2:] - light[:, :, :-2])[outside & (cover[:, :, 2:] == 0)]
    assert step.min() > WORLD.contrast[0] * (1 - WORLD.texture) - drift.max() - 1 / 255
    assert np.quantile(step, 0.01) > np.quantile(drift, 0.95)


def test_objects_are_as_often_lighter_than_their_ground_as_darker() -> None:
    indices = np.arange(2000)
    alone = replace(FLAT, across=1)
    light, cover = brightness(draw(indices, world=alone)[0]), object_cover(indices, world=alone)
    lighter = (light * cover).sum(axis=(1, 2)) / cover.sum(axis=(1, 2)) > light.mean(axis=(1, 2))
    assert 0.45 < lighter.mean() < 0.55


def test_headings_are_unit_vectors_spread_over_the_circle() -> None:
    turn = np.linspace(0, 1, 4000, endpoint=False, dtype=np.float32)
    cos, sin = direction(turn)
    np.testing.assert_allclose(cos**2 + sin**2, 1, atol=1e-6)
    angle = np.unwrap(np.arctan2(sin, cos)) / (2 * np.pi)
    np.testing.assert_allclose(angle - angle[0], turn, atol=0.01)


def test_a_contact_sheet_has_a_row_for_each_class() -> None:
    sheet = contact_sheet(seed=2, per_class=3, size=16)
    images, labels = draw(np.arange(100), seed=2, size=16)
    assert sheet.shape == (160, 48, 3)
    for label in range(10):
        first = images[labels == label][0].transpose(1, 2, 0)
        assert (sheet[16 * label : 16 * label + 16, :16] == first).all()


def test_mistakes_are_answered_with_a_cure() -> None:
    with pytest.raises(UserError, match=r"7 × 7 .* Ask for size 8"):
        draw([0], size=7)
    with pytest.raises(UserError, match=r"no picture number -1\. Count from 0"):
        draw([3, -1])
    with pytest.raises(UserError, match="flat list of whole numbers, not float64"):
        draw([0.5])
    for n in (0, TEST + 1):
        with pytest.raises(UserError, match=rf"n is {n}, but must be 1 to {TEST}"):
            finite(n, split="train")
    with pytest.raises(UserError, match=r"validation.*test, train"):
        finite(5, split="validation")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="do not fit their cells"):
        replace(WORLD, radius=(0.5, 1.5))
    with pytest.raises(UserError, match="Set across to 1 or more"):
        replace(WORLD, across=0)
    with pytest.raises(UserError, match="batch is 0"):
        stream(0)
    with pytest.raises(UserError, match="start is -4"):
        stream(8, start=-4)
