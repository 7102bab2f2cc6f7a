"""Tables and figures of a detection transfer."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from rich.table import Table

from phinets.config.detection import DetectionRecord, DetectionSummary
from phinets.detection.average_precision import Detections, Floats, GroundTruth
from phinets.paper.numbers import paper_numbers
from phinets.reports.figures import decimal, new_figure, smooth_line
from phinets.reports.palette import ARMS, INK, class_color

MIN_SCORE = 0.5
"""Detections are drawn from this score on."""
TERMS = ("objectness", "anchors", "classes", "boxes")
"""The four losses, in the order of the panels."""


class ImageDetections(NamedTuple):
    """A test image, its objects, and each detector's detections."""

    pixels: NDArray[np.uint8]
    """(h, w, 3)."""
    truth: GroundTruth
    detections: Mapping[str, Detections]
    """By result."""


def precision_table(summary: DetectionSummary) -> Table:
    """AP, AP50 and AP75 of each detector and, where pictures and metric are the paper's, the paper's."""
    table = Table(title=f"average precision (%), {summary.metric}, on {summary.data}", caption=summary.describe())
    for name in ("weights", "AP", "AP50", "AP75", "loss first → last"):
        table.add_column(name, justify="left" if name == "weights" else "right")
    for result in summary.detectors:
        of = result.precision[summary.metric]
        losses = f"{result.loss_first:.3f} → {result.loss_last:.3f}"
        table.add_row(result.description, *(decimal(value) for value in (of.ap, of.ap50, of.ap75)), losses)
    for pretrained, of_paper in paper_precisions(summary.comparable).items() if summary.comparable else ():
        table.add_row(f"paper, {summary.comparable}: {pretrained}", *map(decimal, of_paper), "")
    return table


def paper_precisions(split: str) -> dict[str, tuple[float | None, ...]]:
    """The paper's AP, AP50 and AP75 on a VOC split ("VOC 07", "VOC 07+12"), by what was pretrained."""
    numbers = paper_numbers(split.lower().replace(" ", "-"))
    pretrained = dict.fromkeys(row for row, _ in numbers)
    return {row: tuple(numbers[row, column].mean for column in ("AP", "AP50", "AP75")) for row in pretrained}


def class_table(summary: DetectionSummary) -> Table:
    """AP and AP50 of every class, each detector's beside the other's."""
    table = Table(title=f"by class (%), {summary.metric}")
    table.add_column("class")
    detectors = {result.name: result.precision[summary.metric] for result in summary.detectors}
    for name in (f"{name} {metric}" for name in detectors for metric in ("AP", "AP50")):
        table.add_column(name, justify="right")
    for label in summary.classes:
        numbers = [value for of in detectors.values() for value in (of.per_class[label], of.per_class50[label])]
        table.add_row(label, *map(decimal, numbers))
    return table


def loss_figure(record: DetectionRecord) -> Figure:
    """The whole loss and its four terms over the steps, each detector in its color."""
    figure, grid = new_figure(13, 3.2, columns=5)
    for axes, term in zip(grid[0], ("loss", *TERMS), strict=True):
        for name, journal in record.journals.items():
            steps = [row for row in journal if row["kind"] == "step"]
            x, y = [row["step"] for row in steps], np.array([row[term] for row in steps])
            smooth_line(axes, x, y, name, ARMS[name])
        axes.set(title=term, xlabel="step", ylim=(0, None))
    figure.suptitle(f"{record.summary.backbone}, C4 detector on {record.summary.data}", color=INK)
    return figure


def detections_figure(images: Sequence[ImageDetections], classes: Sequence[str], title: str = "") -> Figure:
    """A row per test picture: the true boxes, then what each detector finds with a score of at least one half."""
    columns = ["truth", *images[0].detections]
    figure, grid = new_figure(3.6 * len(columns), 2.9 * len(images) + 0.5, len(images), len(columns))
    for axes, image in zip(grid, images, strict=True):
        for cell, name in zip(axes, columns, strict=True):
            cell.imshow(image.pixels)
            cell.set(xticks=[], yticks=[])
            if name == "truth":
                _boxes(cell, image.truth.boxes, image.truth.labels, [classes[i] for i in image.truth.labels])
            else:
                _draw_detections(cell, image.detections[name], classes)
    for cell, name in zip(figure.axes, columns, strict=False):
        cell.set_title(name, color=INK, fontsize=10)
    figure.suptitle(title, color=INK, fontsize=10)
    return figure


def _draw_detections(cell: Axes, detections: Detections, classes: Sequence[str]) -> None:
    confident = detections.scores >= MIN_SCORE
    labels, scores = detections.labels[confident], detections.scores[confident]
    words = [f"{classes[i]} {score:.2f}" for i, score in zip(labels, scores, strict=True)]
    _boxes(cell, detections.boxes[confident], labels, words)


def _boxes(cell: Axes, boxes: Floats, labels: NDArray[np.int64], words: Sequence[str]) -> None:
    for (left, top, right, bottom), label, text in zip(boxes, labels, words, strict=True):
        color = class_color(int(label))
        cell.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=color, linewidth=1.2))
        box = {"facecolor": color, "pad": 0.4, "lw": 0}
        cell.text(left, top, text, color="white", fontsize=5, va="bottom", bbox=box)
