"""Tables and pictures of a detection transfer."""

from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from rich.console import Console

from phinets.config.detection import AveragePrecision, DetectionRecord, DetectionSummary, DetectorResult
from phinets.detection.average_precision import Detections, GroundTruth
from phinets.reports.detections import (
    ImageDetections,
    class_table,
    detections_figure,
    loss_figure,
    paper_precisions,
    precision_table,
)
from phinets.reports.palette import ARMS, CLASSES

PARTS = ("VOC 07", "VOC 07+12")


def arm(name: str, ap: float | None) -> DetectorResult:
    of = AveragePrecision(
        ap=ap, ap50=61.25, ap75=None, per_class={"cat": ap, "dog": None}, per_class50={"cat": 3, "dog": None}
    )
    losses = {"loss_first": 2.5, "loss_last": 0.5}
    return DetectorResult(
        name=name, description=f"{name} weights", precision={"coco": of, "voc07": of}, seconds=1, **losses
    )


SUMMARY = DetectionSummary(
    target="RUN",
    backbone="resnet18",
    data="voc:cats",
    classes=("cat", "dog"),
    train_images=3,
    test_images=2,
    metric="coco",
    protocol="in words",
    detectors=(arm("encoder", 12.34), arm("scratch", 5.0)),
    paper=None,
    seconds=2,
)


def printed(table: object) -> str:
    file = StringIO()
    Console(file=file, width=150).print(table)
    return file.getvalue()


def test_the_table_has_a_line_for_each_detector_and_a_dash_for_what_is_not_known() -> None:
    text = printed(precision_table(SUMMARY))
    row = next(line for line in text.splitlines() if "encoder weights" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "encoder weights", "12.3", "61.2", "–", "2.500 → 0.500",
    ]  # fmt: skip
    assert "scratch weights" in text
    assert "in words" in text
    assert "paper" not in text


@pytest.mark.parametrize("part", PARTS)
def test_on_voc_s_own_pictures_and_by_its_metric_the_paper_s_lines_stand_below(part: str) -> None:
    assert "paper" not in printed(precision_table(replace(SUMMARY, paper=part)))  # COCO's
    detectors = tuple(replace(one, precision={"voc07": one.precision["coco"]}) for one in SUMMARY.detectors)
    text = printed(precision_table(replace(SUMMARY, paper=part, metric="voc07", detectors=detectors)))
    assert text.count(f"paper, {part}: ") == 7
    row = next(line for line in text.splitlines() if "X-PhiNet (lr .05" in line)
    assert ("72.9" if part == "VOC 07" else "82.3") in row


def test_the_paper_s_best_lines_are_those_it_prints_in_bold() -> None:
    best = {
        (part, name): max(row[n] or 0 for row in paper_precisions(part).values())
        for part in PARTS
        for n, name in enumerate(("ap", "ap50", "ap75"))
    }
    assert best == {
        ("VOC 07", "ap50"): 74.9,
        ("VOC 07", "ap"): 46.6,
        ("VOC 07", "ap75"): 50.4,
        ("VOC 07+12", "ap50"): 82.7,
        ("VOC 07+12", "ap"): 57.3,
        ("VOC 07+12", "ap75"): 64.6,  # the paper prints 63.9 in bold, though SimSiam's 64.6 is higher
    }


def test_each_class_has_a_line_with_both_detectors() -> None:
    row = next(line for line in printed(class_table(SUMMARY)).splitlines() if "cat" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["cat", "12.3", "3.0", "5.0", "3.0"]


def test_the_curves_show_every_loss_of_every_detector_in_its_color() -> None:
    steps = [
        {"kind": "step", "step": i, "loss": 4.0 / i, "objectness": 1.0, "anchors": 1.0, "classes": 1.0, "boxes": 1.0}
        for i in range(1, 21)
    ]
    record = DetectionRecord(folder="x", summary=SUMMARY, journals={"encoder": steps, "scratch": steps[:5]})
    figure = loss_figure(record)
    assert [axes.get_title() for axes in figure.axes] == ["loss", "objectness", "anchors", "classes", "boxes"]
    whole = figure.axes[0].get_lines()
    assert [to_hex(line.get_color()) for line in whole] == [ARMS["encoder"]] * 2 + [ARMS["scratch"]] * 2
    assert np.asarray(whole[0].get_ydata()).tolist() == [row["loss"] for row in steps]


def test_true_boxes_and_those_found_surely_are_drawn_where_they_are() -> None:
    truth = GroundTruth(np.array([[2.0, 3, 12, 9]]), np.array([1]), np.array([False]))
    found = Detections(np.array([[1.0, 1, 5, 5], [4, 4, 8, 8]]), np.array([0, 1]), np.array([0.9, 0.3]))
    figure = detections_figure(
        [ImageDetections(np.zeros((20, 30, 3), np.uint8), truth, {"encoder": found})], ("cat", "dog")
    )
    left, right = figure.axes
    (there,), (said,) = left.patches, right.patches
    assert isinstance(there, Rectangle)
    assert isinstance(said, Rectangle)
    assert there.get_bbox().bounds == (2, 3, 10, 6)
    assert said.get_bbox().bounds == (1, 1, 4, 4)
    assert to_hex(said.get_edgecolor()) == CLASSES[0]
    assert [text.get_text() for text in right.texts] == ["cat 0.90"]
    assert (left.get_title(), right.get_title()) == ("truth", "encoder")
