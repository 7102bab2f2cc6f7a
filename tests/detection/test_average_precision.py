"""Average precision against numbers worked out by hand, and against COCO's own evaluation."""

import io
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np
import pytest

from phinets.config.detection import MetricName
from phinets.detection.average_precision import (
    MAX_DETECTIONS,
    THRESHOLDS,
    Detections,
    GroundTruth,
    average_precision,
    box_iou,
    summarize_precision,
)

WHOLE = (0.0, 0.0, 10.0, 10.0)
FAR = (50.0, 50.0, 60.0, 60.0)


def truth(*boxes: tuple[float, ...], labels: list[int] | None = None, difficult: tuple[int, ...] = ()) -> GroundTruth:
    flags = np.isin(np.arange(len(boxes)), difficult)
    return GroundTruth(
        np.array(boxes, np.float64).reshape(-1, 4), np.array(labels or [0] * len(boxes), np.int64), flags
    )


def found(*boxes: tuple[float, ...], scores: list[float], labels: list[int] | None = None) -> Detections:
    every = np.array(boxes, np.float64).reshape(-1, 4)
    return Detections(every, np.array(labels or [0] * len(boxes), np.int64), np.array(scores, np.float64))


class Scores(NamedTuple):
    """The means of a table, as shares."""

    ap: float
    ap50: float
    ap75: float


def scores_of(there: list[GroundTruth], said: list[Detections], classes: int, metric: MetricName = "coco") -> Scores:
    summary = summarize_precision(average_precision(there, said, classes, metric), [str(i) for i in range(classes)])
    return Scores(*(np.nan if value is None else value / 100 for value in (summary.ap, summary.ap50, summary.ap75)))


def one(there: GroundTruth, said: Detections, metric: MetricName = "coco") -> Scores:
    return scores_of([there], [said], 1, metric)


def test_overlap_is_the_common_area_over_the_joint_one() -> None:
    boxes = np.array([WHOLE, (5, 0, 15, 10), (0, 0, 10, 5), FAR], np.float64)
    third, fifth = 50 / 150, 25 / 125
    wanted = np.array([[1, third, 0.5, 0], [third, 1, fifth, 0], [0.5, fifth, 1, 0], [0, 0, 0, 1]])
    assert np.allclose(box_iou(boxes, boxes), wanted, rtol=0, atol=1e-15)


@pytest.mark.parametrize("metric", ["coco", "voc07", "voc12"])
def test_all_found_exactly_is_one_and_nothing_found_is_zero(metric: MetricName) -> None:
    there = truth(WHOLE, FAR)
    perfect = one(there, found(WHOLE, FAR, scores=[0.9, 0.8]), metric)
    assert (perfect.ap, perfect.ap50, perfect.ap75) == (1, 1, 1)
    nothing = one(there, found(scores=[]), metric)
    assert (nothing.ap, nothing.ap50, nothing.ap75) == (0, 0, 0)


@pytest.mark.parametrize(
    ("metric", "by_hand"),
    [
        # Surest first: right, wrong, right, of two objects. (recall, precision) = (½, 1), (½, ½), (1, ⅔); the best
        # precision at recall r or more is 1 up to ½ and ⅔ beyond.
        ("coco", (51 * 1 + 50 * 2 / 3) / 101),  # recalls 0, .01, …, .50 and .51, …, 1
        ("voc07", (6 * 1 + 5 * 2 / 3) / 11),  # recalls 0, .1, …, .5 and .6, …, 1
        ("voc12", 0.5 * 1 + 0.5 * 2 / 3),
    ],
)
def test_a_wrong_one_between_two_right_ones(metric: MetricName, by_hand: float) -> None:
    said = found(FAR, (90, 90, 99, 99), WHOLE, scores=[0.9, 0.8, 0.7])
    assert one(truth(WHOLE, FAR), said, metric).ap50 == pytest.approx(by_hand, abs=1e-12)


def test_a_box_that_has_72_percent_in_common_counts_up_to_070() -> None:
    said = found((0, 0, 10, 7.2), scores=[0.5])
    table = average_precision([truth(WHOLE)], [said], 1)[:, 0]
    assert table.tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert one(truth(WHOLE), said).ap == pytest.approx(0.5, abs=1e-12)
    assert one(truth(WHOLE), said).ap75 == 0


@pytest.mark.parametrize("metric", ["coco", "voc07", "voc12"])
def test_a_second_box_for_the_same_object_is_wrong(metric: MetricName) -> None:
    twice = found(WHOLE, WHOLE, FAR, scores=[0.9, 0.8, 0.7])
    once = found(WHOLE, (90, 90, 99, 99), FAR, scores=[0.9, 0.8, 0.7])
    there = truth(WHOLE, FAR)
    assert one(there, twice, metric).ap == one(there, once, metric).ap < 1


