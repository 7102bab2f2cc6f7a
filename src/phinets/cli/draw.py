"""`phinets draw`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free, save_figure, save_image
from phinets.cli.parsing import parse_words

Picture = Literal["architecture", "shapes"]


@dataclass(frozen=True)
class Draw:
    """Redraw a picture of the documentation.

    Example: phinets draw shapes --out docs/pictures/shapes.png
    """

    picture: Annotated[Picture, tyro.conf.Positional]
    """Which picture."""
    out: Path | None = None
    """Where to; the ending tells the format. Unset: the picture's name with .png, here."""
    seed: int = 0
    """The world, for `shapes`."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: where the picture is."""


def command(words: list[str]) -> Outcome:
    """Draw into a file."""
    options = parse_words(Draw, "draw", words)
    path = options.out or Path(f"{options.picture}.png")
    require_free(path, options.overwrite)
    PICTURES[options.picture](path, options.seed)
    return Outcome({"picture": str(path)}, lambda console: console.print(str(path), highlight=False))


def _architecture(path: Path, seed: int) -> None:
    from phinets.reports.architecture import architecture

    save_figure(path, architecture())


def _shapes(path: Path, seed: int) -> None:
    from PIL import Image

    from phinets.data.shapes import contact_sheet

    sheet = Image.fromarray(contact_sheet(seed=seed))
    save_image(path, sheet.resize((2 * sheet.width, 2 * sheet.height), Image.Resampling.NEAREST))


PICTURES: Mapping[Picture, Callable[[Path, int], None]] = {"architecture": _architecture, "shapes": _shapes}
