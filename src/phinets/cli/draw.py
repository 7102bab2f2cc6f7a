"""`phinets draw`."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phinets.cli.command import Outcome, parse_words, show_lines
from phinets.cli.output import FileOptions, require_ending, require_free, save_figure
from phinets.config.errors import UserError
from phinets.runtime.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

Picture = Literal["architecture", "hippocampus", "shapes", "continual"]
Figure = Literal["matrix", "tasks", "fast-slow", "forgetting"]


@dataclass(frozen=True)
class Draw(FileOptions):
    """Draw a picture of the documentation, or of continual runs.

    Example: phinets draw shapes --out docs/pictures/shapes.png
    Example: phinets draw continual runs/a runs/b runs/c --figure forgetting --out forgetting.png
    """

    picture: Annotated[Picture, tyro.conf.Positional]
    """Which picture."""
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """For `continual`: the run folder; the figure `forgetting` takes any number of them."""
    figure: Figure = "matrix"
    """For `continual`: the accuracy matrix, each task's accuracy over time, the fast and the slow encoder over time, or
    average accuracy and forgetting by method and settings, over seeds."""
    out: Path | None = None
    """The file; its ending is the format. Unset: the picture's name with .png."""
    seed: int = 0
    """For `shapes`: the seed of the images."""


def command(words: list[str]) -> Outcome:
    options = parse_words(Draw, "draw", words)
    path = options.out or Path(f"{options.picture}.png")
    require_free(path, options.overwrite)
    if options.runs and options.picture != "continual":
        raise UserError(f"'{options.picture}' is not a picture of runs. Leave out '{options.runs[0]}'.")
    if options.picture == "shapes":
        _draw_shapes(path, options.seed)
    elif options.picture == "continual":
        save_figure(path, _continual_figure(options.runs, options.figure))
    else:
        from phinets.reports.architecture import architecture, hippocampus

        save_figure(path, architecture() if options.picture == "architecture" else hippocampus())
    return Outcome({"picture": str(path)}, show_lines(str(path)))


def _draw_shapes(path: Path, seed: int) -> None:
    from PIL import Image

    from phinets.data.shapes import contact_sheet

    sheet, content = Image.fromarray(contact_sheet(seed=seed)), BytesIO()
    large = sheet.resize((2 * sheet.width, 2 * sheet.height), Image.Resampling.NEAREST)
    large.save(content, format=require_ending(path, ["gif", "png", "webp"]))
    atomic_write(path, content.getvalue())


def _continual_figure(runs: tuple[Path, ...], figure: Figure) -> "MatplotlibFigure":
    from phinets.reports.continual import FIGURES, forgetting_figure
    from phinets.runs.resume import stream_record

    if not runs:
        raise UserError(f"there is no run to draw. Name its folder: phinets draw continual RUN --figure {figure}.")
    if figure != "forgetting" and len(runs) > 1:
        raise UserError(
            f"the figure '{figure}' shows one run, but {len(runs)} are named. Name one, or use --figure forgetting."
        )
    records = [stream_record(folder) for folder in runs]
    return forgetting_figure(records) if figure == "forgetting" else FIGURES[figure](records[0])
