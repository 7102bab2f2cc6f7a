"""`phinets reproduce`: run what is missing, show what is there, list, or write a Slurm script."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from phinets.cli.command import Outcome
from phinets.cli.output import require_free
from phinets.cli.reproduce.options import (
    ALL,
    Reproduce,
    chosen_resources,
    chosen_scale,
    chosen_store,
    chosen_targets,
    parse,
)
from phinets.config.errors import UserError
from phinets.config.jobs import Job, Result
from phinets.paper.plan import Target
from phinets.paper.scales import SCALES
from phinets.runtime.files import atomic_write
from phinets.runtime.process import exit_on_interrupt

if TYPE_CHECKING:
    from phinets.reproduce.estimate import Estimator
    from phinets.reproduce.store import Store

FAILED_JOBS_EXIT = 3
"""The exit code where some jobs failed."""
LOGS = "slurm"


def command(words: list[str]) -> Outcome:
    """Parse, run the missing jobs, and show the tables."""
    options = parse(words)
    with exit_on_interrupt():  # imports torch, after --help and bad options
        from phinets.cli.reproduce.output import require_files_free
        from phinets.reproduce.estimate import stored_times
        from phinets.reproduce.schedule import all_jobs, missing_jobs, parse_shard

    if options.list:
        return _list(options)
    scale, targets, store = chosen_scale(options), chosen_targets(options.targets), chosen_store(options)
    jobs = all_jobs(targets, scale)
    if options.shard is not None:
        jobs = parse_shard(options.shard).jobs(jobs)
    require_files_free(options.out, targets, scale, options.overwrite)
    if options.engine == "slurm-script":
        return _write_array(options, jobs)
    missing = missing_jobs(jobs, store, retry_failed=options.retry_failed and not options.dry_run)
    estimator = stored_times(store.results(jobs).values())
    if options.dry_run:
        return _plan(options, missing, len(jobs) - len(missing), estimator)
    if missing:
        _run(options, missing, store, estimator)
    return _tables(options, targets, store.results(jobs))


def _run(options: Reproduce, missing: Mapping[str, Job], store: "Store", estimator: "Estimator") -> None:
    from phinets.cli.reproduce.output import Progress
    from phinets.reproduce.engines import LocalEngine, RayEngine, default_workers
    from phinets.reproduce.estimate import with_timed_step
    from phinets.reproduce.execute import require_data
    from phinets.reproduce.schedule import reproduce

    resources = chosen_resources(options)
    require_data(missing, resources)
    workers = min(len(missing), options.jobs or default_workers())
    timed = with_timed_step(estimator, missing.values(), options.device)
    progress = Progress(Console(stderr=True), timed, workers)
    if options.engine == "ray":
        reproduce(missing, RayEngine(options.address, options.jobs, store, resources), progress)
        return
    with LocalEngine(workers, store, resources) as engine:
        reproduce(missing, engine, progress)


def _tables(options: Reproduce, targets: Sequence[Target], results: Mapping[str, Result]) -> Outcome:
    """Tables and claims beside the paper's; of a shard only what is done and what failed."""
    from phinets.cli.reproduce import output
    from phinets.paper.findings import target_result
    from phinets.reports.paper_tables import show
    from phinets.reproduce.schedule import failures

    scale, failed = chosen_scale(options), failures(results)
    outcomes = [] if options.shard is not None else [target_result(target, scale, results) for target in targets]
    if options.out is not None:
        output.write_files(options.out, outcomes)
    document = {
        "scale": scale.name,
        "store": str(options.store),
        "done": len(results) - len(failed),
        "targets": output.document(outcomes),
        "failures": output.failure_rows(results),
    }

    def show_all(console: Console) -> None:
        show(console, outcomes)
        for name, reason in failed.items():
            output.print_line(console, f"{name} {results[name].job.describe()} failed: {reason.strip()}")
        of = f" of shard {options.shard}" if options.shard is not None else ""
        done = f"{len(results) - len(failed)} jobs{of} are done, {len(failed)} failed → {options.store}"
        output.print_line(console, done)
        if failed:
            output.print_line(console, "Run the failed ones again with --retry-failed.")

    return Outcome(document, show_all, FAILED_JOBS_EXIT if failed else 0)


