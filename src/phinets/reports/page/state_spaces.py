"""The paper's figures of learning dynamics as inline SVG: small, themed, and always the same bytes."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from phinets.config.jobs import DynamicsJob
from phinets.dynamics.systems import PhiNet, SimSiam, Version
from phinets.paper.findings import TargetFound
from phinets.reports.page.tables import anchor
from phinets.reports.palette import INK
from phinets.reports.phase_portrait import COMPARED_RHO, around_threshold, comparison, line, regimes


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """One of the figures."""

    title: str
    svg: str


def _line(version: Version, sigma2: float) -> Figure:
    return line(around_threshold(SimSiam(sigma2=sigma2, rho=1.0)))


def _comparison(version: Version, sigma2: float) -> Figure:
    return comparison(PhiNet(sigma2=sigma2, rho=COMPARED_RHO, version=version))


FIGURES: Mapping[str, tuple[str, tuple[Version, ...], Callable[[Version, float], Figure]]] = {
    "figure:vecfield_PhiNet": ("PhiNet under four weight decays", ("published", "corrected"), regimes),
    "figure:simsiam": ("SimSiam above and below its threshold", ("published",), _line),
    "figure:comparison": ("PhiNet beside SimSiam from the same start", ("published", "corrected"), _comparison),
}
"""By the figure's label in the paper: title, for which equations it is drawn (SimSiam's are the same), how."""


def state_spaces(found: TargetFound) -> list[StateSpace]:
    """The figures that a target's place names; all three where it names none of them."""
    jobs = [job for table in found.tables for each in table.cells for job in each.cell.jobs]
    sigma2 = next((job.sigma2 for job in jobs if isinstance(job, DynamicsJob)), 1.5)
    labels = [label for label in FIGURES if label in found.target.place] or list(FIGURES)
    figures: list[StateSpace] = []
    for label in labels:
        title, versions, draw = FIGURES[label]
        for version in versions:
            name = f"{title}, equations as {version}" if len(versions) > 1 else title
            figures.append(
                StateSpace(title=name, svg=inline_svg(draw(version, sigma2), f"{anchor(found)}-{len(figures)}-"))
            )
    return figures


SALT = "phinets"
"""Ids within a figure are hashes of what it shows and of this."""
SETTINGS: dict[Any, str] = {"svg.fonttype": "none", "svg.hashsalt": SALT}
PATH = re.compile(r'<path d="([^"]*)"([^>]*)/>')
ALIKE = re.compile(r'<path d="([^"]*)"([^>]*)/>(?:\s*<path d="[^"]*"\2/>)+')
EMPTY = re.compile(r"<g[^>]*>\s*</g>")
PLAIN = re.compile(r"[MLz\d.\s-]+")
"""A way of straight pieces."""
CORNER = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
NEAREST = 2.0
"""Points between corners of a line that are kept."""


def inline_svg(figure: Figure, prefix: str) -> str:
    """The figure as an element; `prefix` goes before every id, so that figures of one page don't share any."""
    output = StringIO()
    with rc_context(SETTINGS):
        figure.savefig(output, format="svg", metadata={"Date": None}, transparent=True)
    svg = output.getvalue()
    svg = svg[svg.index("<svg") :]
    for element in ("metadata", "style"):
        svg = re.sub(rf"<{element}.*?</{element}>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', r'<svg class="drawn" viewBox="\1" role="img">', svg)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", svg)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}", svg).replace("xlink:href", "href")
    svg = re.sub(r'(style="[^"]*)font-family:[^;"]*;? ?', r"\1", svg)
    svg = ALIKE.sub(_join_paths, re.sub(r"\s+", " ", svg))
    svg = PATH.sub(lambda match: f'<path d="{shorten_path(match[1])}"{match[2]}/>', svg)
    for color, name in ((INK, "ink"), ("#000000", "ink"), ("#ffffff", "paper"), ("white", "paper")):
        svg = svg.replace(f": {color}", f": var(--{name})")
    return _drop_empty_groups(svg.replace("> <", "><"))


def shorten_path(way: str) -> str:
    """A way of straight pieces by differences, to a tenth of a point, without the nearest of its corners; what has
    curves in it is only rounded."""
    if not PLAIN.fullmatch(way):
        return re.sub(r"-?\d+\.\d+", lambda match: _tenth(round(float(match[0]) * 10)), way).strip()
    pieces = [piece for piece in way.split("M") if piece.strip()]
    return "".join(_piece([(float(x), float(y)) for x, y in CORNER.findall(each)], "z" in each) for each in pieces)


def _piece(corners: list[tuple[float, float]], closed: bool) -> str:
    points = corners[:1]
    for corner in corners[1:-1]:
        if closed or math.dist(corner, points[-1]) >= NEAREST:
            points.append(corner)
    spots = [(round(10 * x), round(10 * y)) for x, y in [*points, *corners[1:][-1:]]]
    steps = [f"l{_tenth(b[0] - a[0])} {_tenth(b[1] - a[1])}" for a, b in pairwise(spots) if a != b]
    return f"M{_tenth(spots[0][0])} {_tenth(spots[0][1])}{''.join(steps)}{'z' * closed}".replace(" -", "-")


def _join_paths(match: re.Match[str]) -> str:
    return f'<path d="{" ".join(way for way, _ in PATH.findall(match[0]))}"{match[2]}/>'


def _tenth(value: int) -> str:
    """A number of tenths, short: 3, .5, -1.2."""
    return f"{value / 10:g}".replace("0.", ".") if abs(value) < 10 else f"{value / 10:g}"


def _drop_empty_groups(svg: str) -> str:
    fewer = EMPTY.sub("", svg)
    return fewer if fewer == svg else _drop_empty_groups(fewer)
