"""One color per idea, the same in every picture."""

import colorsys

import matplotlib
from matplotlib.colors import hsv_to_rgb, to_hex, to_rgb

from phinets.config.methods import METHODS

matplotlib.use("Agg")

INK = "#1f2430"
FAINT = "#9aa3b2"
FAST = "#3366cc"
SLOW = "#cc7a00"
CA3 = "#2a9d5c"
CA1 = "#b5338a"
TERMS = {
    "sim1": CA3, "sim2": CA1, "history": SLOW, "decorrelation": "#7a5cc2", "info_nce": "#c0392b", "distil": "#0e7c86",
}  # fmt: skip

SINK = "#c0392b"
SADDLE = "#cc7a00"
SOURCE = "#7a5cc2"
NULLCLINE = "#2a9d5c"
BORDER = "#7a5cc2"
ALIVE = "#3366cc"
COLLAPSE = "#6b7280"
COLLAPSE_BASIN = "#d9dce3"
BASINS = ["#8fb0f0", "#f3c27d", "#9ad9b4", "#c9b6ee"]
LEVELS = ["#eef1f7", "#c3d0ea", "#7f9bd3", "#2f4f9e", "#172a5a"]
SYSTEM = {"phinet": ALIVE, "simsiam": SADDLE}

ARMS = {"encoder": FAST, "scratch": COLLAPSE}
RIGHT, WRONG = "#2a9d5c", "#c0392b"
CLASSES = (
    "#3366cc", "#cc7a00", "#2a9d5c", "#c0392b", "#7a5cc2", "#8c6239", "#b5338a", "#6b7280", "#8a9a00", "#1797a6",
)  # fmt: skip

FAMILY = {
    "simsiam": SADDLE, "byol": CA3, "rm-simsiam": "#8a6d3b", "phinet": ALIVE, "x-phinet": CA1, "barlow-twins": SOURCE,
    "moco-v2": SINK,
}  # fmt: skip
_SHADES = (
    (0.0, 0.0), (0.04, 0.12), (-0.04, -0.12), (0.08, 0.22), (-0.08, -0.2), (0.0, 0.3), (0.12, 0.05), (-0.1, 0.1),
    (0.16, 0.18),
)  # fmt: skip
"""How the variants of a family differ from it: turns of the hue, and lightness; in the order of `METHODS`."""


def method_color(name: str) -> str:
    """The color of a method: its family's, and a shade of it for each variant; one that comes later changes none."""
    family = name.partition("/")[0]
    kin = [other for other in METHODS if other.partition("/")[0] == family]
    if name not in kin:
        return COLLAPSE
    turn, lift = _SHADES[kin.index(name) % len(_SHADES)]
    hue, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(FAMILY.get(family, COLLAPSE)))
    return to_hex(colorsys.hls_to_rgb((hue + turn) % 1, min(0.85, max(0.15, lightness + lift)), saturation))


def class_color(number: int) -> str:
    """The color of a class: ten that differ clearly, then hues a golden angle apart, so that neighbors differ."""
    if number < len(CLASSES):
        return CLASSES[number]
    hue, light = number * 0.381966 % 1, (0.85, 0.65)[number % 2]
    return to_hex(tuple(hsv_to_rgb((hue, 0.75, light))))
