"""From targets to results: which jobs are missing, in which order and shard they run, and a Slurm array for them."""

import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

from phinets.config.errors import StoppedError, UserError
from phinets.config.jobs import Job, Result
from phinets.paper.plan import Target
from phinets.paper.scales import Scale
from phinets.reproduce.store import Store

MAX_TASKS = 1000
"""Tasks of a Slurm array; Slurm's own limit is 1001 by default."""
RESERVED_OPTIONS = ("array", "output", "a", "o")
"""Options of sbatch that the script sets itself."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Jobs that run one after the other on the same machine."""

    jobs: tuple[Job, ...]

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may run beside it."""
        return any(job.exclusive for job in self.jobs)


class JobCallback(Protocol):
    """Hears of the jobs' progress."""

    def on_start(self, jobs: Sequence[Job]) -> None:
        """These are about to run."""

    def on_result(self, result: Result) -> None:
        """A job is done, or failed."""


class Engine(Protocol):
    """Runs units, and puts every result into the store."""

    def run(self, units: Sequence[Unit], callback: JobCallback) -> None:
        """Run all of them; a failure is a result too."""


def build_units(jobs: Mapping[str, Job]) -> list[Unit]:
    """A pretraining and the jobs that require it are one unit; exclusive units come last."""
    groups: dict[str, list[Job]] = {}
    for name, job in jobs.items():
        groups.setdefault(name if job.requires is None else job.requires.key, []).append(job)
    return sorted((Unit(tuple(group)) for group in groups.values()), key=lambda unit: unit.exclusive)


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM and SIGINT raise StoppedError. Outside of the main thread signals are left alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.signal(number, raise_stopped) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def raise_stopped(number: int, frame: FrameType | None) -> None:
    """A signal handler."""
    name = signal.Signals(number).name
    raise StoppedError(f"stopped by {name}. Results are saved; the same command resumes.", 128 + number)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several shares of the jobs. Each unit is in exactly one shard; shards count from 0."""

    index: int = 0
    count: int = 1

    def jobs(self, jobs: Mapping[str, Job]) -> dict[str, Job]:
        """Those of this shard. They do not depend on what is done already, so all machines agree."""
        return {job.key: job for unit in build_units(jobs)[self.index :: self.count] for job in unit.jobs}


def parse_shard(text: str) -> Shard:
    """A shard from I/N, 0/N to (N − 1)/N."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
    if shard.index >= shard.count:
        raise UserError(f"--shard is '{text}', but must be I/N with I from 0 to N − 1, e.g. 0/4 for the first of four.")
    return shard


def all_jobs(targets: Iterable[Target], scale: Scale) -> dict[str, Job]:
    """The jobs of some targets by key, each once."""
    jobs: dict[str, Job] = {}
    for target in targets:
        jobs |= {name: job for name, job in target.jobs(scale).items() if name not in jobs}
    return jobs


def missing_jobs(jobs: Mapping[str, Job], store: Store, *, retry_failed: bool = False) -> dict[str, Job]:
    """The jobs without a result. `retry_failed` deletes the results of those that failed."""
    results = store.results(jobs)
    if retry_failed:
        for name in failures(results):
            store.forget(name)
            del results[name]
    return {name: job for name, job in jobs.items() if name not in results}


def reproduce(missing: Mapping[str, Job], engine: Engine, callback: JobCallback) -> None:
    """Run the missing jobs."""
    if missing:
        callback.on_start(list(missing.values()))
        engine.run(build_units(missing), callback)


def failures(results: Mapping[str, Result]) -> dict[str, str]:
    """Why jobs failed, by key."""
    return {name: result.failed for name, result in results.items() if result.failed is not None}


def slurm_script(words: Sequence[str], tasks: int, logs: Path, sbatch: str) -> str:
    """A script for sbatch: an array of `tasks` that each run `phinets reproduce WORDS` with a --shard of its own.

    The folder `logs` of the tasks' output must exist. `sbatch`: further options, --time=8:00:00 --gpus-per-task=1.
    """
    command = shlex.join([sys.executable, "-m", "phinets", "reproduce", *words])
    lines = (
        "#!/bin/bash",
        "#SBATCH --job-name=phinets",
        f"#SBATCH --array=0-{tasks - 1}",
        f"#SBATCH --output={logs}/%A_%a.txt",
        *(f"#SBATCH {option}" for option in _sbatch_options(sbatch)),
        "set -eu",
        f'{command} --shard "$SLURM_ARRAY_TASK_ID/{tasks}"',
        "",
    )
    return "\n".join(lines)


def _sbatch_options(text: str) -> list[str]:
    """The options one by one, each with its value."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--sbatch is '{text}', whose quotes are not closed ({error}).") from error
    options: list[list[str]] = []
    for word in words:
        if word.startswith("-"):
            options.append([word])
        elif options:
            options[-1].append(word)
        else:
            raise UserError(f"--sbatch begins with '{word}', but must hold options, e.g. \"--time=8:00:00\".")
    for option, *_ in options:
        if option.lstrip("-").partition("=")[0] in RESERVED_OPTIONS:
            raise UserError(f"--sbatch has {option}, which the script sets itself. Leave it out.")
    return [shlex.join(option) for option in options]
