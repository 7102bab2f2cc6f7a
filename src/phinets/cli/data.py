"""`phinets data`: what there is, what is in it, and making it ready."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from phinets.cli.command import Action, Outcome, parse_words, run_action
from phinets.cli.output import require_free, save_figure
from phinets.config.errors import UserError, look_up
from phinets.config.run import DataOptions
from phinets.config.views import PLANS

if TYPE_CHECKING:
    from phinets.data import ImageSet
    from phinets.data.summary import DataSummary

N_PICTURES = 8
"""Samples in the picture."""
MAX_LINES = 20
"""Classes and damaged files that are told one by one; --json tells all."""


@dataclass(frozen=True)
class List:
    """What data there are, and whether they are here.

    Example: phinets data list --root ~/data
    """

    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    json: bool = False
    """Print one JSON document: for each name, what it is and its state."""


@dataclass(frozen=True)
class Check:
    """Look at every image of a data set, and say what is there.

    Example: phinets data check folder:photos --image-size 64 --out samples.png
    """

    name: Annotated[str, tyro.conf.Positional]
    """A data set's name, or folder:PATH, or npz:PATH."""
    split: Literal["train", "test", "bank"] | None = None
    """Only this part; unset: all that there are."""
    limit: int | None = None
    """Only the first so many images of each part."""
    classes: tuple[str, ...] = ()
    """Only these classes, by name or number; unset: all."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a data set that is not there may be fetched from the net."""
    image_size: int = 32
    """Side of the views, in pixels."""
    views: str = "simsiam-cifar"
    """Which augmentations the picture shows; a plan's name."""
    out: Path | None = None
    """Draw samples and their views into this file."""
    overwrite: bool = False
    """Replace the file."""
    json: bool = False
    """Print one JSON document: what was found in each part."""

    def __post_init__(self) -> None:
        look_up("view plan", self.views, PLANS)
        if self.limit is not None and self.limit < 1:
            raise UserError(f"limit is {self.limit}, but must be at least 1.")