def test_coco_gives_a_second_box_the_next_object_where_voc_insists_on_the_nearest() -> None:
    there = truth((0, 0, 10, 10), (0, 0, 10, 8))  # .8 in common
    said = found((0, 0, 10, 10), (0, 0, 10, 9.5), scores=[0.9, 0.8])  # the second: .95 with the first object, .84 else
    assert one(there, said, "coco").ap50 == 1
    # VOC: right, wrong; recall ends at ½
    assert one(there, said, "voc12").ap50 == pytest.approx(0.5)


@pytest.mark.parametrize("metric", ["coco", "voc07", "voc12"])
def test_a_difficult_object_counts_neither_found_nor_missed(metric: MetricName) -> None:
    there, plain = truth(WHOLE, FAR, difficult=(1,)), truth(WHOLE)
    missed = one(there, found(WHOLE, scores=[0.5]), metric)
    taken = one(there, found(WHOLE, FAR, scores=[0.5, 0.9]), metric)
    assert missed.ap == taken.ap == one(plain, found(WHOLE, scores=[0.5]), metric).ap == 1
    wrong = found(WHOLE, (90, 90, 99, 99), scores=[0.5, 0.9])
    assert one(there, wrong, metric).ap == one(plain, wrong, metric).ap < 1


def test_a_difficult_object_takes_one_box_by_coco_and_any_number_by_voc() -> None:
    there, said = truth(WHOLE, FAR, difficult=(1,)), found(FAR, FAR, WHOLE, scores=[0.9, 0.8, 0.7])
    assert one(there, said, "coco").ap50 == pytest.approx(0.5)  # wrong, right
    assert one(there, said, "voc12").ap50 == 1


def test_coco_prefers_an_object_that_counts_to_a_difficult_one_with_more_in_common() -> None:
    there = truth((0, 0, 10, 10), (0, 0, 10, 8), difficult=(0,))
    assert one(there, found((0, 0, 10, 9.5), scores=[0.9]), "coco").ap50 == 1  # .95 with the difficult one, .84 else
    assert one(there, found((0, 0, 10, 9.5), scores=[0.9]), "voc12").ap50 == 0  # VOC insists on the nearest


def test_a_box_with_exactly_half_in_common_counts_by_coco_and_not_by_voc() -> None:
    half, more = found((0, 0, 10, 5), scores=[0.5]), found((0, 0, 10, 5.01), scores=[0.5])
    assert [one(truth(WHOLE), half, metric).ap50 for metric in ("coco", "voc07", "voc12")] == [1, 0, 0]
    assert [one(truth(WHOLE), more, metric).ap50 for metric in ("coco", "voc07", "voc12")] == [1, 1, 1]


def test_three_of_ten_found_reach_three_of_the_eleven_points_as_in_detectron2() -> None:
    boxes = [(20.0 * i, 0.0, 20.0 * i + 10, 10.0) for i in range(10)]
    said = found(*boxes[:3], scores=[0.9, 0.8, 0.7])
    assert one(truth(*boxes), said, "voc07").ap50 == pytest.approx(
        3 / 11, abs=1e-12
    )  # recalls 0, .1, .2; its .3 is .3 + 4e-17
    assert one(truth(*boxes), said, "voc12").ap50 == pytest.approx(0.3, abs=1e-12)


def test_a_class_without_objects_is_left_out_of_the_mean() -> None:
    there = truth(WHOLE, FAR, labels=[0, 2], difficult=(1,))
    said = found(WHOLE, FAR, FAR, labels=[0, 1, 2], scores=[0.9, 0.9, 0.9])
    summary = summarize_precision(average_precision([there], [said], 3), ["a", "b", "c"])
    assert summary.per_class == summary.per_class50 == {"a": 100, "b": None, "c": None}
    assert summary.ap == 100
    assert np.isnan(scores_of([truth()], [found(scores=[])], 2).ap)


def test_boxes_on_another_picture_or_of_another_class_find_nothing() -> None:
    there = [truth(WHOLE), truth(FAR)]
    crossed = [found(FAR, scores=[0.9]), found(WHOLE, scores=[0.9])]
    assert scores_of(there, crossed, 1).ap == 0
    assert scores_of([truth(WHOLE, labels=[1])], [found(WHOLE, scores=[0.9])], 2).ap == 0


def test_only_the_surest_hundred_of_a_picture_count_by_coco_and_all_by_voc() -> None:
    said = found(*[FAR] * MAX_DETECTIONS, WHOLE, scores=[0.9] * MAX_DETECTIONS + [0.1])
    assert one(truth(WHOLE), said, "coco").ap50 == 0
    assert one(truth(WHOLE), said, "voc12").ap50 == pytest.approx(1 / (MAX_DETECTIONS + 1))


def test_neither_the_order_of_pictures_nor_a_monotone_change_of_scores_matters() -> None:
    rng = np.random.default_rng(3)
    there, said = scattered(rng)
    first = average_precision(there, said, 3)
    turned = average_precision(there[::-1], said[::-1], 3)
    sharpened = average_precision(there, [f._replace(scores=f.scores**3) for f in said], 3)
    assert np.array_equal(first, turned, equal_nan=True)
    assert np.array_equal(first, sharpened, equal_nan=True)


