"""Small charts for the page: from values to whole numbers on a canvas, which the template writes as SVG.

A canvas counts half pixels, so that whole numbers are fine enough; paths go by differences, which keeps them short.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from phinets.reports.continual_curves import spread
from phinets.reports.page.writing import short

LETTER, LINE = 12, 27
"""Width of a letter and height of a line, roughly."""
MARGIN = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A value over x; without y there is none, and the line has a gap."""

    x: float
    y: float | None
    spread: float | None = None
    """Half the length of its bar, or of the band there."""
    lost: bool = False
    """Whether a seed collapsed or diverged: its mark is a cross."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """From where to where it reaches."""
        if self.y is None:
            return None
        half = self.spread or 0.0
        return self.y - half, self.y + half


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line."""

    name: str
    color: str
    points: tuple[Point, ...]
    beside: tuple[Point, ...] = ()
    """Hollow marks: what the paper prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """What a chart shows."""

    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    names: tuple[str, ...] = ()
    """What stands at x = 0, 1, 2, …; empty where x is a number."""
    smooth: bool = False
    """Whether lines are many points without marks, their spread a band; else marks with bars."""
    labelled: bool = True
    """Whether each line bears its name at its end."""
    wide: int = 820
    high: int = 480


Spot = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A series on the canvas."""

    name: str
    color: str
    path: str
    band: str
    bars: str
    marks: tuple[Spot, ...]
    crosses: tuple[Spot, ...]
    beside: tuple[Spot, ...]
    label_y: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A plot on the canvas."""

    plot: Plot
    left: int
    right: int
    top: int
    bottom: int
    x_ticks: tuple[tuple[int, str], ...]
    y_ticks: tuple[tuple[int, str], ...]
    lines: tuple[Line, ...]


def chart(plot: Plot) -> Chart | None:
    """The plot on a canvas; None where it has no value to show."""
    every = [point for series in plot.series for point in (*series.points, *series.beside)]
    ends = [end for point in every for end in point.ends or ()]
    if not ends:
        return None
    low, high = _roomy(min(ends), max(ends))
    y_ticks = ticks(low, high)
    longest = max((len(series.name) for series in plot.series), default=0)
    left = MARGIN + LETTER * max(len(short(tick)) for tick in y_ticks) + LINE
    right = plot.wide - (MARGIN + (LETTER * longest + 10 if plot.labelled else 2 * LETTER))
    top, bottom = MARGIN + LINE, plot.high - 2 * LINE - MARGIN
    x_low, x_high = _x_ends(plot, every)
    box = _Box(x_low, x_high, low, high, left, right, top, bottom)
    named = _even(list(enumerate(plot.names)), right - left)
    x_ticks = named if plot.names else [(tick, short(tick)) for tick in ticks(x_low, x_high, 4)]
    lines = [_line(series, plot, box) for series in plot.series]
    return Chart(
        plot=plot,
        left=left,
        right=right,
        top=top,
        bottom=bottom,
        x_ticks=tuple((box.x(value), text) for value, text in x_ticks),
        y_ticks=tuple((box.y(value), short(value)) for value in y_ticks),
        lines=tuple(_with_labels(lines, plot, box)),
    )


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, about so many: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(n * step, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def path(spots: Sequence[Spot]) -> str:
    """The way from spot to spot in SVG's words: M40 12l8-3 9 1."""
    if not spots:
        return ""
    (x, y), steps = spots[0], [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(spots)]
    words = "".join(f"{dx:+d}{dy:+d}" for dx, dy in steps).replace("+", " ").lstrip()
    return f"M{x} {y}" + (f"l{words}" if words else "")


@dataclass(frozen=True, slots=True)
class _Box:
    """From values to the canvas."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    left: int
    right: int
    top: int
    bottom: int

    def x(self, value: float) -> int:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return round(self.left + share * (self.right - self.left))

    def y(self, value: float) -> int:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return round(self.bottom - share * (self.bottom - self.top))

    def spots(self, points: Iterable[Point]) -> tuple[Spot, ...]:
        return tuple((self.x(point.x), self.y(point.y)) for point in points if point.y is not None)


def _roomy(low: float, high: float) -> tuple[float, float]:
    """The same with a little room on both sides."""
    room = 0.06 * (high - low) or max(abs(high) * 0.05, 0.5)
    return low - room, high + room


def _x_ends(plot: Plot, points: Sequence[Point]) -> tuple[float, float]:
    if plot.names:
        return -0.35, len(plot.names) - 0.65
    xs = [point.x for point in points]
    return min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1


def _even(names: list[tuple[int, str]], wide: int) -> list[tuple[float, str]]:
    """As many names as have room side by side: all, every second, every third."""
    longest = max((len(name) for _, name in names), default=0)
    every = -(-(LETTER * (longest + 1)) * len(names) // max(1, wide)) or 1
    return [(float(n), name) for n, name in names if n % every == 0]


def _line(series: Series, plot: Plot, box: _Box) -> Line:
    runs = [list(group) for known, group in groupby(series.points, lambda point: point.y is not None) if known]
    wide = [point for run in runs for point in run if point.spread]
    return Line(
        name=series.name,
        color=series.color,
        path="".join(path(box.spots(run)) for run in runs if len(run) > 1),
        band="".join(_band(run, box) for run in runs) if plot.smooth and wide else "",
        bars="" if plot.smooth else "".join(_bar(point, box) for point in wide),
        marks=() if plot.smooth else box.spots(point for point in series.points if not point.lost),
        crosses=box.spots(point for point in series.points if point.lost),
        beside=box.spots(series.beside),
        label_y=None,
    )


def _band(run: Sequence[Point], box: _Box) -> str:
    ends = [(box.x(point.x), point.ends) for point in run]
    above = [(x, box.y(end[1])) for x, end in ends if end is not None]
    below = [(x, box.y(end[0])) for x, end in reversed(ends) if end is not None]
    return f"{path([*above, *below])}z"


def _bar(point: Point, box: _Box) -> str:
    low, high = point.ends or (0.0, 0.0)
    return f"M{box.x(point.x)} {box.y(low)}V{box.y(high)}"


def _with_labels(lines: Sequence[Line], plot: Plot, box: _Box) -> list[Line]:
    """Each with the place of its name, beside its last value."""
    if not plot.labelled:
        return list(lines)
    last = [_last(series) for series in plot.series]
    known = sorted((box.y(value), n) for n, value in enumerate(last) if value is not None)
    free = spread([float(y) for y, _ in known], LINE, (box.top, box.bottom))
    places = {n: round(place) for (_, n), place in zip(known, free, strict=True)}
    return [replace(line, label_y=places[n]) if n in places else line for n, line in enumerate(lines)]


def _last(series: Series) -> float | None:
    known = [point.y for point in (*series.beside, *series.points) if point.y is not None]
    return known[-1] if known else None
