"""`phinets embed`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from phinets.cli.command import Outcome, parse_words, show_lines
from phinets.cli.output import require_figure_path, require_free, save_figure, save_lines
from phinets.config.errors import UserError, require_at_least
from phinets.config.evaluation import EncoderOptions
from phinets.reports.progress import CountBar, PlainConsole
from phinets.runtime.process import exit_on_interrupt

if TYPE_CHECKING:
    from phinets.embed.embed import EmbedJob
    from phinets.embed.store import Embedding

THUMBNAILS = 1_000
"""Most thumbnails on a map."""


@dataclass(frozen=True)
class Embed:
    """Write the features of images into one file with their paths, splits and classes; and draw maps of them.

    `phinets eval knn` and `eval linear` read the file. An interrupted command resumes when it is repeated.

    Example: phinets embed runs/first --data folder:photos --out features.npz --map map.png --neighbors sheet.png
    """

    target: Annotated[Path, tyro.conf.Positional]
    """A run folder, one of its checkpoints, or a weights file (.safetensors, or a state dict)."""
    out: Path = Path("features.npz")
    """.npz (paths, splits, labels, classes, features) or .parquet (path, split, label, feature)."""
    split: Literal["all", "train", "test", "bank"] = "all"
    """Which split of the data; all: train and test."""
    batch: int | None = None
    """Images per forward pass; unset: 512, fewer for large images."""
    map: Path | None = None
    """Write a two-dimensional map of the features into this picture, and its points into a .csv beside it."""
    map_method: Literal["pca", "tsne"] = "pca"
    """The first two principal components, or t-SNE of up to 3,000 images."""
    thumbnails: int = 0
    """Images drawn on the map in place of their points."""
    neighbors: Path | None = None
    """Write some images with their nearest neighbors into this picture, and the cosines into a .csv beside it."""
    queries: int = 8
    """Number of query images, evenly spaced over all images."""
    query_images: tuple[Path, ...] = ()
    """Picture files to use as queries instead."""
    near: int = 8
    """Neighbors of each query."""
    options: EncoderOptions = field(default_factory=EncoderOptions)
    overwrite: bool = False
    """Replace the files, and the unfinished features of another command."""
    json: bool = False
    """Print one JSON document: the file and its contents; progress goes to standard error."""

    def __post_init__(self) -> None:
        require_at_least(self, batch=1, queries=1, near=1, thumbnails=0)
        if self.thumbnails > THUMBNAILS:
            raise UserError(f"thumbnails is {self.thumbnails}, but a map has at most {THUMBNAILS:,}.")
        if self.query_images and self.neighbors is None:
            raise UserError("--query-images needs --neighbors, the picture to write.")

    @property
    def pictures(self) -> dict[str, Path]:
        paths = {"--map": self.map, "--neighbors": self.neighbors}
        return {option: path for option, path in paths.items() if path is not None}


def command(words: list[str]) -> Outcome:
    args = parse_words(Embed, "embed", words)
    for option, path in args.pictures.items():
        require_figure_path(path, args.overwrite, option)
        require_free(path.with_suffix(".csv"), args.overwrite, option)
    places = [args.out, *(place for path in args.pictures.values() for place in (path, path.with_suffix(".csv")))]
    if len({place.absolute() for place in places}) < len(places):
        raise UserError("--out, --map and --neighbors name one file twice. Give each its own name.")
    with exit_on_interrupt():
        from phinets.embed.embed import embed_job, embedding_of
        from phinets.embed.store import require_format, store_folder

    require_format(args.out)
    require_free(args.out, args.overwrite or store_folder(args.out).exists())  # an interrupted command resumes
    job = embed_job(args.target, args.options, args.split, args.batch)
    _require_pictures(args, job)
    with CountBar(PlainConsole(stderr=True)) as bar, embedding_of(job, args.out, args.overwrite, bar) as embedding:
        try:
            _draw(args, job, embedding)
        except UserError as error:
            raise UserError(f"{error} The features are in '{args.out}'; the same command draws them.") from error
    about, files = embedding.about, {option.removeprefix("--"): str(path) for option, path in args.pictures.items()}
    summary = (
        f"{args.out}: {about['features']} features of {about['images']} images of {about['data']} "
        f"({about['bad_images']} can't be used) by the {about['description']}"
    )
    return Outcome({"out": str(args.out), **about, **files}, show_lines(summary, *files.values()))


def _require_pictures(args: Embed, job: "EmbedJob") -> None:
    """Refuse pictures that can't be drawn and queries that can't be read, before the work."""
    for path in args.query_images:
        if not path.is_file():
            raise UserError(f"there is no query image '{path}'.")
    if not args.pictures:
        return
    from phinets.embed.maps import require_map, require_query_images
    from phinets.reports.image_figures import require_sheet_size

    n = len(job.collection)
    if args.map is not None:
        require_map(n, job.encoder.num_features, args.map_method)
    if args.neighbors is not None:
        require_sheet_size(len(args.query_images) or min(args.queries, n), 1 + min(args.near, n))
        require_query_images(args.query_images)


def _draw(args: Embed, job: "EmbedJob", embedding: "Embedding") -> None:
    """Draw the pictures, then write them all, so that an interrupted command leaves none."""
    if not args.pictures:
        return
    from phinets.embed.maps import map_of, neighbors_among, neighbors_of
    from phinets.reports.image_figures import feature_map, neighbor_rows, neighbor_sheet

    title, drawings = f"{job.encoder.description}\n{job.data}", []
    if args.map is not None:
        data = map_of(embedding, args.map_method, title, args.thumbnails)
        drawings.append((args.map, feature_map(data), data.lines()))
    if args.neighbors is not None:
        queries = (
            neighbors_of(embedding, job.encoder, args.query_images, args.near)
            if args.query_images
            else neighbors_among(embedding, args.queries, args.near)
        )
        drawings.append((args.neighbors, neighbor_sheet(queries, title), neighbor_rows(queries)))
    for path, figure, lines in drawings:
        save_figure(path, figure)
        save_lines(path.with_suffix(".csv"), lines)
