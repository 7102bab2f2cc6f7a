"""Figures as inline SVG: small, themed, and always the same bytes."""

import math
import re
from html import escape
from io import StringIO
from itertools import pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from phinets.reports.palette import INK

SETTINGS: dict[Any, str] = {"svg.fonttype": "none", "svg.hashsalt": "phinets"}
"""Text stays text, and the same figure has the same ids."""
TITLE = "title: "
"""An id that begins with this becomes the tooltip of its element."""
PATH = re.compile(r'<path(?: id="[^"]*")? d="([^"]*)"([^>]*)/>')
ALIKE = re.compile(r'<path d="([^"]*)"([^>]*)/>(?:\s*<path d="[^"]*"\2/>)+')
EMPTY = re.compile(
    r'<(g|defs)[^>/]*>\s*</\1>|<g[^>]*/>|<path d="[^"]*" style="fill:none"/>| style=""| transform="rotate\(-0 [^"]*"'
)
"""What shows nothing."""
LONELY = re.compile(r"<g>(<(text|path|use|defs)\b(?:[^>]*/>|[^>]*>[^<]*</\2>))</g>")
"""A group of one element."""
PLAIN = re.compile(r"[MLz\d.\s-]+")
"""A way of straight pieces."""
CORNER = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
DEFAULTS = re.compile("font-size:9px;|text-anchor:start;?")
"""What the page's style sheet sets for every text."""
NEAREST = 2.0
"""Points between corners of a line that are kept."""


def inline_svg(figure: Figure, prefix: str, label: str = "") -> str:
    """The figure as an element that `label` describes; `prefix` goes before every id, so that no two figures share any.

    Black, white and the palette's ink follow the theme of the page.
    """
    output = StringIO()
    with rc_context(SETTINGS):
        figure.savefig(output, format="svg", metadata={"Date": None}, transparent=True)
    svg = output.getvalue()
    svg = svg[svg.index("<svg") :]
    for element in ("metadata", "style"):
        svg = re.sub(rf"<{element}.*?</{element}>", "", svg, flags=re.DOTALL)
    box = re.findall(r'viewBox="([^"]*)"', svg)[0]
    head = f'<svg class="drawn" viewBox="{box}" role="img" aria-label="{escape(label)}">'
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(rf'<g id="{TITLE}([^"]*)">', r"<g><title>\1</title>", svg)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda match: match[0] if match[1] in used else "", svg)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}", svg).replace("xlink:href", "href")
    svg = re.sub(r'(style="[^"]*)font-family:[^;"]*;? ?', r"\1", svg)
    svg = re.sub(r"\s+", " ", svg)
    svg = ALIKE.sub(lambda same: f'<path d="{" ".join(way for way, _ in PATH.findall(same[0]))}"{same[2]}/>', svg)
    svg = PATH.sub(lambda match: match[0].replace(match[1], shorten_path(match[1])), svg)
    for color, name in ((INK, "ink"), ("#000000", "ink"), ("#ffffff", "paper"), ("white", "paper")):
        svg = svg.replace(f": {color}", f": var(--{name})")
    svg = re.sub(r'style="[^"]*"', lambda match: DEFAULTS.sub("", re.sub("([:;]) ", r"\1", match[0])), svg)
    svg = re.sub(
        r'\b(x|y|width|height)="(-?[\d.]+)"', lambda match: f'{match[1]}="{_tenth(round(float(match[2]) * 10))}"', svg
    )
    return _drop_empty(svg.replace("> <", "><"))


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
    steps = " ".join(f"{_tenth(b[0] - a[0])} {_tenth(b[1] - a[1])}" for a, b in pairwise(spots) if a != b)
    return f"M{_tenth(spots[0][0])} {_tenth(spots[0][1])}{'l' * bool(steps)}{steps}{'z' * closed}".replace(" -", "-")


def _tenth(value: int) -> str:
    """A number of tenths, short: 3, .5, -1.2."""
    return f"{value / 10:g}".replace("0.", ".") if abs(value) < 10 else f"{value / 10:g}"


def _drop_empty(svg: str) -> str:
    fewer = LONELY.sub(r"\1", EMPTY.sub("", svg))
    return fewer if fewer == svg else _drop_empty(fewer)
