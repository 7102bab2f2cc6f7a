"""Files that are whole or not there."""

from pathlib import Path
from typing import BinaryIO

import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.run import Optimisation
from phinets.engine.checkpoint import load_checkpoint, save_checkpoint, write_whole
from phinets.engine.device import Precision
from phinets.engine.journal import Journal, read_journal
from phinets.engine.optimisers import build_optimiser
from phinets.engine.step import train_step
from phinets.engine.trackers import open_trackers, require_trackers
from tests.conftest import tiny_learner, tiny_views


def test_a_checkpoint_carries_on_exactly(tmp_path: Path) -> None:
    precision = Precision("fp32", torch.device("cpu"))
    first = tiny_learner("x-phinet")
    optimiser = build_optimiser(first, Optimisation())
    for _ in range(3):
        train_step(first, optimiser, tiny_views(), rate=0.1, peak=0.1, precision=precision)
    save_checkpoint(tmp_path / "last.pt", first, optimiser, precision, 3)
    second = tiny_learner("x-phinet", seed=8)
    other = build_optimiser(second, Optimisation())
    state = load_checkpoint(tmp_path / "last.pt")
    second.load_state_dict(state["learner"])
    other.load_state_dict(state["optimiser"])
    assert state["step"] == 3
    for learner, rule in ((first, optimiser), (second, other)):
        train_step(learner, rule, tiny_views(seed=4), rate=0.1, peak=0.1, precision=precision)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def half(file: BinaryIO) -> None:
        file.write(b"ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="No space left"):
        write_whole(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_what_is_no_checkpoint_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "torn.pt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"torn\.pt"):
        load_checkpoint(path)
    with pytest.raises(UserError, match="no checkpoint"):
        load_checkpoint(tmp_path / "missing.pt")


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"format": 1, "trap": Trap()}, tmp_path / "trap.pt")
    with pytest.raises(UserError, match=r"trap\.pt"):
        load_checkpoint(tmp_path / "trap.pt")
    assert not Trap.sprung


class Trap:
    sprung = False

    def __setstate__(self, state: object) -> None:
        Trap.sprung = True


def test_a_journal_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    rows = [{"kind": "step", "step": 1, "loss": -0.5}, {"kind": "look", "step": 1, "knn": 33.3}]
    with Journal(tmp_path / "metrics.jsonl") as journal:
        journal.write(rows[:1])
        journal.write(rows[1:])
    assert read_journal(tmp_path / "metrics.jsonl") == rows


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trackers = open_trackers(("tensorboard",), tmp_path, {})
    with Journal(tmp_path / "metrics.jsonl", trackers) as journal:
        journal.write([{"kind": "step", "step": 7, "epoch": 0.5, "loss": -0.5}])
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert events.Tags()["scalars"] == ["loss"]
    (scalar,) = events.Scalars("loss")
    assert (scalar.step, scalar.value) == (7, -0.5)


def test_a_tracker_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phinets.engine.trackers.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"phinets\[wandb\]"):
        require_trackers(("wandb",))
