"""One colour per idea, the same in every picture."""

import matplotlib
import matplotlib.colors

matplotlib.use("Agg")

INK = "#1f2430"
FAINT = "#9aa3b2"
FAST = "#3366cc"
SLOW = "#cc7a00"
CA3 = "#2a9d5c"
CA1 = "#b5338a"
TERMS = {
    "sim1": CA3,
    "sim2": CA1,
    "history": SLOW,
    "decorrelation": "#7a5cc2",
    "info_nce": "#c0392b",
}

SINK = "#c0392b"
SADDLE = "#cc7a00"
SOURCE = "#7a5cc2"
NULLCLINE = "#2a9d5c"
BORDER = "#7a5cc2"
ALIVE = "#3366cc"
LOST = "#6b7280"
COLLAPSED = "#d9dce3"
BASINS = ["#8fb0f0", "#f3c27d", "#9ad9b4", "#c9b6ee"]
LEVELS = ["#eef1f7", "#c3d0ea", "#7f9bd3", "#2f4f9e", "#172a5a"]
SYSTEM = {"phinet": ALIVE, "simsiam": SADDLE}

RIGHT, WRONG = "#2a9d5c", "#c0392b"
CLASSES = (
    "#3366cc", "#cc7a00", "#2a9d5c", "#c0392b", "#7a5cc2", "#8c6239", "#b5338a", "#6b7280", "#8a9a00", "#1797a6",
)  # fmt: skip


def class_colour(number: int) -> str:
    """The colour of a class: ten that differ clearly, then hues a golden angle apart, so that neighbours differ."""
    if number < len(CLASSES):
        return CLASSES[number]
    hue, light = number * 0.381966 % 1, (0.85, 0.65)[number % 2]
    return matplotlib.colors.to_hex(tuple(matplotlib.colors.hsv_to_rgb((hue, 0.75, light))))
