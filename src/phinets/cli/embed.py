"""`phinets embed`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console

from phinets.cli.outcome import Outcome
from phinets.cli.output import require_drawable, require_free, save_figure, save_lines
from phinets.cli.parsing import parse_words
from phinets.config.errors import UserError, require_at_least
from phinets.config.exam import EncoderOptions
from phinets.reports.counting import CountBar
from phinets.runtime.process import leaving_at_once

if TYPE_CHECKING:
    from phinets.embed.embed import Work
    from phinets.embed.table import Table

THUMBNAILS = 1_000
"""Images that a map has room for."""


@dataclass(frozen=True)
class Embed:
    """Write the features of images into one file, with their paths and classes; and draw what was learned.

    It goes on where it was cut when the same command is given again.

    Example: phinets embed runs/first --data folder:photos --out features.npz --map map.png --neighbors sheet.png
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, or a file of weights (.safetensors, or a state dict)."""
    out: Path = Path("features.npz")
    """.npz (paths, labels, classes, features) or .parquet (path, label, feature)."""
    part: Literal["all", "train", "test", "bank"] = "all"
    """Which part of the data; all: what is learned from and what is asked about."""
    batch: int | None = None
    """Images that the encoder is shown together; unset: 512, and fewer of large ones."""
    map: Path | None = None
    """Draw the features on a plane into this picture; the places go into a .csv beside it."""
    map_method: Literal["pca", "tsne"] = "pca"
    """The first two principal components, or t-SNE of up to 3,000 images."""
    thumbnails: int = 0
    """Images that stand in for their points on the map."""
    neighbors: Path | None = None
    """Draw some images beside those nearest to them into this picture; the cosines go into a .csv beside it."""
    queries: int = 8
    """How many images ask for their neighbors, evenly spread over all."""
    query_images: tuple[Path, ...] = ()
    """Picture files that ask instead."""
    near: int = 8
    """Neighbors of each."""
    sight: EncoderOptions = field(default_factory=EncoderOptions)
    overwrite: bool = False
    """Replace the files, and let the beginning of other work go."""
    json: bool = False
    """Print one JSON document: where the features are, and what they are of; progress goes to standard error."""

    def __post_init__(self) -> None:
        require_at_least(self, batch=1, queries=1, near=1, thumbnails=0)
        if self.thumbnails > THUMBNAILS:
            raise UserError(f"thumbnails is {self.thumbnails}, but a map has room for {THUMBNAILS:,}. Ask for fewer.")
        if self.query_images and self.neighbors is None:
            raise UserError("--query-images needs --neighbors, the picture that they go into.")

    @property
    def pictures(self) -> dict[str, Path]:
        """The pictures that are asked for, by option."""
        asked = {"--map": self.map, "--neighbors": self.neighbors}
        return {option: path for option, path in asked.items() if path is not None}


def command(words: list[str]) -> Outcome:
    """Where the features and the pictures are."""
    options = parse_words(Embed, "embed", words)
    _require_places(options)
    with leaving_at_once():
        from phinets.embed.embed import embedded, work
        from phinets.embed.table import require_format, write_table

    require_format(options.out)
    todo = work(options.target, options.sight, options.part, options.batch)
    _require_pictures(options, todo)
    with CountBar(Console(stderr=True)) as bar, embedded(todo, options.out, options.overwrite, bar) as table:
        write_table(options.out, table)
        files = _drawn(options, todo, table)
        about = table.about
    document = {"out": str(options.out), **about, **files}
    told = (
        f"{options.out}: {about['features']} features of {about['images']} images of {about['data']} "
        f"({about['bad_images']} can't be used) by the {about['called']}"
    )

    def show(console: Console) -> None:
        for line in (told, *map(str, files.values())):
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    return Outcome(document, show)


def _require_places(options: Embed) -> None:
    """Refuse files that are taken or have no format, before the work."""
    require_free(options.out, options.overwrite)
    for option, path in options.pictures.items():
        require_drawable(path, options.overwrite, option)
        require_free(path.with_suffix(".csv"), options.overwrite, option)
    places = [options.out, *(place for path in options.pictures.values() for place in (path, path.with_suffix(".csv")))]
    if len({place.absolute() for place in places}) < len(places):
        raise UserError("--out, --map and --neighbors name one file twice. Give each its own name.")
    for path in options.query_images:
        if not path.is_file():
            raise UserError(f"there is no picture '{path}' to ask with.")


def _require_pictures(options: Embed, todo: "Work") -> None:
    """Refuse pictures that can't be drawn of this data, or asked with, before the work."""
    if not options.pictures:
        return
    from phinets.embed.maps import require_askable, require_map
    from phinets.reports.neighbors import require_sheet

    n = len(todo.collection)
    if options.map is not None:
        require_map(n, todo.encoder.num_features, options.map_method)
    if options.neighbors is not None:
        require_sheet(len(options.query_images) or min(options.queries, n), 1 + min(options.near, n))
        require_askable(options.query_images)


def _drawn(options: Embed, todo: "Work", table: "Table") -> dict[str, str]:
    """Draw the pictures that are asked for, of features that are safe already; where they are."""
    if not options.pictures:
        return {}
    try:
        _draw(options, todo, table)
    except UserError as error:
        raise UserError(
            f"{error} The features are in '{options.out}'; the same command with --overwrite draws them."
        ) from error
    return {option.removeprefix("--"): str(path) for option, path in options.pictures.items()}


def _draw(options: Embed, todo: "Work", table: "Table") -> None:
    from phinets.embed.maps import gathered, map_of, neighbors_among, neighbors_of
    from phinets.reports.feature_map import feature_map
    from phinets.reports.neighbors import neighbors_lines, neighbors_sheet

    features, title = gathered(table), f"{todo.encoder.subject_name}\n{todo.data}"
    if options.map is not None:
        data = map_of(features, options.map_method, title, options.thumbnails)
        save_figure(options.map, feature_map(data))
        save_lines(options.map.with_suffix(".csv"), data.lines())
    if options.neighbors is not None:
        queries = (
            neighbors_of(features, todo.encoder, options.query_images, options.near)
            if options.query_images
            else neighbors_among(features, options.queries, options.near)
        )
        save_figure(options.neighbors, neighbors_sheet(queries, title))
        save_lines(options.neighbors.with_suffix(".csv"), neighbors_lines(queries))
