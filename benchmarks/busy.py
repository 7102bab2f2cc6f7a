"""Training speed on a quiet machine and beside one busy process: the step of the main job with different threading.

Each row is measured in a process of its own, because OpenMP reads its variables when it is loaded. The last row is the
default. Stop everything else before: the first column needs idle cores.

    python benchmarks/busy.py                                   # five rows, about three minutes
    python benchmarks/busy.py --seconds 5 --json
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import tyro


class Row(NamedTuple):
    """One way to use the cores."""

    name: str
    threads: int | None
    spin_count: str | None
    parallel_views: bool


ROWS = (
    Row("OpenMP, 2 threads, spin 100000", 2, "100000", False),
    Row("OpenMP, 2 threads, spin 1000", 2, "1000", False),
    Row("OpenMP, 2 threads, spin 0", 2, "0", False),
    Row("1 thread", 1, "100000", False),
    Row("a thread per view (default)", None, None, True),
)


@dataclass(frozen=True)
class Options:
    """Images per second of the default recipe's training step."""

    seconds: float = 10.0
    """Duration of a measurement."""
    repeats: int = 3
    """Measurements of each row; the median counts."""
    json: bool = False
    """Print one JSON document."""
    row: int | None = None
    """Measure this row only and print images per second: what the benchmark starts for each row."""


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    if options.row is not None:
        print(images_per_second(ROWS[options.row], options.seconds))
        return
    table = [measure(number, options) for number in range(len(ROWS))]
    print(json.dumps(table) if options.json else lines(table))


def measure(number: int, options: Options) -> dict[str, Any]:
    """A row of the table, relative to the quiet speed of the first row."""
    quiet = [measure_in_process(number, options.seconds) for _ in range(options.repeats)]
    with busy_process():
        busy = [measure_in_process(number, options.seconds) for _ in range(options.repeats)]
    return {"setting": ROWS[number].name, "quiet": median(quiet), "busy": median(busy)}


def measure_in_process(number: int, seconds: float) -> float:
    row = ROWS[number]
    variables = {} if row.spin_count is None else {"GOMP_SPINCOUNT": row.spin_count}
    command = [sys.executable, __file__, "--row", str(number), "--seconds", str(seconds)]
    process = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return float(process.stdout)


@contextmanager
def busy_process() -> Iterator[None]:
    """A process that never waits."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()


def images_per_second(row: Row, seconds: float) -> float:
    """The speed of the training step in this process."""
    from phinets.runtime.process import share_cores

    share_cores()
    import torch

    from phinets.runs.cost import first_batch, new_train_state, run_steps
    from phinets.runs.recipes import recipe

    if row.threads is not None:
        torch.set_num_threads(row.threads)
    config, device = recipe("default"), torch.device("cpu")
    train_state, views = new_train_state(config, device), first_batch(config, device)
    if not row.parallel_views:
        train_state = replace(train_state, parallel_views=None)
    run_steps(train_state, views, 5)
    steps, start = 0, perf_counter()
    while perf_counter() - start < seconds:
        run_steps(train_state, views)
        steps += 1
    return steps * config.batch / (perf_counter() - start)


def lines(table: list[dict[str, Any]]) -> str:
    """The table for people."""
    best = table[0]["quiet"]
    rows = [f"{'images/s':34}{'quiet':>8}{'busy':>8}{'quiet %':>9}{'busy %':>8}"]
    for row in table:
        quiet, busy = row["quiet"], row["busy"]
        rows.append(f"{row['setting']:34}{quiet:8.0f}{busy:8.0f}{100 * quiet / best:9.0f}{100 * busy / best:8.0f}")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
