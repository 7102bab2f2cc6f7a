"""One colour per idea, the same in every picture."""

import matplotlib

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
ARMS = {"encoder": FAST, "scratch": "#6b7280"}
CLASSES = ["#c0392b", "#3366cc", "#2a9d5c", "#cc7a00", "#7a5cc2", "#b5338a", "#147d8c", "#8a5a2b"]
