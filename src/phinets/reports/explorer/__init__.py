"""The explorer: one page that opens offline, put together from the files beside this one."""

from importlib.resources import files

SCRIPTS = ("polynomials.js", "systems.js", "paths.js", "drawing.js", "portraits.js", "page.js")
"""In the order in which one uses the other."""


def explorer() -> str:
    """The whole page as HTML: its style and its scripts inside, nothing fetched from anywhere."""
    here = files(__name__)
    script = "\n".join((here / name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = (here / "page.css").read_text(encoding="utf-8")
    page = (here / "page.html").read_text(encoding="utf-8")
    return page.replace("{{style}}", style).replace("{{script}}", script)
