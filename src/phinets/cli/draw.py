"""`phinets draw`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from phinets.cli.command import Outcome, parse_words
from phinets.cli.output import require_free, save_figure, save_image
from phinets.config.errors import UserError

Picture = Literal["architecture", "shapes", "continual"]
Figure = Literal["matrix", "tasks", "fast-slow", "forgetting"]


@dataclass(frozen=True)
class Draw:
    """Redraw a picture of the documentation, or of runs over a stream.

    Example: phinets draw shapes --out docs/pictures/shapes.png
    Example: phinets draw continual runs/a runs/b runs/c --figure forgetting --out forgetting.png
    """

    picture: Annotated[Picture, tyro.conf.Positional]
    """Which picture."""
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """For `continual`: the folder of the run, for its figure `forgetting` of as many as there are."""
    figure: Figure = "matrix"
    """For `continual`: the accuracy matrix, each task's accuracy over time, the fast encoder beside the slow one over
    time, or average accuracy and forgetting by method and settings, over seeds."""
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
    if options.runs and options.picture != "continual":
        raise UserError(f"'{options.picture}' is not a picture of runs. Leave out '{options.runs[0]}'.")
    PICTURES[options.picture](path, options)
    return Outcome({"picture": str(path)}, lambda console: console.print(str(path), highlight=False))


def _architecture(path: Path, options: Draw) -> None:
    from phinets.reports.architecture import architecture

    save_figure(path, architecture())


def _shapes(path: Path, options: Draw) -> None:
    from PIL import Image

    from phinets.data.shapes import contact_sheet

    sheet = Image.fromarray(contact_sheet(seed=options.seed))
    save_image(path, sheet.resize((2 * sheet.width, 2 * sheet.height), Image.Resampling.NEAREST))


def _continual(path: Path, options: Draw) -> None:
    from phinets.reports.continual import FIGURES, forgetting_figure
    from phinets.runs.resume import stream_record

    n = len(options.runs)
    if n == 0:
        raise UserError(
            f"there is no run to draw. Name its folder: phinets draw continual RUN --figure {options.figure}."
        )
    if options.figure != "forgetting" and n > 1:
        raise UserError(
            f"the figure '{options.figure}' shows one run, but {n} are named. Name one, or use --figure forgetting."
        )
    records = [stream_record(folder) for folder in options.runs]
    drawn = forgetting_figure(records) if options.figure == "forgetting" else FIGURES[options.figure](records[0])
    save_figure(path, drawn)


PICTURES: Mapping[Picture, Callable[[Path, Draw], None]] = {
    "architecture": _architecture,
    "shapes": _shapes,
    "continual": _continual,
}
