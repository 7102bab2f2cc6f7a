"""`phinets reproduce`: run what is missing, show what is there, list, or write a Slurm script."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table
from rich.text import Text

from phinets.cli.command import Outcome, parse_words, print_lines, show_lines
from phinets.cli.output import create_folder, require_free
from phinets.config.errors import UserError, require_at_least
from phinets.config.jobs import Job, Result
from phinets.paper.plan import Target, with_seeds
from phinets.paper.scales import SCALES, Scale, scale
from phinets.paper.targets import TARGETS, target
from phinets.runtime.files import atomic_write
from phinets.runtime.process import exit_on_interrupt

if TYPE_CHECKING:
    from phinets.reproduce.estimate import Estimator
    from phinets.reproduce.execute import Resources
    from phinets.reproduce.store import Store

ALL = "all"
EngineName = Literal["local", "ray", "slurm-script"]
FAILED_JOBS_EXIT = 3
"""The exit code where some jobs failed."""


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Re-run tables and figures of the paper at a chosen scale, show them beside its numbers, and check its claims.

    Results are kept in a store. The same command resumes an interrupted run and repeats nothing.

    Example: phinets reproduce cifar10-ablation --scale pocket --jobs 2
    """

    targets: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Which tables and figures; --list shows all, and `all` means all."""
    scale: str = "pocket"
    """How large everything is: paper (the exact grid; needs GPUs and the data), pocket (the same grid on a small
    encoder, an hour or so a target on two cores), smoke (seconds: a check that everything works)."""
    seeds: int | None = None
    """How many seeds; unset: as many as the scale has."""
    store: Path = Path("runs/reproduce")
    """The folder of results, one small file each; files of other machines may be copied into its `results`."""
    extra_store: tuple[Path, ...] = ()
    """Further stores whose results count as done; nothing is written there."""
    jobs: int | None = None
    """Jobs at a time, each in its own process; unset: one for each GPU, else for each core. With slurm-script: tasks of
    the array."""
    threads: int | None = None
    """CPU threads of each job; unset: its share of the cores."""
    engine: EngineName = "local"
    """What runs the jobs: processes of this machine, a Ray cluster, or a Slurm array, for which a script is written."""
    address: str | None = None
    """Of the Ray cluster; unset: a temporary one on this machine."""
    shard: str | None = None
    """Only a share of the jobs: I/N, I from 0 to N − 1. All N together are all jobs, each once."""
    sbatch: str = ""
    """Further options of sbatch for the job array, in one word: "--time=8:00:00 --gpus-per-task=1"."""
    script: Path = Path("reproduce.sbatch")
    """The script to write for Slurm."""
    root: str | None = None
    """The folder of all data sets; unset: $PHINETS_DATA, else ~/.cache/phinets/data."""
    download: bool = False
    """Whether a missing data set may be downloaded."""
    device: str = "auto"
    """auto (cuda, else mps, else cpu), or a torch device such as cpu, cuda:1."""
    retry_failed: bool = False
    """Run failed jobs again."""
    dry_run: bool = False
    """Only list the missing jobs, and how long they may take by the stored times. Runs and writes nothing."""
    out: Path | None = None
    """A folder for the tables and claims: TARGET.md, TARGET.tex, TABLE.csv."""
    overwrite: bool = False
    """Replace existing files of --out and --script."""
    list: bool = False
    """Show all targets with the number of jobs at each scale, and their time where the store has times of such jobs."""
    json: bool = False
    """Print one JSON document; progress goes to standard error."""

    def __post_init__(self) -> None:
        require_at_least(self, jobs=1, threads=1, seeds=1)
        if self.address is not None and self.engine != "ray":
            raise UserError("--address is of a Ray cluster. Add --engine ray, or leave it out.")
        if self.sbatch and self.engine != "slurm-script":
            raise UserError("--sbatch is for a job array. Add --engine slurm-script, or leave it out.")
        if self.shard is not None and self.engine == "slurm-script":
            raise UserError("--engine slurm-script gives each task its shard itself. Leave out --shard.")


def parse(words: list[str]) -> Reproduce:
    """The options; the word after --sbatch is its value, though it begins with a dash."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--sbatch":
            joined[-1] = f"--sbatch={word}"
        else:
            joined.append(word)
    return parse_words(Reproduce, "reproduce", joined)


