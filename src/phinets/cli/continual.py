"""`phinets continual`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from phinets.cli.command import Outcome, parse_words, print_lines
from phinets.cli.train import (
    RunFolderOptions,
    Terminal,
    config_in,
    peek_options,
    peek_start,
    require_place,
    start_config,
)
from phinets.config.continual import AppendedTask, ContinualConfig
from phinets.config.errors import CommonError, UserError
from phinets.config.plain import to_plain
from phinets.config.record import ContinualRecord
from phinets.reports.progress import PlainConsole
from phinets.runs.recipes import benchmark
from phinets.runtime.process import exit_on_interrupt, launch_info

TASK_DEFAULTS: dict[str, Any] = {"classes": (), "train_images": None, "test_images": None}
"""Data options that an appended task has for itself, with their defaults."""


@dataclass(frozen=True, kw_only=True)
class Continual(RunFolderOptions):
    """Train on one task after the other, and measure forgetting. Without options: X-PhiNet on embedded images.

    Example: phinets continual --benchmark split-cifar10 --method simsiam --replay mixup --epochs-per-task 1
    """

    benchmark: str = "split-shapes"
    """The run to start from; `phinets list benchmarks` shows all. Every other option changes it."""
    append: Path | None = None
    """Append a task to the finished run in this folder; --data (and --classes) names its images."""
    run: ContinualConfig = field(default_factory=ContinualConfig)


def command(words: list[str]) -> Outcome:
    try:
        options = parse(words)
    except UserError as error:
        raise CommonError(str(error)) from error
    with exit_on_interrupt():  # imports torch, after --help and errors in the options
        from phinets.runs.trainer import append, resume_stream, run_stream

    with Reporter(PlainConsole(stderr=True, quiet=launch_info().rank > 0)) as terminal:
        if options.append is not None:
            wanted, task = _appended_task(options.append, options.run)
            record = append(options.append, task, wanted, callback=terminal)
        elif options.resumed_folder is not None:
            record = resume_stream(options.resumed_folder, options.run, callback=terminal)
        else:
            record = run_stream(options.run, options.out, overwrite=options.overwrite, callback=terminal)
    return Outcome({"folder": record.folder, **to_plain(record.summary)}, lambda console: _show(console, record))


def _appended_task(folder: Path, wanted: ContinualConfig) -> tuple[ContinualConfig, AppendedTask]:
    """The run's settings, with changed compute and saving options; and the new task."""
    before, source = config_in(ContinualConfig, str(folder)), wanted.source
    own, former = ({name: getattr(each, name) for name in TASK_DEFAULTS} for each in (source, before.source))
    task = AppendedTask(data=wanted.data, epochs=wanted.epochs_per_task, **own)
    source = replace(source, **former)
    return replace(wanted, data=before.data, epochs_per_task=before.epochs_per_task, source=source), task


def parse(words: list[str]) -> Continual:
    """The options, on top of the benchmark, config file or run that they name."""
    start = _start(words)
    bare = replace(start, appended=())  # no word can change them
    options = parse_words(Continual, "continual", words, default=Continual(run=bare))
    require_place(options, {"resume": options.resume, "append": options.append})
    _require_data(options, peek_options(words, ("data",)), "--task-data" in words)
    return replace(options, run=replace(options.run, appended=start.appended))


def _require_data(options: Continual, named: Mapping[str, str], listed: bool) -> None:
    """Refuse contradicting or empty options about the data."""
    task_data = options.run.stream.task_data
    if options.append is not None and not named:
        raise UserError("--append needs the images of the new task: --data folder:PATH, npz:FILE, or any name.")
    if listed and not task_data:
        raise UserError("--task-data names no data. Name one data set a task: folder:PATH, npz:FILE, or any name.")
    if listed and named:
        raise UserError("--data and --task-data exclude each other. Use one of them.")


def _start(words: list[str]) -> ContinualConfig:
    """The run that all other options change."""
    start = peek_start(words, ("benchmark", "config", "resume", "append"))
    if (config := start_config(ContinualConfig, start)) is not None:
        return config
    if "append" in start:
        config = config_in(ContinualConfig, start["append"])
        return replace(config, source=replace(config.source, **TASK_DEFAULTS))
    config = benchmark(start.get("benchmark", "split-shapes"))
    own = peek_options(words, ("data", "task-data"))
    if own and own != {"data": config.data}:  # how many images the benchmark takes has no meaning for other data
        config = replace(config, source=replace(config.source, train_images=None, test_images=None))
    return config


class Reporter(Terminal):
    """A callback that also prints the accuracies of each task."""

    def on_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """A line for each readout: accuracy on every task."""
        for row in rows:
            task = f"task {row['task']}" if row["share"] == 1 else f"{row['share']:.0%} of task {row['task']}"
            when = f"after {task}" if row["task"] else "untrained"
            accuracies = "  ".join("   –" if value is None else f"{value:4.1f}" for value in row["accuracies"])
            print_lines(self.console, f"{when}: {row['readout']} {row['encoder']}: {accuracies}")


def _show(console: Console, record: ContinualRecord) -> None:
    from phinets.reports.continual import matrix_table

    summary = record.summary
    for reading in summary.readings:
        console.print(matrix_table(reading, summary.tasks))
    time = f"{summary.seconds:.0f} s in all, {summary.images_per_second:.0f} images/s while training"
    print_lines(console, f"{summary.method}: {summary.verdict}; {summary.protocol}", f"{time} → {record.folder}")
