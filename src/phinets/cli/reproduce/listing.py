"""`phinets reproduce --list` and `--dry-run`: what there is, how many runs, how long."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phinets.cli.outcome import Outcome
from phinets.cli.reproduce.choice import ALL, chosen_scale, chosen_store, chosen_targets
from phinets.cli.reproduce.options import Reproduce
from phinets.cli.reproduce.progress import described, duration
from phinets.config.result import Result
from phinets.config.work import Work
from phinets.paper.scales import SCALES

Estimate = Callable[[Work], float]


def listed(options: Reproduce) -> Outcome:
    """All targets, or those that are named, at every scale."""
    store, scales = chosen_store(options), [chosen_scale(options, name) for name in SCALES]
    targets = chosen_targets(options.targets or (ALL,))
    works = {(target.name, scale.name): target.works(scale) for target in targets for scale in scales}
    done = store.results({name for some in works.values() for name in some})
    seconds = estimate(options, done.values())
    rows = [
        {
            "name": target.name,
            "place": target.place,
            "title": target.title,
            "scales": {scale.name: _size(works[target.name, scale.name], done, seconds) for scale in scales},
        }
        for target in targets
    ]
    return Outcome(rows, lambda console: _show(console, rows))


def estimate(options: Reproduce, results: Iterable[Result]) -> Estimate:
    """Seconds of a piece of work on this machine, mended by what was done here before."""
    from phinets.reproduce.estimate import clock
    from phinets.runtime.devices import pick_device

    return clock(pick_device(options.device), results).seconds


def _size(works: Mapping[str, Work], done: Mapping[str, Result], seconds: Estimate) -> dict[str, Any]:
    return {
        "runs": len(works),
        "done": sum(name in done for name in works),
        "seconds": sum(map(seconds, works.values())),
        "seconds_left": sum(seconds(work) for name, work in works.items() if name not in done),
    }


def _show(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(
        caption="Number of runs and estimated time, this machine being at nothing else. Targets share runs.",
        caption_justify="left",
    )
    table.add_column("target")
    for name in SCALES:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sizes = (f"{size['runs']:,} in {duration(size['seconds'])}" for size in row["scales"].values())
        table.add_row(Text.assemble((row["name"], "bold"), "\n", (row["title"], "dim")), *sizes)
    console.print(table)


def planned(options: Reproduce, missing: Mapping[str, Work], known: int, seconds: Estimate) -> Outcome:
    """What would be done."""
    total = sum(map(seconds, missing.values()))
    document = {
        "scale": options.scale,
        "store": str(options.store),
        "done": known,
        "seconds": total,
        "works": {name: described(work) for name, work in missing.items()},
    }
    text = f"{len(missing)} pieces of work to do, {known} known from {options.store}; about {duration(total)}."

    def show(console: Console) -> None:
        for name, work in missing.items():
            console.print(f"{name} {described(work)}", markup=False, highlight=False, soft_wrap=True)
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    return Outcome(document, show)