def chosen_targets(names: tuple[str, ...]) -> list[Target]:
    if not names:
        raise UserError(f"no target is given. Name some, or {ALL}: {', '.join(TARGETS)}. --list describes them.")
    return list(TARGETS.values()) if ALL in names else [target(name) for name in dict.fromkeys(names)]


def chosen_scale(options: Reproduce, name: str | None = None) -> Scale:
    return with_seeds(scale(name or options.scale), options.seeds)


def chosen_store(options: Reproduce) -> "Store":
    """The store; refuses paths that are no folders."""
    from phinets.reproduce.store import Store

    if options.store.exists() and not options.store.is_dir():
        raise UserError(f"--store '{options.store}' is a file, but results need a folder. Choose another --store.")
    for place in options.extra_store:
        if not place.is_dir():
            raise UserError(f"--extra-store '{place}' is no folder. Name the folder of another --store.")
    return Store(options.store, options.extra_store)


def chosen_resources(options: Reproduce) -> "Resources":
    """Data, device and threads; paths are absolute, since workers may have another directory."""
    from phinets.reproduce.execute import Resources

    root = None if options.root is None else str(Path(options.root).expanduser().absolute())
    return Resources(root=root, download=options.download, device=options.device, threads=options.threads)


def command(words: list[str]) -> Outcome:
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
    from phinets.reports.progress import PlainConsole
    from phinets.reproduce.engines import LocalEngine, RayEngine, default_workers
    from phinets.reproduce.estimate import with_timed_step
    from phinets.reproduce.execute import require_data
    from phinets.reproduce.schedule import reproduce

    resources = chosen_resources(options)
    require_data(missing, resources)
    workers = min(len(missing), options.jobs or default_workers())
    timed = with_timed_step(estimator, missing.values(), options.device)
    progress = Progress(PlainConsole(stderr=True), timed, workers)
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
        "failures": [{"key": n, "job": results[n].job.to_plain(), "reason": why} for n, why in failed.items()],
    }

    def show_all(console: Console) -> None:
        show(console, outcomes)
        for name, reason in failed.items():
            print_lines(console, f"{name} {results[name].job.describe()} failed: {reason.strip()}")
        of = f" of shard {options.shard}" if options.shard is not None else ""
        print_lines(console, f"{document['done']} jobs{of} are done, {len(failed)} failed → {options.store}")
        if failed:
            print_lines(console, "Run the failed ones again with --retry-failed.")

    return Outcome(document, show_all, FAILED_JOBS_EXIT if failed else 0)


def _plan(options: Reproduce, missing: Mapping[str, Job], done: int, estimator: "Estimator") -> Outcome:
    """The jobs that would run; nothing is timed or written."""
    from phinets.cli.reproduce.output import estimate_words

    seconds, unknown = estimator.total(missing.values())
    document: dict[str, Any] = {
        "scale": options.scale,
        "store": str(options.store),
        "done": done,
        "seconds": seconds,
        "without_estimate": unknown,
        "jobs": {name: job.describe() for name, job in missing.items()},
    }
    time = f"; {estimate_words(seconds, unknown)} on one worker" if missing else ""
    lines = [f"{name} {what}" for name, what in document["jobs"].items()]
    lines.append(f"{len(missing)} jobs to run, {done} done in {options.store}{time}.")
    return Outcome(document, show_lines(*lines))


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

    caption = "Number of jobs, and their time on one worker where the store knows it. Targets share jobs."
    table = Table(caption=caption, caption_justify="left")
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
    from phinets.reproduce.schedule import MAX_TASKS, build_units, slurm_script

    require_free(options.script, options.overwrite, "--script")
    tasks = min(options.jobs or MAX_TASKS, len(build_units(jobs)))
    logs = options.store.absolute() / "slurm"
    script = slurm_script(_task_words(options), tasks, logs, options.sbatch)
    create_folder(logs, "--store")
    atomic_write(options.script, script.encode())
    document = {"script": str(options.script), "tasks": tasks, "jobs": len(jobs), "logs": str(logs)}
    show = show_lines(
        f"{len(jobs)} jobs in an array of {tasks} tasks → {options.script}",
        f"Submit it: sbatch {options.script}",
        "Show the tables when it is done: the same command without --engine.",
    )
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
