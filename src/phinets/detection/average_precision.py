"""Average precision of detections: COCO's, and VOC's two.

A box is (left, top, right, bottom) in pixels from 0, half-open: right and bottom lie just behind the last pixel.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phinets.config.detection import AveragePrecision, MetricName

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
"""IoU of a detection with its object: .50, .55, …, .95."""
VOC_THRESHOLDS: Floats = np.arange(50, 100, 5) / 100
"""The same in Detectron2's evaluation of VOC, which differs in the last bit of some."""
VOC07_LEVELS: Floats = np.arange(0.0, 1.1, 0.1)
"""The 11 levels of recall, as VOC's evaluation in Detectron2 writes them, to the bit: .30000000000000004 is above the
recall of 3 objects of 10, which therefore reach 3 levels, not 4. Its figures, the paper's too, are made with these."""
MAX_DETECTIONS = 100
"""COCO's limit per image and class; the highest scores count."""


class GroundTruth(NamedTuple):
    """The objects of an image."""

    boxes: Floats
    """(n, 4)."""
    labels: NDArray[np.int64]
    """(n,), classes from 0."""
    difficult: Flags
    """(n,), objects that count neither as detected nor as missed."""


class Detections(NamedTuple):
    """A detector's output for an image."""

    boxes: Floats
    """(n, 4)."""
    labels: NDArray[np.int64]
    """(n,), classes from 0."""
    scores: Floats
    """(n,)."""


