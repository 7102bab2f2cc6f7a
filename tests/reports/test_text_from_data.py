"""Names of classes, tasks and folders are shown as they are, never read as markup."""

from dataclasses import replace
from io import BytesIO, StringIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from phinets.config.detection import AveragePrecision
from phinets.config.errors import printable
from phinets.detection.average_precision import Detections, GroundTruth
from phinets.reports.continual import FIGURES, forgetting_figure, matrix_table
from phinets.reports.curves import curves
from phinets.reports.detections import ImageDetections, class_table, detections_figure, precision_table
from phinets.reports.dynamics_figures import bifurcation_diagram
from phinets.reports.image_figures import (
    FeatureMap,
    LabeledImage,
    Query,
    feature_map,
    neighbor_sheet,
    samples,
)
from phinets.reports.progress import PlainConsole, result_table
from tests.reports.streams import stream_record
from tests.reports.test_detections import SUMMARY as DETECTIONS
from tests.reports.test_reports import SUMMARY, record

NAMES = ("a$b$c", r"$\frac$", "\x07bell", "<script>", "\udcff")
PIXELS = np.zeros((4, 4, 3), np.uint8)


def svg_text(figure: Figure) -> str:
    """All text of the figure as SVG, which must be well-formed."""
    file = BytesIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    return "".join(ElementTree.fromstring(file.getvalue()).itertext())


def stream_with(name: str) -> Any:
    one = stream_record(tasks=2, readouts=("task-knn",))
    return replace(one, summary=replace(one.summary, tasks=(name, "other"), data=f"folder:{name}"))


def figures(name: str) -> dict[str, Figure]:
    run = record()
    image = LabeledImage(name=f"x/{name}.png", label=name, picture=PIXELS)
    boxes, labels = np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([0])
    detections = Detections(boxes=boxes, labels=labels, scores=np.array([0.9]))
    truth = GroundTruth(boxes=boxes, labels=labels, difficult=np.array([False]))
    stream = stream_with(name)
    return {
        "curves": curves(replace(run, summary=replace(SUMMARY, data=f"folder:{name}"))),
        "map": feature_map(FeatureMap(np.eye(2), ["a", "b"], [name, name], ("x", "y"), name)),
        "sheet": neighbor_sheet([Query(image, [(0.5, image)])], name),
        "samples": samples({name: PIXELS[None]}, [name], name),
        "detections": detections_figure([ImageDetections(PIXELS, truth, {"encoder": detections})], [name], name),
        "seeds": forgetting_figure([stream]),
        **{kind: draw(stream) for kind, draw in FIGURES.items()},
    }


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", NAMES)
def test_no_figure_reads_a_name_as_markup(name: str) -> None:
    missing = [kind for kind, figure in figures(name).items() if printable(name) not in svg_text(figure)]
    assert missing == []


def test_numbers_at_a_logarithmic_axis_stay_math() -> None:
    from phinets.dynamics.systems import SimSiam

    assert "mathdefault" not in svg_text(bifurcation_diagram(SimSiam(sigma2=1.5)))


def printed(*content: object) -> str:
    console = PlainConsole(file=StringIO(), width=200, force_terminal=True, color_system=None)
    console.print(*content)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["[apple]", "x[/y]/d", "[bold]", ":apple:", "\x07bell", "\x1b[2Jclear", "\x9b2J"])
def test_no_table_reads_a_name_as_markup_or_lets_the_terminal_obey_it(name: str) -> None:
    precision = AveragePrecision(ap=1.0, ap50=1.0, ap75=1.0, per_class={name: 1.0}, per_class50={name: 1.0})
    detector = replace(DETECTIONS.detectors[0], description=name, precision={"coco": precision})
    detections = replace(DETECTIONS, classes=(name,), detectors=(detector,), data=name)
    stream = stream_with(name).summary
    contents = (
        result_table(replace(SUMMARY, data=name)), precision_table(detections), class_table(detections),
        matrix_table(stream.readings[0], stream.tasks), f"folder:{name}",
    )  # fmt: skip
    texts = [printed(content) for content in contents]
    assert [text for text in texts if printable(name) not in text or set(text) & {"\x07", "\x1b", "\x9b"}] == []
