"""However a run ends, by a full disk, for want of memory or by a signal: what was kept is whole, the way on is said."""

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from phinets.config.errors import UserError
from phinets.methods.siamese import Predictive
from phinets.runs.trainer import resume, run
from phinets.training.checkpoint import checkpoints, newest_checkpoint
from phinets.training.run_folder import write_config
from phinets.views import Views
from tests.runs.test_pretrain import newest
from tests.runs.test_resume import CUT, assert_same_end, cut_off

PHINETS = (sys.executable, "-m", "phinets", "train")
SMALL_DISK = 20_000
"""Bytes that a file may have: enough for a journal, not for a checkpoint."""


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_DISK, SMALL_DISK))


@pytest.mark.slow
def test_a_full_disk_stops_the_run_with_a_message_and_leaves_the_last_checkpoint_whole(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    cut_off(CUT, folder)
    before = {path: path.read_bytes() for _, path in checkpoints(folder / "checkpoints")}
    left = subprocess.run(
        [*PHINETS, "--resume", folder], preexec_fn=limit_files, capture_output=True, text=True, timeout=100
    )
    assert left.returncode == 2
    assert "Traceback" not in left.stderr
    assert "can't be written" in left.stderr
    assert "Free some space" in left.stderr
    assert f"phinets train --resume {folder}" in left.stderr
    assert {path: path.read_bytes() for path in (folder / "checkpoints").iterdir()} == before
    resume(folder)
    run(CUT, tmp_path / "whole")
    assert_same_end(folder, tmp_path / "whole")


def test_without_enough_memory_the_advice_is_given_and_the_checkpoint_is_intact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The allocator is asked for more than any machine has, at the eighth step."""
    loss, calls = Predictive.loss, []

    def greedy(self: Predictive, views: Views) -> object:
        calls.append(1)
        return torch.empty(2**60, dtype=torch.uint8) if len(calls) == 8 else loss(self, views)

    monkeypatch.setattr(Predictive, "loss", greedy)
    with pytest.raises(UserError, match=r"memory.*--accumulate 2.*--precision bf16.*--batch 8") as left:
        run(CUT, tmp_path / "run")
    assert "up to step 6" in str(left.value)
    state, refused = newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert state is not None
    assert (state["step"], refused) == (6, {})
    monkeypatch.undo()
    resume(tmp_path / "run")
    run(CUT, tmp_path / "whole")
    assert_same_end(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_leaves_politely_and_the_same_line_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    write_config(tmp_path, CUT)
    folder = tmp_path / "run"
    config = str(tmp_path / "config.yaml")
    line = [*PHINETS, "--config", config, "--epochs", "30", "--out", str(folder), "--or-resume", "--json"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    patience = monotonic() + 60
    while not checkpoints(folder / "checkpoints"):
        assert monotonic() < patience
        sleep(0.01)
    process.send_signal(number)
    out, said = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name} after step" in json.loads(out)["error"]
    assert f"phinets train --resume {folder}" in said
    assert "Traceback" not in said
    step = newest(folder)["step"]
    assert 0 < step < 150
    done = subprocess.run(line, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0
    assert json.loads(done.stdout)["steps"] == 150
    assert f"resuming after {step}" in " ".join(done.stderr.split())
    again = subprocess.run(line, capture_output=True, text=True, timeout=100)
    assert json.loads(again.stdout) == json.loads(done.stdout)