def box_iou(one: Floats, other: Floats) -> Floats:
    """Intersection over union of every box of `one` (n, 4) with every box of `other` (m, 4): (n, m), in [0, 1]."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    intersection = np.prod(np.clip(high - low, 0.0, None), axis=2)
    union = _box_area(one)[:, None] + _box_area(other)[None, :] - intersection
    return np.asarray(np.divide(intersection, union, out=np.zeros_like(intersection), where=intersection > 0))


def _box_area(boxes: Floats) -> Floats:
    return np.asarray(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1))


@dataclass(frozen=True)
class Metric:
    """How detections are matched to objects, and how a precision-recall curve becomes one number."""

    match: Callable[[Floats, Flags], tuple[Flags, Flags]]
    area: Callable[[Floats, Floats], float]
    max_detections: int | None


def average_precision(
    truths: Sequence[GroundTruth], detections: Sequence[Detections], classes: int, metric: MetricName = "coco"
) -> Floats:
    """Average precision in [0, 1], (thresholds, classes); NaN for a class without objects.

    truths, detections: one of each for every image.

    Detections of a class are sorted by score over all images. One that matches an object is a true positive; one that
    matches a difficult object is ignored; any other is a false positive. precision = TP / (TP + FP), recall = TP /
    objects that are not difficult.
    """
    assert len(truths) == len(detections)
    columns = [_class_precision(truths, detections, label, METRICS[metric]) for label in range(classes)]
    return np.stack(columns, axis=1) if columns else np.zeros((len(THRESHOLDS), 0))


def summarize_precision(table: Floats, classes: Sequence[str]) -> AveragePrecision:
    """The table in percent: means over thresholds, and over the classes that have objects."""

    def mean(values: Floats) -> float | None:
        finite = values[~np.isnan(values)]
        return 100.0 * float(finite.mean()) if finite.size else None

    return AveragePrecision(
        ap=mean(table),
        ap50=mean(table[0]),
        ap75=mean(table[5]),
        per_class={name: mean(column) for name, column in zip(classes, table.T, strict=True)},
        per_class50={name: mean(column[:1]) for name, column in zip(classes, table.T, strict=True)},
    )


def _class_precision(
    truths: Sequence[GroundTruth], detections: Sequence[Detections], label: int, metric: Metric
) -> Floats:
    """(thresholds,), NaN where there is no object."""
    images = list(_of_class(truths, detections, label))
    objects = sum(int((~truth.difficult).sum()) for truth, _ in images)
    if objects == 0:
        return np.full(len(THRESHOLDS), np.nan)
    scores, positives, counts = [], [], []
    for truth, detected in images:
        order = np.argsort(-detected.scores, kind="stable")[: metric.max_detections]
        matches, ignored = metric.match(box_iou(detected.boxes[order], truth.boxes), truth.difficult)
        scores.append(detected.scores[order])
        positives.append(matches & ~ignored)
        counts.append(~ignored)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    true_positive, counted = np.concatenate(positives, axis=1)[:, order], np.concatenate(counts, axis=1)[:, order]
    return np.array([_area(metric, *row, objects) for row in zip(true_positive, counted, strict=True)])


def _area(metric: Metric, true_positive: Flags, counted: Flags, objects: int) -> float:
    """The number of one threshold. Ignored detections leave the curve as it is."""
    right = np.cumsum(true_positive, dtype=np.float64)
    wrong = np.cumsum(counted & ~true_positive, dtype=np.float64)
    return metric.area(right / objects, right / np.maximum(right + wrong, np.spacing(1.0)))


def _of_class(
    truths: Sequence[GroundTruth], detections: Sequence[Detections], label: int
) -> Iterator[tuple[GroundTruth, Detections]]:
    for truth, detected in zip(truths, detections, strict=True):
        objects, guesses = truth.labels == label, detected.labels == label
        if objects.any() or guesses.any():
            yield GroundTruth(*(x[objects] for x in truth)), Detections(*(x[guesses] for x in detected))


def coco_matches(iou: Floats, difficult: Flags) -> tuple[Flags, Flags]:
    """COCO's rule: detections, by falling score, each take the free object of the highest IoU.

    An object that counts goes before a difficult one. iou: (detections, objects), by falling score; gives whether each
    detection matches an object, and whether that one is difficult, both (thresholds, detections).
    """
    matches = np.zeros((len(THRESHOLDS), len(iou)), dtype=bool)
    ignored = matches.copy()
    free = np.ones((len(THRESHOLDS), len(difficult)), dtype=bool)
    levels, rows = np.minimum(THRESHOLDS, 1 - 1e-10)[:, None], np.arange(len(THRESHOLDS))
    for number, row in enumerate(iou if len(difficult) else []):
        fits = free & (row >= levels)
        counting = fits & ~difficult
        fits = np.where(counting.any(1, keepdims=True), counting, fits)
        reversed_iou = np.where(fits, row, -1.0)[:, ::-1]  # the last of equal maxima, as in COCO's own evaluation
        best = reversed_iou.shape[1] - 1 - reversed_iou.argmax(1)
        matches[:, number] = fits.any(1)
        ignored[:, number] = matches[:, number] & difficult[best]
        free[rows, best] &= ~matches[:, number]
    return matches, ignored


def voc_matches(iou: Floats, difficult: Flags) -> tuple[Flags, Flags]:
    """VOC's rule: a detection matches the object of the highest IoU; a second one for it is a false positive.

    A difficult object takes any number of them. Shapes as in `coco_matches`.
    """
    matches = np.zeros((len(THRESHOLDS), len(iou)), dtype=bool)
    ignored = matches.copy()
    free = np.ones((len(THRESHOLDS), len(difficult)), dtype=bool)
    for number, row in enumerate(iou if len(difficult) else []):
        best = int(row.argmax())
        fits = row[best] > VOC_THRESHOLDS  # more than, as VOC's devkit and Detectron2 have it; COCO: at least
        matches[:, number] = fits & free[:, best]
        ignored[:, number] = fits & difficult[best]
        free[:, best] &= ~fits | difficult[best]
    return matches, ignored


def interpolate(levels: Floats) -> Callable[[Floats, Floats], float]:
    """The mean, over some levels of recall, of the best precision at that recall or a higher one."""

    def area(recall: Floats, precision: Floats) -> float:
        best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
        return float(best[np.searchsorted(recall, levels, side="left")].mean())

    return area


def whole_area(recall: Floats, precision: Floats) -> float:
    """∫ of the best precision at recall r or a higher one, dr."""
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall, prepend=0.0) * best).sum())


METRICS: Mapping[MetricName, Metric] = {
    "coco": Metric(coco_matches, interpolate(np.linspace(0.0, 1.0, 101)), MAX_DETECTIONS),
    "voc07": Metric(voc_matches, interpolate(VOC07_LEVELS), None),
    "voc12": Metric(voc_matches, whole_area, None),
}
