"""Two processes learn what one learns, and none of them is lost in silence."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import torch

from phinets.config.methods import METHODS, LearnerOptions
from phinets.config.run import Compute, SaveOptions
from phinets.runs.trainer import resume, run
from phinets.training.checkpoint import checkpoints
from phinets.training.journal import read_journal
from phinets.training.run_folder import write_config
from tests.runs.test_pretrain import TINY, newest
from tests.runtime.every_method import trajectory

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
TWENTY = replace(
    TINY,
    source=replace(TINY.source, train_images=160),
    evaluation=replace(TINY.evaluation, eval_every=10),
    compute=Compute(device="cpu", threads=1, precision="fp64"),
)
"""Twenty steps, with a look after the tenth and the last.

In double precision: in single, two orders of the same sum differ by 1e-7, and where that moves one activation over
the kink of its ReLU, gradients jump by 1e-2. A single process whose weights are changed by 1e-7 drifts away as fast.
"""
LONG = replace(TWENTY, epochs=8, saving=SaveOptions(checkpoint_every="5steps"))
"""Eighty steps: time enough to be stopped."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every method's trajectory, made by two processes."""
    home = tmp_path_factory.mktemp("two")
    write_config(home, TWENTY)
    script = Path(__file__).with_name("every_method.py")
    subprocess.run([*TORCHRUN, script, home / "config.yaml", home / "found.pt"], check=True, timeout=500)
    return dict(torch.load(home / "found.pt", weights_only=True))


@pytest.mark.parametrize("name", METHODS)
def test_two_processes_learn_what_one_learns(name: str, by_two: dict[str, Any]) -> None:
    alone = trajectory(replace(TWENTY, method=name))
    assert alone["losses"].shape[0] == 20
    assert torch.allclose(by_two[name]["losses"], alone["losses"], atol=1e-6)
    ours, theirs = alone["learner"], by_two[name]["learner"]
    assert ours.keys() == theirs.keys()
    for key in ours:
        assert torch.allclose(ours[key].double(), theirs[key].double(), atol=1e-6), key


def together(*words: str | Path) -> subprocess.Popen[str]:
    """`torchrun -m phinets train …` by two processes."""
    command = [*TORCHRUN, "-m", "phinets", "train", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait(until: Callable[[], object]) -> None:
    patience = monotonic() + 120
    while not until():
        assert monotonic() < patience
        sleep(0.05)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    run(LONG, folder)
    return folder


def assert_same_run(folder: Path, alone: Path) -> None:
    """The same journal and weights as one process alone, to rounding."""
    ours, theirs = (read_journal(f / "metrics.jsonl") for f in (folder, alone))
    assert [(row["kind"], row["step"]) for row in ours] == [(row["kind"], row["step"]) for row in theirs]
    for one, two in zip(ours, theirs, strict=True):
        assert one == pytest.approx(two, abs=1e-5, nan_ok=False)
    a, b = newest(folder)["learner"], newest(alone)["learner"]
    assert all(torch.allclose(a[key].double(), b[key].double(), atol=1e-5) for key in b)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the processes in /proc")
def test_a_killed_process_ends_all_and_the_run_goes_on_with_another_number(tmp_path: Path, alone: Path) -> None:
    write_config(tmp_path, LONG)
    folder = tmp_path / "run"
    process = together("--config", tmp_path / "config.yaml", "--out", folder)
    wait(lambda: checkpoints(folder / "checkpoints"))
    os.kill(workers_of(process)[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0
    assert "another process of this run" in said
    assert f"--nproc-per-node 2 -m phinets train --resume {folder}" in said
    step = newest(folder)["step"]
    assert 0 < step < 80
    resume(folder)
    assert_same_run(folder, alone)


def test_a_team_that_is_told_to_stop_keeps_its_step_and_goes_on(tmp_path: Path, alone: Path) -> None:
    write_config(tmp_path, LONG)
    folder = tmp_path / "run"
    process = together("--config", tmp_path / "config.yaml", "--out", folder)
    wait(lambda: checkpoints(folder / "checkpoints"))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0
    assert said.count("stopped by SIGTERM after step") == 1
    assert f"up to step {newest(folder)['step']} " in said
    again = together("--resume", folder, "--json")
    out, err = again.communicate(timeout=200)
    assert again.returncode == 0, err
    assert out.count('"steps": 80') == 1
    assert_same_run(folder, alone)


def test_what_a_person_got_wrong_is_said_once_and_ends_all(tmp_path: Path) -> None:
    process = together("--recipe", "smoke", "--batch", "129", "--out", tmp_path / "run")
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0
    assert said.count("can't be divided equally among 2 processes") == 1
    assert not (tmp_path / "run").exists()


def test_parameters_that_take_no_part_hold_nobody_up(tmp_path: Path) -> None:
    """Without Sim-2, g takes no part in the loss; a team that waited for its gradient would wait for good."""
    idle = replace(TWENTY, epochs=1, learner=replace(LearnerOptions(sim2_weight=0.0), projector=(16, 16)))
    write_config(tmp_path, idle)
    process = together("--config", tmp_path / "config.yaml", "--out", tmp_path / "run", "--json")
    out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    assert out.count('"steps": 10') == 1
