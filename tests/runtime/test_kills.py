"""A run that is killed twenty times, at random moments, ends as if nobody had touched it."""

import multiprocessing
import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, sleep

import pytest

from phinets.config.run import Compute, SaveOptions
from phinets.runs.trainer import resume, run
from phinets.runtime.files import is_remnant
from phinets.training.journal import read_journal
from tests.runs.test_pretrain import TINY
from tests.runs.test_resume import assert_same_end

CONFIG = replace(
    TINY,
    epochs=30,
    source=replace(TINY.source, train_images=80),
    learner=replace(TINY.learner, projector=(256, 256)),
    evaluation=replace(TINY.evaluation, eval_every=7),
    compute=Compute(threads=1),
    saving=SaveOptions(checkpoint_every="2steps", keep_epochs=10),
)
"""150 steps in epochs of five, a look after every seventh and a checkpoint after every second."""
KINDS = ("step",) * 10 + ("write",) * 7 + ("start",) * 2 + ("evaluation",)
"""When the twenty kills come: in training, in the write of a checkpoint, at the start, in the last judgement."""


def start(folder: Path) -> BaseProcess:
    """Begin the run, or go on with it: what a job that is started again and again does."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["phinets.runs.trainer"])
    there = (folder / "config.yaml").exists()
    process = context.Process(target=resume if there else run, args=(folder,) if there else (CONFIG, folder))
    process.start()
    return process


def wait(process: BaseProcess, until: Callable[[], bool], nap: float = 0.002) -> bool:
    """Watch until something is so; False where the process ends first."""
    patience = monotonic() + 60
    while not until():
        if not process.is_alive():
            return False
        assert monotonic() < patience, "the run does not move"
        sleep(nap)
    return True


def steps_in(folder: Path) -> int:
    """The newest step whose line is whole."""
    path = folder / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return sum(line.startswith(b'{"kind": "step"') and line.endswith(b"\n") for line in lines)


def is_writing(folder: Path) -> bool:
    try:
        return any(map(is_remnant, (folder / "checkpoints").iterdir()))
    except OSError:
        return False


def kill(kind: str, goal: int, folder: Path, chance: random.Random) -> tuple[bool, bool]:
    """One attempt that is killed at its moment; whether it was, and whether a checkpoint was being written."""
    process = start(folder)
    moments: dict[str, Callable[[], bool]] = {
        "step": lambda: steps_in(folder) >= goal,
        "write": lambda: steps_in(folder) >= goal and is_writing(folder),
        "start": (folder / "config.yaml").exists,
        "evaluation": (folder / "backbone.safetensors").exists,
    }
    there = wait(process, moments[kind], nap=0.0002 if kind == "write" else 0.002)
    if kind != "write":
        sleep(chance.uniform(0.0, 0.1))
    writing = is_writing(folder)
    process.kill()
    process.join()
    return there and process.exitcode == -signal.SIGKILL, writing


def schedule(chance: random.Random) -> list[tuple[str, int]]:
    """Kinds of kills with the step from which on each comes, in the order in which a run meets them."""
    goals = sorted(chance.sample(range(2, 140), KINDS.count("step") + KINDS.count("write")))
    kinds = [kind for kind in KINDS if kind in ("step", "write")]
    chance.shuffle(kinds)
    early = [("start", 0)] * KINDS.count("start")
    return [*early, *zip(kinds, goals, strict=True), *[("evaluation", 150)] * KINDS.count("evaluation")]


@pytest.mark.slow
def test_a_run_killed_twenty_times_ends_as_if_it_had_not_been(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(20)
    counts: Counter[str] = Counter()
    for kind, goal in schedule(chance):
        was, writing = kill(kind, goal, tmp_path / "killed", chance)
        counts["kills"] += was
        counts["during a checkpoint's write"] += was and writing
        counts["resumes"] += (tmp_path / "killed" / "config.yaml").exists()
    last, whole = start(tmp_path / "killed"), start(tmp_path / "whole")
    for process in (last, whole):
        process.join()
        assert process.exitcode == 0
    rows = [read_journal(tmp_path / name / "metrics.jsonl") for name in ("killed", "whole")]
    counts["mismatches"] = sum(a != b for a, b in zip(*rows, strict=True))
    with capsys.disabled():
        print(f"\nfault test: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    assert counts["kills"] == 20
    assert counts["during a checkpoint's write"] >= 5
    assert_same_end(tmp_path / "killed", tmp_path / "whole")
