"""The journal: every line once, in order, and on to where a checkpoint was made."""

from io import FileIO
from pathlib import Path

import pytest

from phinets.config.errors import UserError
from phinets.training import journal as journal_module
from phinets.training.journal import Journal, open_journal, read_journal, require_trackers


def test_a_journal_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    rows = [{"kind": "step", "step": 1, "loss": -0.5}, {"kind": "eval", "step": 1, "knn": 33.3}]
    with Journal(tmp_path / "metrics.jsonl") as journal:
        journal.write(rows[:1])
        journal.write(rows[1:])
    assert read_journal(tmp_path / "metrics.jsonl") == rows


def row(step: int) -> dict[str, object]:
    return {"kind": "step", "step": step, "loss": step / 10}


def test_a_journal_that_goes_on_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Journal(path) as journal:
        journal.write([row(1), row(2)])
        at = journal.flush()
        journal.write([row(3)])
    path.write_bytes(path.read_bytes()[:-4])  # and the last line is torn
    with Journal(path, at=at) as journal:
        journal.write([row(3), row(4)])
    assert read_journal(path) == [row(1), row(2), row(3), row(4)]


def test_a_journal_that_has_lost_lines_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Journal(path) as journal:
        journal.write([row(1)])
        at = journal.flush()
    with pytest.raises(UserError, match="lines are missing"):
        Journal(path, at=at + 1)
    assert read_journal(path) == [row(1)]


def test_a_disk_that_takes_only_a_part_at_a_time_tears_no_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(FileIO):
        def write(self, data: bytes, /) -> int:  # type: ignore[override]
            return super().write(bytes(data)[:7])

    monkeypatch.setattr(journal_module, "FileIO", Slow)
    with Journal(tmp_path / "metrics.jsonl") as journal:
        journal.write([row(1), row(2)])
    assert read_journal(tmp_path / "metrics.jsonl") == [row(1), row(2)]


def test_a_journal_without_a_place_writes_nothing() -> None:
    with Journal(None) as journal:
        journal.write([row(1)])
        assert journal.flush() == 0


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with open_journal(tmp_path / "metrics.jsonl", ("tensorboard",), dict)[0] as journal:
        journal.write([{"kind": "step", "step": 7, "epoch": 0.5, "loss": -0.5}])
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert events.Tags()["scalars"] == ["loss"]
    (scalar,) = events.Scalars("loss")
    assert (scalar.step, scalar.value) == (7, -0.5)


def test_a_tracker_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phinets.training.journal.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"phinets\[wandb\]"):
        require_trackers(("wandb",))
