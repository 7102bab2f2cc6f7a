"""From words to tables: what is missing is done, what is there is shown."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console

from phinets.cli.outcome import Outcome
from phinets.cli.reproduce.options import Reproduce, parse
from phinets.runtime.process import leaving_at_once

if TYPE_CHECKING:
    from phinets.config.result import Result
    from phinets.paper.plan import Target
    from phinets.reproduce.reproduce import Engine
    from phinets.reproduce.store import Store

FAILED = 3
"""The exit code where some work has failed."""


def command(words: list[str]) -> Outcome:
    """Parse, do what is missing, and show all of it."""
    options = parse(words)
    with leaving_at_once():  # torch comes in here, after --help and bad words
        from phinets.cli.reproduce import arraying, choice, listing, writing
        from phinets.reproduce.needs import require_data
        from phinets.reproduce.reproduce import all_works, open_works, part, reproduce

    if options.list:
        return listing.listed(options)
    scale, targets = choice.chosen_scale(options), choice.chosen_targets(options.targets)
    works = all_works(targets, scale)
    if options.part is not None:
        works = part(options.part).works(works)
    store, means = choice.chosen_store(options), choice.means_of(options)
    writing.require_files_free(options.out, targets, scale, options.overwrite)
    if options.engine == "slurm-script":
        return arraying.array_file(options, works)
    retry = options.retry_failed and not options.dry_run
    missing = open_works(works, store, retry_failed=retry)
    seconds = listing.estimate(options, store.results(works).values()) if missing else None
    if options.dry_run:
        return listing.planned(options, missing, len(works) - len(missing), seconds or (lambda work: 0.0))
    if missing and seconds is not None:
        from phinets.cli.reproduce.progress import Progress

        require_data(missing, means)
        with _engine(options, store, len(missing)) as engine:
            reproduce(missing, engine, Progress(Console(stderr=True), seconds))
    return _told(options, targets, store.results(works))


@contextmanager
def _engine(options: Reproduce, store: "Store", works: int) -> Iterator["Engine"]:
    """Who works."""
    from phinets.cli.reproduce.choice import means_of

    if options.engine == "ray":
        from phinets.reproduce.ray_cluster import RayCluster

        yield RayCluster(options.address, options.jobs, store, means_of(options))
        return
    from phinets.reproduce.local import Workers, default_jobs

    with Workers(min(works, options.jobs or default_jobs()), store, means_of(options)) as workers:
        yield workers


def _told(options: Reproduce, targets: Sequence["Target"], results: Mapping[str, "Result"]) -> Outcome:
    """Tables and claims beside the paper's; of a part of the work only how it went."""
    from phinets.cli.reproduce import choice, writing
    from phinets.paper.findings import found
    from phinets.reports.paper_tables import show
    from phinets.reproduce.reproduce import failures

    scale, failed = choice.chosen_scale(options), failures(results)
    filled = [] if options.part is not None else [found(target, scale, results) for target in targets]
    if options.out is not None:
        writing.write_files(options.out, filled)
    said: dict[str, Any] = {"scale": scale.name, "store": str(options.store), "done": len(results) - len(failed)}
    document = {**said, "targets": writing.document(filled), "failures": writing.failed(results)}

    def shown(console: Console) -> None:
        show(console, filled)
        _show_end(console, options, results, failed)

    return Outcome(document, shown, FAILED if failed else 0)


def _show_end(console: Console, options: Reproduce, results: Mapping[str, "Result"], failed: Mapping[str, str]) -> None:
    from phinets.cli.reproduce.progress import described

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    for name, reason in failed.items():
        say(f"{name} {described(results[name].work)} has failed: {reason.strip()}")
    of = f" of part {options.part}" if options.part is not None else ""
    say(f"{len(results) - len(failed)} pieces of work{of} are done, {len(failed)} have failed → {options.store}")
    if failed:
        say("Try the failed ones again with --retry-failed.")