@dataclass(frozen=True)
class Prepare:
    """Convert the parts of a data set once. Parts that are ready are left; what is damaged is refused.

    Example: phinets data prepare cifar5m --root ~/data --from ~/Downloads
    """

    name: Annotated[Literal["cifar5m"], tyro.conf.Positional]
    """Which data set."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    source: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """The folder of part0.npz to part5.npz; unset: cifar5m under the root."""
    json: bool = False
    """Print one JSON document: what became of each part."""


def command(words: list[str]) -> Outcome:
    """One of the actions."""
    return run_action("data", ACTIONS, "phinets data check shapes --limit 2000 --out samples.png", words)


def _list(words: list[str]) -> Outcome:
    options = parse_words(List, "data list", words)
    from phinets.data import DATA, describe_data

    states = {name: source.state(options.root) for name, source in DATA.items()}
    rows = {name: {"what": what, "state": states.get(name, "")} for name, what in describe_data().items()}

    def show(console: Console) -> None:
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, row in rows.items():
            table.add_row(name, escape("\n".join(filter(None, row.values()))))
        console.print(table, highlight=False)

    return Outcome(rows, show)


def _check(words: list[str]) -> Outcome:
    options = parse_words(Check, "data check", words)
    require_free(options.out, options.overwrite)
    from phinets.data import load
    from phinets.data.decode import printable
    from phinets.data.summary import summarize

    split = load(options.name, _source(options))
    parts = split.splits if options.split is None else {options.split: look_up("part", options.split, split.splits)}
    parts = {name: part.head(options.limit) for name, part in parts.items()}
    found = {name: summarize(part, split.classes) for name, part in parts.items()}
    title = printable(options.name)
    if options.out is not None:
        name, part = next(iter(parts.items()))
        _draw(options, part.head(N_PICTURES), split.classes, f"{title}, {name}\nviews: {options.views}")
    picture = None if options.out is None else printable(options.out)
    document = {"name": title, "parts": {name: _plain(part) for name, part in found.items()}, "picture": picture}
    return Outcome(document, lambda console: _show(console, found, picture))


def _source(options: Check) -> DataOptions:
    return DataOptions(
        root=options.root,
        download=options.download,
        classes=options.classes,
        train_images=options.limit,
        test_images=options.limit,
        image_size=options.image_size,
    )


def _plain(found: "DataSummary") -> dict[str, Any]:
    return asdict(found) | {"bad": [bad._asdict() for bad in found.bad]}


def _draw(options: Check, part: "ImageSet", classes: tuple[str, ...], title: str) -> None:
    """The picture of samples and their views."""
    import torch

    from phinets.reports.samples import samples
    from phinets.training.loader import ViewLoader

    plan, rows, cpu = PLANS[options.views], torch.arange(len(part)), torch.device("cpu")
    taken = part.images.fetch(rows)
    loader = ViewLoader(
        images=part.images, plan=plan, anchor=None, batch=len(part), seed=0, size=options.image_size, device=cpu
    )
    views = loader.micro_batch(0, 0, rows).views  # what a learner would see of them
    mean, std = (torch.tensor(values)[:, None, None] for values in (plan.mean, plan.std))
    bytes_ = [((view * std + mean) * 255).round().clamp(0, 255).byte() for view in (views.first, views.second)]
    columns = dict(zip(("image", "first view", "second view"), (taken.images, *bytes_), strict=True))
    labels = [-1] * len(part) if part.labels is None else part.labels[taken.rows].tolist()
    captions = ["" if label < 0 else classes[label] for label in labels]
    figure = samples({name: batch.permute(0, 2, 3, 1).numpy() for name, batch in columns.items()}, captions, title)
    assert options.out is not None
    save_figure(options.out, figure)


def _show(console: Console, found: Mapping[str, "DataSummary"], picture: str | None) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "images", "labeled", "bad", "size", "mean", "std"):
        table.add_column(heading, justify="left" if heading == "part" else "right", no_wrap=heading != "size")
    for name, part in found.items():
        sizes = dict.fromkeys(f"{wide} × {tall}" for wide, tall in (part.smallest, part.largest))
        moments = (" ".join(f"{value:.3f}" for value in values) for values in (part.mean, part.std))
        counts = map(str, (part.images, part.labeled, len(part.bad)))
        table.add_row(name, *counts, " to ".join(sizes), *moments)
    console.print(table, highlight=False)
    for line in (*_balance(found), *_damage(found), *([picture] if picture else [])):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _balance(found: Mapping[str, "DataSummary"]) -> list[str]:
    """How many of each class, or of the rarest and the commonest where they are many."""
    lines = []
    for name, part in found.items():
        counts = part.classes
        if not counts:
            lines.append(f"{name}: no labels; it can be learned from, but kNN and probe need some")
        elif len(set(counts.values())) == 1:
            lines.append(f"{name}: {len(counts)} classes, {next(iter(counts.values()))} images each")
        elif len(counts) <= MAX_LINES:
            lines.append(f"{name}: " + ", ".join(f"{word} {n}" for word, n in counts.items()))
        else:
            rare, common = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
            lines.append(f"{name}: {len(counts)} classes, from {counts[rare]} ({rare}) to {counts[common]} ({common})")
    return lines


def _damage(found: Mapping[str, "DataSummary"]) -> list[str]:
    bad = [f"{name}: '{one.where}': {one.why}" for name, part in found.items() for one in part.bad]
    more = [f"… and {len(bad) - MAX_LINES} more; --json tells all"] if len(bad) > MAX_LINES else []
    return [*bad[:MAX_LINES], *more]


def _prepare(words: list[str]) -> Outcome:
    options = parse_words(Prepare, "data prepare", words)
    from phinets.data.cifar5m import FOLDER, prepare

    target = FOLDER.path(options.root)
    parts = []
    for done in prepare(options.source or target, target):
        print(f"part{done.part}: {done.state}" + (f", {done.images} images" * bool(done.images)), file=sys.stderr)
        parts.append(done._asdict())
    complete = all(part["images"] for part in parts)
    told = "complete" if complete else "not complete: fetch what was not found, and say the same again"
    return Outcome(
        {"folder": str(target), "parts": parts, "complete": complete},
        lambda console: console.print(f"{target}: {told}", highlight=False, markup=False, soft_wrap=True),
    )


ACTIONS: Mapping[str, Action] = {
    "list": Action("what there is, and whether it is here", _list),
    "check": Action("look at every image: counts, sizes, damage, classes, mean and std; a picture of samples", _check),
    "prepare": Action("convert a large data set once, so that training can stream it", _prepare),
}
