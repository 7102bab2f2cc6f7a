"""Average precision of detections: COCO's, and VOC's two."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phinets.config.detection import MetricName
from phinets.detection.boxes import Floats, Found, Truth, overlap

THRESHOLDS: Floats = np.linspace(0.5, 0.95, 10)
"""How much a detection must have in common with an object: .50, .55, …, .95."""
VOC_THRESHOLDS: Floats = np.arange(50, 100, 5) / 100
"""The same in Detectron2's evaluation of VOC, which differs in the last bit of some."""
VOC07_LEVELS: Floats = np.arange(0.0, 1.1, 0.1)
"""The 11 levels of recall, as VOC's evaluation in Detectron2 writes them, to the bit: .30000000000000004 is above the
recall of 3 objects of 10, which therefore reach 3 levels, not 4. Its figures, the paper's too, are made with these."""
MOST = 100
"""Detections of a picture and class that count, the surest first."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Precisions:
    """Average precision in [0, 1] by threshold and class; NaN where a class has no object to be found."""

    table: Floats
    """(thresholds, classes)."""

    @property
    def ap(self) -> float:
        """The mean over thresholds and the classes that have objects."""
        return _mean(self.table)

    @property
    def ap50(self) -> float:
        """The mean over classes at half in common."""
        return _mean(self.table[0])

    @property
    def ap75(self) -> float:
        """The mean over classes at three quarters in common."""
        return _mean(self.table[5])

    @property
    def per_class(self) -> Floats:
        """(classes,): each the mean over thresholds."""
        return np.asarray(self.table.mean(axis=0))


@dataclass(frozen=True)
class Metric:
    """Which object a detection stands for, and how a curve of precision over recall becomes one number."""

    matched: Callable[[Floats, Flags], tuple[Flags, Flags]]
    area: Callable[[Floats, Floats], float]
    most: int | None


def average_precision(
    truths: Sequence[Truth], found: Sequence[Found], classes: int, metric: MetricName = "coco"
) -> Precisions:
    """Average precision of what was found in pictures, one `Found` for each `Truth`.

    Detections of a class are taken over all pictures, the surest first. One that stands for an object is right; for a
    difficult one, it counts neither way; else it is wrong. precision = right / (right + wrong), recall = right /
    objects that are not difficult.
    """
    assert len(truths) == len(found)
    columns = [_class_precision(truths, found, label, METRICS[metric]) for label in range(classes)]
    return Precisions(np.stack(columns, axis=1) if columns else np.zeros((len(THRESHOLDS), 0)))


def _class_precision(truths: Sequence[Truth], found: Sequence[Found], label: int, metric: Metric) -> Floats:
    """(thresholds,), NaN where there is nothing to be found."""
    pictures = list(_of_class(truths, found, label))
    objects = sum(int((~truth.difficult).sum()) for truth, _ in pictures)
    if objects == 0:
        return np.full(len(THRESHOLDS), np.nan)
    scores, right, counts = [], [], []
    for truth, said in pictures:
        order = np.argsort(-said.scores, kind="stable")[: metric.most]
        stands_for, ignored = metric.matched(overlap(said.boxes[order], truth.boxes), truth.difficult)
        scores.append(said.scores[order])
        right.append(stands_for & ~ignored)
        counts.append(~ignored)
    order = np.argsort(-np.concatenate(scores), kind="stable")
    every, considered = np.concatenate(right, axis=1)[:, order], np.concatenate(counts, axis=1)[:, order]
    return np.array([_area(metric, *row, objects) for row in zip(every, considered, strict=True)])


def _area(metric: Metric, right: Flags, considered: Flags, objects: int) -> float:
    """The number of one threshold. What does not count leaves the curve where it is."""
    hits = np.cumsum(right, dtype=np.float64)
    wrong = np.cumsum(considered & ~right, dtype=np.float64)
    return metric.area(hits / objects, hits / np.maximum(hits + wrong, np.spacing(1.0)))


def _of_class(truths: Sequence[Truth], found: Sequence[Found], label: int) -> Iterator[tuple[Truth, Found]]:
    for truth, said in zip(truths, found, strict=True):
        objects, guesses = truth.labels == label, said.labels == label
        if objects.any() or guesses.any():
            yield Truth(*(part[objects] for part in truth)), Found(*(part[guesses] for part in said))


def coco_matches(common: Floats, difficult: Flags) -> tuple[Flags, Flags]:
    """COCO's rule: the surest detection first takes the free object that it has most in common with.

    An object that counts goes before a difficult one. common: (detections, objects), the surest first; gives whether
    each stands for an object, and whether that one is difficult, both (thresholds, detections).
    """
    matched = np.zeros((len(THRESHOLDS), len(common)), dtype=bool)
    ignored = matched.copy()
    free = np.ones((len(THRESHOLDS), len(difficult)), dtype=bool)
    levels, rows = np.minimum(THRESHOLDS, 1 - 1e-10)[:, None], np.arange(len(THRESHOLDS))
    for number, shares in enumerate(common if len(difficult) else []):
        fits = free & (shares >= levels)
        counting = fits & ~difficult
        fits = np.where(counting.any(1, keepdims=True), counting, fits)
        best = _last_argmax(np.where(fits, shares, -1.0))
        matched[:, number] = fits.any(1)
        ignored[:, number] = matched[:, number] & difficult[best]
        free[rows, best] &= ~matched[:, number]
    return matched, ignored


def voc_matches(common: Floats, difficult: Flags) -> tuple[Flags, Flags]:
    """VOC's rule: a detection stands for the object that it has most in common with; a second one for it is wrong.

    A difficult object takes any number of them. Shapes as in `coco_matches`.
    """
    matched = np.zeros((len(THRESHOLDS), len(common)), dtype=bool)
    ignored = matched.copy()
    free = np.ones((len(THRESHOLDS), len(difficult)), dtype=bool)
    for number, shares in enumerate(common if len(difficult) else []):
        best = int(shares.argmax())
        fits = shares[best] > VOC_THRESHOLDS  # more than, as VOC's devkit and Detectron2 have it; COCO: at least
        matched[:, number] = fits & free[:, best]
        ignored[:, number] = fits & difficult[best]
        free[:, best] &= ~fits | difficult[best]
    return matched, ignored


def _last_argmax(values: Floats) -> NDArray[np.intp]:
    """Where each row is largest, the last place among equals, as COCO's own evaluation has it."""
    return np.asarray(values.shape[1] - 1 - values[:, ::-1].argmax(1))


def interpolated(levels: Floats) -> Callable[[Floats, Floats], float]:
    """The mean, over some levels of recall, of the best precision at that recall or a higher one."""

    def area(recall: Floats, precision: Floats) -> float:
        best = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
        return float(best[np.searchsorted(recall, levels, side="left")].mean())

    return area


def whole_area(recall: Floats, precision: Floats) -> float:
    """∫ of the best precision at recall r or a higher one, dr."""
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float((np.diff(recall, prepend=0.0) * best).sum())


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


METRICS: Mapping[MetricName, Metric] = {
    "coco": Metric(coco_matches, interpolated(np.linspace(0.0, 1.0, 101)), MOST),
    "voc07": Metric(voc_matches, interpolated(VOC07_LEVELS), None),
    "voc12": Metric(voc_matches, whole_area, None),
}
