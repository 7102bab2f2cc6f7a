"""The Φ architecture as pictures: figures 1 and 2 of the paper, drawn anew."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch

from phinets.reports.figures import new_figure
from phinets.reports.palette import CA1, CA3, FAINT, FAST, INK, SLOW

Point = tuple[float, float]
TITLES = {"simsiam": "SimSiam", "phinet": "PhiNet", "x-phinet": "X-PhiNet"}


def architecture() -> Figure:
    """SimSiam, PhiNet and X-PhiNet side by side: what each adds to the one before."""
    figure, grid = new_figure(12, 5, columns=3, kind=Figure)
    for axes, name in zip(grid[0], TITLES, strict=True):
        _panel(axes, name)
    return figure


def hippocampus() -> Figure:
    """X-PhiNet as a model of the hippocampus (EC, CA3, CA1) beside the neocortex (NC), as Section 3 describes it."""
    figure, grid = new_figure(6.5, 5.5, kind=Figure)
    axes = grid[0, 0]
    _blank(axes, 8.4)
    for x, layer, code, color in ((1.8, "II", "$z_1 = f(x_1)$", FAST), (5, "III", "$z_2 = f(x_2)$", FAST),
                                  (8.2, "V", "$z_0 = f_{long}(x)$", SLOW)):  # fmt: skip
        _node(axes, (x, 0.6), f"EC {layer}\n{code}", color, height=1.1)
    _arrow(axes, (1.8, 1.2), (1.8, 3.3), FAST)
    _node(axes, (1.8, 3.9), "CA3\npredictor $h$", CA3, height=1.1)
    _arrow(axes, (3.0, 3.9), (4.0, 3.9), CA3, label="$p_1$")
    _arrow(axes, (5, 1.2), (5, 3.4), FAST, stopped=True)
    _loss(axes, (5, 3.9), "Sim-1", CA3)
    _arrow(axes, (1.8, 4.5), (3.85, 6.6), CA3, label="$p_1$")
    _node(axes, (5, 6.6), "CA1\npredictor $g$", CA1, height=1.1)
    _arrow(axes, (6.2, 6.2), (7.6, 4.4), CA1, label="$y_1$")
    _arrow(axes, (8.2, 1.2), (8.2, 3.4), SLOW, stopped=True)
    _loss(axes, (8.2, 3.9), "Sim-2", CA1)
    _arrow(axes, (8.2, 4.4), (8.2, 6.0), CA1)
    _node(axes, (8.2, 6.6), "NC\nlong-term memory", SLOW, height=1.1)
    axes.text(5, 7.6, "CA1 compares (Sim-1) and predicts (g); EC V passes its output on to NC", fontsize=8, color=INK,
              ha="center")  # fmt: skip
    return figure


def _blank(axes: Axes, height: float) -> None:
    axes.set(xlim=(0, 10), ylim=(-0.2, height), aspect="equal")
    axes.axis("off")


def _panel(axes: Axes, name: str) -> None:
    _blank(axes, 11.0)
    axes.set_title(TITLES[name], fontsize=15, color=INK, weight="bold")
    _node(axes, (5, 0.4), "image $x$", FAINT)
    _views(axes)
    _sim1(axes)
    if name != "simsiam":
        _sim2(axes, slow=name == "x-phinet")


def _views(axes: Axes) -> None:
    """Both augmented paths up to their codes, and the predictor of CA3 on the left."""
    for x, i in ((1.8, 1), (8.2, 2)):
        _arrow(axes, (5, 0.8), (x, 2.0), FAINT)
        _node(axes, (x, 2.4), f"view $x_{i}$", FAINT)
        _arrow(axes, (x, 2.8), (x, 3.7), FAST)
        _node(axes, (x, 4.1), "encoder $f$", FAST)
    _arrow(axes, (1.8, 4.5), (1.8, 5.5), FAST, label="$z_1$")
    _node(axes, (1.8, 6.1), "predictor $h$\n(CA3)", CA3, height=1.1)


def _sim1(axes: Axes) -> None:
    """h(z₁) must give z₂, which takes no gradient; symmetrically for the other view."""
    _arrow(axes, (1.8, 6.7), (7.2, 7.4), CA3, label="$p_1$", at=0.25)
    _arrow(axes, (8.2, 4.5), (8.2, 7.0), FAST, label="$z_2$", stopped=True)
    _loss(axes, (8.2, 7.5), "Sim-1", CA3)


def _sim2(axes: Axes, slow: bool) -> None:
    """g(h(z₁)) must give the code of the image itself; in X-PhiNet that code is the slow encoder's."""
    color = SLOW if slow else FAST
    _arrow(axes, (5, 0.8), (5, 3.7), FAINT)
    _node(axes, (5, 4.1), "$f_{long}$ (slow)" if slow else "encoder $f$", color)
    _arrow(axes, (5, 4.5), (5, 9.7), color, label="$z_0$", at=0.25, stopped=True)
    _arrow(axes, (1.8, 6.7), (1.8, 8.3), CA3)
    _node(axes, (1.8, 8.9), "predictor $g$\n(CA1)", CA1, height=1.1)
    _arrow(axes, (1.8, 9.5), (4.0, 10.1), CA1, label="$y_1$")
    _loss(axes, (5, 10.2), "Sim-2", CA1)
    if slow:
        _arrow(axes, (7.0, 4.35), (6.2, 4.35), SLOW)
        axes.text(6.6, 4.6, "EMA", fontsize=8, color=INK, ha="center")


def _node(axes: Axes, center: Point, text: str, color: str, height: float = 0.8) -> None:
    x, y = center
    corner, style = (x - 1.15, y - height / 2), "round,pad=0.02,rounding_size=0.2"
    box = FancyBboxPatch(corner, 2.3, height, style, facecolor="white", edgecolor=color, linewidth=1.8, zorder=3)
    axes.add_patch(box)
    axes.text(x, y, text, ha="center", va="center", fontsize=10, color=INK, zorder=4)


def _loss(axes: Axes, center: Point, text: str, color: str) -> None:
    axes.add_patch(Ellipse(center, 2.0, 1.0, facecolor=color, edgecolor="none", zorder=3))
    axes.text(*center, text, ha="center", va="center", fontsize=10, color="white", weight="bold", zorder=4)


def _arrow(
    axes: Axes, start: Point, end: Point, color: str, *, label: str = "", at: float = 0.5, stopped: bool = False
) -> None:
    """An arrow with a label some way along it; two bars across it where no gradient passes."""
    patch = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=13, color=color, linewidth=1.6, shrinkA=0, shrinkB=0
    )
    axes.add_patch(patch)
    x, y = start[0] + at * (end[0] - start[0]), start[1] + at * (end[1] - start[1])
    if stopped:
        axes.text(x, y, "=", fontsize=13, color=INK, weight="bold", ha="center", va="center", zorder=4)
        axes.text(x + 0.3, y, "stop-gradient", fontsize=7, color=INK, va="center")
    if label:
        axes.text(x + 0.25, y + (0.5 if stopped else 0.2), label, fontsize=9, color=INK, va="center")
