"""A figure of matplotlib as an SVG element for the page: small, for light and dark, always the same bytes.

Text stays text. Paths that look alike are joined, and go by differences: a field of a thousand short lines becomes two.
"""

import math
import re
from io import StringIO
from itertools import pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from phinets.reports.palette import INK

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


def inline(figure: Figure, prefix: str) -> str:
    """The figure as an element; `prefix` goes before every id, so that figures of one page don't share any."""
    written = StringIO()
    with rc_context(SETTINGS):
        figure.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    svg = written.getvalue()
    svg = svg[svg.index("<svg") :]
    for part in ("metadata", "style"):
        svg = re.sub(rf"<{part}.*?</{part}>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', r'<svg class="drawn" viewBox="\1" role="img">', svg)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}", svg).replace("xlink:href", "href")
    svg = re.sub(r'(style="[^"]*)font-family:[^;"]*;? ?', r"\1", svg)
    svg = ALIKE.sub(_joined, re.sub(r"\s+", " ", svg))
    svg = PATH.sub(lambda found: f'<path d="{shortened(found[1])}"{found[2]}/>', svg)
    for color, name in ((INK, "ink"), ("#000000", "ink"), ("#ffffff", "paper"), ("white", "paper")):
        svg = svg.replace(f": {color}", f": var(--{name})")
    return _without_empty(svg.replace("> <", "><"))


def shortened(way: str) -> str:
    """A way of straight pieces by differences, to a tenth of a point, without the nearest of its corners; what has
    curves in it is only rounded."""
    if not PLAIN.fullmatch(way):
        return re.sub(r"-?\d+\.\d+", lambda found: _tenth(round(float(found[0]) * 10)), way).strip()
    pieces = [piece for piece in way.split("M") if piece.strip()]
    return "".join(_piece([(float(x), float(y)) for x, y in CORNER.findall(each)], "z" in each) for each in pieces)


def _piece(corners: list[tuple[float, float]], closed: bool) -> str:
    kept = corners[:1]
    for corner in corners[1:-1]:
        if closed or math.dist(corner, kept[-1]) >= NEAREST:
            kept.append(corner)
    spots = [(round(10 * x), round(10 * y)) for x, y in [*kept, *corners[1:][-1:]]]
    steps = [f"l{_tenth(b[0] - a[0])} {_tenth(b[1] - a[1])}" for a, b in pairwise(spots) if a != b]
    return f"M{_tenth(spots[0][0])} {_tenth(spots[0][1])}{''.join(steps)}{'z' * closed}".replace(" -", "-")


def _joined(found: re.Match[str]) -> str:
    return f'<path d="{" ".join(way for way, _ in PATH.findall(found[0]))}"{found[2]}/>'


def _tenth(value: int) -> str:
    """A number of tenths, short: 3, .5, -1.2."""
    return f"{value / 10:g}".replace("0.", ".") if abs(value) < 10 else f"{value / 10:g}"


def _without_empty(svg: str) -> str:
    fewer = EMPTY.sub("", svg)
    return fewer if fewer == svg else _without_empty(fewer)
