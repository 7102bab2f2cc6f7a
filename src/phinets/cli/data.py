"""`phinets data`: list, check and prepare data sets."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from phinets.cli.command import Action, Outcome, parse_words, print_lines, run_action, show_lines, show_rows
from phinets.cli.output import require_free, save_figure
from phinets.config.errors import look_up, require_at_least
from phinets.config.run import DataOptions
from phinets.config.views import PLANS

if TYPE_CHECKING:
    from phinets.data import ImageSet
    from phinets.data.summary import DataSummary

N_PICTURES = 8
"""Samples in the figure."""
MAX_LINES = 20
"""Classes and bad images that are listed; --json lists all."""


@dataclass(frozen=True, kw_only=True)
class List:
    """List the data sets, and whether they are there.

    Example: phinets data list --root ~/data
    """

    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    json: bool = False
    """Print one JSON document."""


@dataclass(frozen=True, kw_only=True)
class Check(List):
    """Read every image of a data set: counts, sizes, bad images, classes, mean and std.

    Example: phinets data check folder:photos --image-size 64 --out samples.png
    """

    name: Annotated[str, tyro.conf.Positional]
    """A data set's name, or folder:PATH, or npz:PATH."""
    split: Literal["train", "test", "bank"] | None = None
    """Only this split; unset: all."""
    limit: int | None = None
    """Only the first images of each split, at most this number."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    download: bool = False
    """Whether a missing data set may be downloaded."""
    image_size: int = 32
    """Side of views and images in training, in pixels; mean and std are measured at this size."""
    max_pixels: int | None = None
    """Largest image file, in pixels; unset: 500 million for a JPEG, which is decoded at a fraction, else 89,478,485."""
    views: str = "simsiam-cifar"
    """Which augmentations the figure shows; a plan's name."""
    out: Path | None = None
    """Draw samples and their views into this file."""
    overwrite: bool = False
    """Replace the file."""

    def __post_init__(self) -> None:
        look_up("view plan", self.views, PLANS)
        require_at_least(self, limit=1)


