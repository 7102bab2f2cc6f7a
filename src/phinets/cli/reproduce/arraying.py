"""`phinets reproduce --engine slurm-script`: the file of a job array."""

from collections.abc import Mapping

from rich.console import Console

from phinets.cli.outcome import Outcome
from phinets.cli.output import require_free
from phinets.cli.reproduce.choice import means_of
from phinets.cli.reproduce.options import Reproduce
from phinets.config.errors import UserError
from phinets.config.work import Work
from phinets.reproduce.reproduce import units
from phinets.reproduce.slurm import MOST, Array
from phinets.runtime.files import atomic_write

LOGS = "slurm"


def array_file(options: Reproduce, works: Mapping[str, Work]) -> Outcome:
    """Write the file, and say how it is used."""
    require_free(options.script, options.overwrite, "--script")
    count = len(units(works))
    tasks = min(options.jobs or MOST, count)
    logs = options.store.absolute() / LOGS
    script = Array(words=_words(options), tasks=tasks, logs=logs, sbatch=options.sbatch).script()
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{logs}' can't be made: {error.strerror or error}. Choose another --store.") from error
    atomic_write(options.script, script.encode())
    document = {"script": str(options.script), "tasks": tasks, "works": len(works), "logs": str(logs)}
    return Outcome(document, lambda console: _show(console, options, tasks, len(works)))


def _words(options: Reproduce) -> list[str]:
    """What each task is told: what this command was, places in full, one job a task."""
    means = means_of(options)
    said: dict[str, object] = {
        "--scale": options.scale,
        "--seeds": options.seeds,
        "--store": options.store.absolute(),
        "--jobs": 1,
        "--threads": options.threads,
        "--root": means.root,
        "--device": options.device,
    }
    words = [*options.targets, *(str(word) for pair in said.items() if pair[1] is not None for word in pair)]
    if options.also:
        words += ["--also", *(str(place.absolute()) for place in options.also)]
    flags = {"--download": options.download, "--retry-failed": options.retry_failed}
    return [*words, *(flag for flag, said_so in flags.items() if said_so)]


def _show(console: Console, options: Reproduce, tasks: int, works: int) -> None:
    for line in (
        f"{works} pieces of work in an array of {tasks} tasks → {options.script}",
        f"Hand it over: sbatch {options.script}",
        "See the tables when it is done: the same command without --engine.",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