def _plan(options: Reproduce, missing: Mapping[str, Job], done: int, estimator: "Estimator") -> Outcome:
    """The jobs that would run; nothing is timed or written."""
    from phinets.cli.reproduce.output import estimate_words, print_line

    seconds, unknown = estimator.total(missing.values())
    document = {
        "scale": options.scale,
        "store": str(options.store),
        "done": done,
        "seconds": seconds,
        "without_estimate": unknown,
        "jobs": {name: job.describe() for name, job in missing.items()},
    }
    time = f"; {estimate_words(seconds, unknown)} on one worker" if missing else ""

    def show(console: Console) -> None:
        for name, job in missing.items():
            print_line(console, f"{name} {job.describe()}")
        print_line(console, f"{len(missing)} jobs to run, {done} done in {options.store}{time}.")

    return Outcome(document, show)


def _list(options: Reproduce) -> Outcome:
    """All targets, or those that are named, at every scale."""
    from phinets.reproduce.estimate import stored_times

    store, scales = chosen_store(options), [chosen_scale(options, name) for name in SCALES]
    targets = chosen_targets(options.targets or (ALL,))
    jobs = {(target.name, scale.name): target.jobs(scale) for target in targets for scale in scales}
    done = store.results({name for some in jobs.values() for name in some})
    estimator = stored_times(done.values())
    rows = [
        {
            "name": target.name,
            "place": target.place,
            "title": target.title,
            "scales": {scale.name: _size(jobs[target.name, scale.name], done, estimator) for scale in scales},
        }
        for target in targets
    ]
    return Outcome(rows, lambda console: _show_list(console, rows))


def _size(jobs: Mapping[str, Job], done: Mapping[str, Result], estimator: "Estimator") -> dict[str, Any]:
    seconds, unknown = estimator.total(jobs.values())
    left, _ = estimator.total(job for name, job in jobs.items() if name not in done)
    return {
        "runs": len(jobs),
        "done": sum(name in done for name in jobs),
        "seconds": seconds,
        "seconds_left": left,
        "without_estimate": unknown,
    }


def _show_list(console: Console, rows: list[dict[str, Any]]) -> None:
    from phinets.cli.reproduce.output import duration

    table = Table(
        caption="Number of jobs, and their time on one worker where the store has times of such jobs. Targets share "
        "jobs.",
        caption_justify="left",
    )
    table.add_column("target")
    for name in SCALES:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        sizes = (
            f"{size['runs']:,}" + ("" if size["without_estimate"] else f" in {duration(size['seconds'])}")
            for size in row["scales"].values()
        )
        table.add_row(Text.assemble((row["name"], "bold"), "\n", (row["title"], "dim")), *sizes)
    console.print(table)


def _write_array(options: Reproduce, jobs: Mapping[str, Job]) -> Outcome:
    """Write the script of a Slurm array, and say how to use it."""
    from phinets.cli.reproduce.output import print_line
    from phinets.reproduce.schedule import MAX_TASKS, build_units, slurm_script

    require_free(options.script, options.overwrite, "--script")
    tasks = min(options.jobs or MAX_TASKS, len(build_units(jobs)))
    logs = options.store.absolute() / LOGS
    script = slurm_script(_task_words(options), tasks, logs, options.sbatch)
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{logs}' can't be created: {error.strerror or error}. Choose another --store.") from error
    atomic_write(options.script, script.encode())
    document = {"script": str(options.script), "tasks": tasks, "jobs": len(jobs), "logs": str(logs)}

    def show(console: Console) -> None:
        print_line(console, f"{len(jobs)} jobs in an array of {tasks} tasks → {options.script}")
        print_line(console, f"Submit it: sbatch {options.script}")
        print_line(console, "Show the tables when it is done: the same command without --engine.")

    return Outcome(document, show)


def _task_words(options: Reproduce) -> list[str]:
    """The arguments of each task: those of this command, with absolute paths and one job at a time."""
    values: dict[str, object] = {
        "--scale": options.scale,
        "--seeds": options.seeds,
        "--store": options.store.absolute(),
        "--jobs": 1,
        "--threads": options.threads,
        "--root": chosen_resources(options).root,
        "--device": options.device,
    }
    words = [*options.targets, *(str(word) for pair in values.items() if pair[1] is not None for word in pair)]
    if options.extra_store:
        words += ["--extra-store", *(str(path.absolute()) for path in options.extra_store)]
    flags = {"--download": options.download, "--retry-failed": options.retry_failed}
    return [*words, *(flag for flag, is_set in flags.items() if is_set)]
