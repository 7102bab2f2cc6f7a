"""The paper's table of detection transfer (table "VOC"), to stand beside what is measured."""

from collections.abc import Mapping
from typing import NamedTuple


class VocRow(NamedTuple):
    """One line: average precision in percent."""

    pretrained: str
    ap50: float
    ap: float
    ap75: float


FIRST, SECOND = "lr .05, wd 1e-4", "lr .5, wd 1e-5"
"""The two recipes of pretraining."""

PAPER_VOC: Mapping[str, tuple[VocRow, ...]] = {
    "VOC 07": (
        VocRow("MoCo v2", 73.2, 46.6, 50.2),
        VocRow(f"SimSiam ({FIRST})", 71.7, 45.5, 49.4),
        VocRow(f"SimSiam ({SECOND})", 73.6, 46.6, 49.8),
        VocRow(f"PhiNet ({FIRST})", 72.7, 46.35, 50.4),
        VocRow(f"PhiNet ({SECOND})", 74.4, 46.2, 49.8),
        VocRow(f"X-PhiNet ({FIRST})", 72.9, 46.2, 49.9),
        VocRow(f"X-PhiNet ({SECOND})", 74.9, 45.9, 50.1),
    ),
    "VOC 07+12": (
        VocRow("MoCo v2", 82.3, 57.1, 63.2),
        VocRow(f"SimSiam ({FIRST})", 80.6, 55.1, 61.0),
        VocRow(f"SimSiam ({SECOND})", 82.7, 57.3, 64.6),
        VocRow(f"PhiNet ({FIRST})", 81.9, 56.8, 62.81),
        VocRow(f"PhiNet ({SECOND})", 82.6, 56.4, 62.6),
        VocRow(f"X-PhiNet ({FIRST})", 82.3, 56.9, 63.9),
        VocRow(f"X-PhiNet ({SECOND})", 82.7, 55.7, 62.4),
    ),
}
