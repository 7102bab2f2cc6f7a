"""A run over a stream that is killed in the middle of tasks and between them, its buffer in hand."""

import multiprocessing
import random
import signal
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import sleep

import pytest

from phinets.config.run import Compute, SaveOptions
from phinets.runs.continual import Continual
from phinets.runs.trainer import resume_stream, run_stream
from tests.runs.test_continual import STREAM, assert_same_end
from tests.runtime.test_kills import steps_in, wait

CONFIG = replace(
    STREAM,
    epochs_per_task=6,
    memory=replace(STREAM.memory, distil="cassle"),
    compute=Compute(threads=1),
    saving=SaveOptions(checkpoint_every="4steps"),
)
KILLS = 6


def start(folder: Path) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["phinets.runs.trainer"])
    there = (folder / "config.yaml").exists()
    target, given = (resume_stream, (folder,)) if there else (run_stream, (CONFIG, folder))
    process = context.Process(target=target, args=given)
    process.start()
    return process


@pytest.mark.slow
def test_a_stream_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    chance = random.Random(6)
    ends = Continual.build(CONFIG).run_parts.schedule.ends
    goals = sorted([*ends[:2], *chance.sample(range(3, ends[-1] - 3), KILLS - 2)])
    for goal in goals:
        process = start(tmp_path / "killed")
        assert wait(process, lambda goal=goal: steps_in(tmp_path / "killed") >= goal)  # type: ignore[misc]
        sleep(chance.uniform(0.0, 0.1))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    last, whole = start(tmp_path / "killed"), start(tmp_path / "whole")
    for process in (last, whole):
        process.join()
        assert process.exitcode == 0
    assert_same_end(tmp_path / "killed", tmp_path / "whole")