def scattered(rng: np.random.Generator, ties: bool = False) -> tuple[list[GroundTruth], list[Detections]]:
    """Random pictures: objects, some difficult, and boxes near them or anywhere; some with nothing of either.

    With `ties`, scores are equal and small objects lie over each other, so that who takes which one matters.
    """
    there, said = [], []
    for _ in range(12):
        n, m = int(rng.integers(0, 7)), int(rng.integers(0, 12))
        low = rng.integers(0, 3 if ties else 60, (n, 2))
        boxes = np.concatenate([low, low + rng.integers(5, 8 if ties else 40, (n, 2))], 1).astype(float)
        labels = rng.integers(0, 3, n)
        there.append(GroundTruth(boxes, labels, rng.random(n) < 0.3))
        near = (
            boxes[rng.integers(0, n, m)] + rng.integers(-1 if ties else -3, 2 if ties else 4, (m, 4))
            if n
            else np.zeros((m, 4))
        )
        low = rng.integers(0, 60, (m, 2))
        anywhere = np.concatenate([low, low + rng.integers(5, 40, (m, 2))], 1).astype(float)
        guess = np.where(rng.random((m, 1)) < 0.7 if n else np.zeros((m, 1), bool), near, anywhere)
        guess[:, 2:] = np.maximum(guess[:, 2:], guess[:, :2] + 1)
        scores = rng.integers(0, 5, m) / 4.0 if ties else rng.random(m)
        said.append(Detections(guess, rng.integers(0, 3, m), scores))
    return there, said


def by_pycocotools(there: list[GroundTruth], said: list[Detections], classes: int) -> Any:
    """The table (thresholds, classes) of COCO's own evaluation; −1 where there is nothing to be found.

    It only honours "ignore" for crowds, so a difficult object is given an area beyond every range, which it ignores.
    """
    coco, cocoeval = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    objects = [
        {"image_id": i, "category_id": int(label), "bbox": wide(box), "area": 1e12 if hard else 1.0, "iscrowd": 0}
        for i, t in enumerate(there)
        for box, label, hard in zip(*t, strict=True)
    ]
    known = coco.COCO()
    known.dataset = {
        "images": [{"id": i} for i in range(len(there))],
        "categories": [{"id": k} for k in range(classes)],
        "annotations": [{**thing, "id": i + 1} for i, thing in enumerate(objects)],
    }
    guesses = [
        {"image_id": i, "category_id": int(label), "bbox": wide(box), "score": float(score)}
        for i, f in enumerate(said)
        for box, label, score in zip(*f, strict=True)
    ]
    with redirect_stdout(io.StringIO()):
        known.createIndex()
        judge = cocoeval.COCOeval(known, known.loadRes(guesses), "bbox")
        judge.evaluate()
        judge.accumulate()
    return judge.eval["precision"][:, :, :, 0, 2].mean(1)


def wide(box: Any) -> list[float]:
    left, top, right, bottom = box.tolist()
    return [left, top, right - left, bottom - top]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_coco_s_own_evaluation_agrees_on_random_boxes(seed: int, ties: bool) -> None:
    there, said = scattered(np.random.default_rng(seed), ties)
    wanted = by_pycocotools(there, said, 4)  # the fourth class occurs nowhere
    ours = average_precision(there, said, 4)
    assert np.allclose(np.nan_to_num(ours, nan=-1.0), wanted, rtol=0, atol=1e-9)
    valid = wanted[wanted > -1]
    assert scores_of(there, said, 4).ap == pytest.approx(valid.mean(), abs=1e-9)
    assert len(THRESHOLDS) == len(wanted)


def test_coco_s_own_evaluation_agrees_on_more_than_a_hundred_boxes() -> None:
    rng = np.random.default_rng(0)
    there, said = scattered(rng)
    many = Detections(
        np.repeat(there[0].boxes, 60, 0), np.repeat(there[0].labels, 60), rng.random(60 * len(there[0].labels))
    )
    said[0] = many
    assert np.bincount(many.labels).max() > MAX_DETECTIONS
    ours = average_precision(there, said, 3)
    assert np.allclose(np.nan_to_num(ours, nan=-1.0), by_pycocotools(there, said, 3), rtol=0, atol=1e-9)


def test_of_two_objects_with_as_much_in_common_the_last_is_taken_as_coco_does() -> None:
    left, right, between = (0.0, 0.0, 10.0, 10.0), (4.0, 0.0, 14.0, 10.0), (2.0, 0.0, 12.0, 10.0)
    for second, wanted in ((left, 1.0), (right, 51 / 101)):  # the object that is left over is `left`
        there, said = [truth(left, right)], [found(between, second, scores=[0.9, 0.8])]
        ours = average_precision(there, said, 1)
        assert scores_of(there, said, 1).ap50 == pytest.approx(wanted)
        assert np.allclose(ours, by_pycocotools(there, said, 1), rtol=0, atol=1e-9)