@dataclass(frozen=True, kw_only=True)
class Prepare(List):
    """Convert the files of a data set once. Converted files are kept; damaged ones are refused.

    Example: phinets data prepare cifar5m --root ~/data --from ~/Downloads
    """

    name: Annotated[Literal["cifar5m"], tyro.conf.Positional]
    """Which data set."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """The folder of part0.npz to part5.npz; unset: cifar5m under the root."""


def command(words: list[str]) -> Outcome:
    return run_action("data", ACTIONS, "phinets data check shapes --limit 2000 --out samples.png", words)


def _list(words: list[str]) -> Outcome:
    options = parse_words(List, "data list", words)
    from phinets.data import DATA, describe_data

    states = {name: source.state(options.root) for name, source in DATA.items()}
    rows = {name: {"what": what, "state": states.get(name, "")} for name, what in describe_data().items()}
    return Outcome(rows, show_rows({name: "\n".join(filter(None, row.values())) for name, row in rows.items()}))


def _check(words: list[str]) -> Outcome:
    options = parse_words(Check, "data check", words)
    require_free(options.out, options.overwrite)
    from phinets.data import load
    from phinets.data.decode import printable
    from phinets.data.summary import summarize

    same = {name: getattr(options, name) for name in ("root", "download", "classes", "image_size", "max_pixels")}
    data = load(options.name, DataOptions(train_images=options.limit, test_images=options.limit, **same))
    names = data.splits if options.split is None else (options.split,)
    splits = {name: look_up("split", name, data.splits).head(options.limit) for name in names}
    summaries = {name: summarize(split, data.classes, options.image_size) for name, split in splits.items()}
    title = printable(options.name)
    if options.out is not None:
        name, split = next(iter(splits.items()))
        _draw(options, split.head(N_PICTURES), data.classes, f"{title}, {name}\nviews: {options.views}")
    picture = None if options.out is None else printable(options.out)
    plain = {name: asdict(one) | {"bad": [bad._asdict() for bad in one.bad]} for name, one in summaries.items()}
    return Outcome({"name": title, "splits": plain, "picture": picture}, lambda out: _show(out, summaries, picture))


def _draw(options: Check, split: "ImageSet", classes: tuple[str, ...], title: str) -> None:
    import torch

    from phinets.reports.image_figures import samples
    from phinets.training.loader import ViewLoader

    plan, rows, cpu = PLANS[options.views], torch.arange(len(split)), torch.device("cpu")
    batch = split.images.fetch(rows)
    loader = ViewLoader(
        images=split.images, plan=plan, anchor=None, batch=len(split), seed=0, size=options.image_size, device=cpu
    )
    views = loader.micro_batch(0, 0, rows).views  # as in training
    mean, std = (torch.tensor(values)[:, None, None] for values in (plan.mean, plan.std))
    bytes_ = [((view * std + mean) * 255).round().clamp(0, 255).byte() for view in (views.first, views.second)]
    columns = dict(zip(("image", "first view", "second view"), (batch.images, *bytes_), strict=True))
    labels = [-1] * len(split) if split.labels is None else split.labels[batch.rows].tolist()
    captions = ["" if label < 0 else classes[label] for label in labels]
    figure = samples({name: images.permute(0, 2, 3, 1).numpy() for name, images in columns.items()}, captions, title)
    assert options.out is not None
    save_figure(options.out, figure)


def _show(console: Console, summaries: Mapping[str, "DataSummary"], picture: str | None) -> None:
    table = Table(box=None, pad_edge=False)
    side = next(iter(summaries.values())).image_size
    for heading in ("split", "images", "labeled", "bad", "size", f"mean at {side} px", f"std at {side} px"):
        table.add_column(heading, justify="left" if heading == "split" else "right", no_wrap=heading != "size")
    for name, one in summaries.items():
        sizes = dict.fromkeys(f"{wide} × {tall}" for wide, tall in (one.smallest, one.largest))
        moments = (" ".join(f"{value:.3f}" for value in values) for values in (one.mean, one.std))
        counts = map(str, (one.images, one.labeled, len(one.bad)))
        table.add_row(name, *counts, " to ".join(sizes), *moments)
    console.print(table, highlight=False)
    bad = [f"{name}: '{image.where}': {image.why}" for name, one in summaries.items() for image in one.bad]
    bad[MAX_LINES:] = [f"… and {len(bad) - MAX_LINES} more; --json lists all"] if len(bad) > MAX_LINES else []
    balance = [f"{name}: {_balance(one.classes)}" for name, one in summaries.items()]
    print_lines(console, *balance, *bad, *([picture] if picture else []))


def _balance(counts: Mapping[str, int]) -> str:
    """Images of each class, or of the rarest and the most frequent one if there are many."""
    if not counts:
        return "no labels; training needs none, but kNN and linear probe do"
    if len(set(counts.values())) == 1:
        return f"{len(counts)} classes, {next(iter(counts.values()))} images each"
    if len(counts) <= MAX_LINES:
        return ", ".join(f"{word} {n}" for word, n in counts.items())
    rare, common = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    return f"{len(counts)} classes, from {counts[rare]} ({rare}) to {counts[common]} ({common})"


def _prepare(words: list[str]) -> Outcome:
    options = parse_words(Prepare, "data prepare", words)
    from phinets.data.cifar5m import FOLDER, prepare

    target = FOLDER.path(options.root)
    files = []
    for file in prepare(options.source or target, target):
        print(f"{file.name}: {file.state}" + (f", {file.images} images" * bool(file.images)), file=sys.stderr)
        files.append(file._asdict())
    complete = all(file["images"] for file in files)
    state = "complete" if complete else "not complete: fetch the missing files, and run the same command again"
    document = {"folder": str(target), "files": files, "complete": complete}
    return Outcome(document, show_lines(f"{target}: {state}"))


ACTIONS: Mapping[str, Action] = {
    "list": Action("list the data sets, and whether they are there", _list),
    "check": Action("read every image: counts, sizes, bad images, classes, mean and std; draw samples", _check),
    "prepare": Action("convert a large data set once, so that training can stream it", _prepare),
}
