"""Checkpoints: whole or not there, verified, and the right ones kept."""

import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.methods import METHODS
from phinets.config.run import SaveOptions
from phinets.runtime.files import atomic_write
from phinets.training import checkpoint
from phinets.training.checkpoint import (
    Keeper,
    checkpoints,
    load_checkpoint,
    newest_checkpoint,
    rename_refused,
    save_checkpoint,
)
from phinets.training.step import train_step
from tests.helpers import tiny_learner, tiny_train_state, tiny_views

WHAT = {"learner": {"w": torch.arange(4.0)}, "journal": 7}


@pytest.mark.parametrize("optimizer", ["sgd", "adamw", "lars"])
@pytest.mark.parametrize("name", METHODS)
def test_training_resumes_exactly_from_a_checkpoint(name: str, optimizer: str, tmp_path: Path) -> None:
    """Every parameter and buffer is compared, also a buffer that the state dict leaves out."""
    first, second = (tiny_train_state(tiny_learner(name, seed=seed), optimizer=optimizer) for seed in (0, 8))
    for i in range(3):
        train_step(first, [tiny_views(seed=i)], rate=0.1, peak=0.1)
    second.restore(load_checkpoint(save_checkpoint(tmp_path, 3, first.state())))
    for train_state in (first, second):
        train_step(train_state, [tiny_views(seed=4)], rate=0.1, peak=0.1)
    for ours, theirs in (
        (dict(first.learner.named_parameters()), dict(second.learner.named_parameters())),
        (dict(first.learner.named_buffers()), dict(second.learner.named_buffers())),
    ):
        assert [key for key in ours if not torch.equal(ours[key], theirs[key])] == []


def test_another_learner_s_checkpoint_is_refused() -> None:
    state = tiny_train_state(tiny_learner("moco-v2")).state()
    with pytest.raises(UserError, match="does not fit"):
        tiny_train_state(tiny_learner("x-phinet")).restore(state)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def half(file: BinaryIO) -> None:
        file.write(b"ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="No space left"):
        atomic_write(path, half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOENT, errno.EACCES])
def test_space_is_asked_for_only_where_space_is_lacking(number: int, tmp_path: Path) -> None:
    def failing(file: BinaryIO) -> None:
        raise OSError(number, "as the system says it")

    with pytest.raises(UserError, match="can't be written: as the system says it") as on_message:
        atomic_write(tmp_path / "file", failing)
    full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    assert ("Free some space" in str(on_message.value), "Choose a place" in str(on_message.value)) == (
        full,
        not full,
    )


@pytest.mark.parametrize("where", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("fault", ["cut", "bit", "empty"])
def test_a_torn_or_altered_checkpoint_is_refused_by_name_and_the_one_before_is_used(
    fault: str, where: float, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path, 10, WHAT)
    newer = save_checkpoint(tmp_path, 20, WHAT)
    content = bytearray(newer.read_bytes())
    place = int(where * len(content))
    content[place] ^= 1
    newer.write_bytes(bytes({"cut": content[:place], "bit": content, "empty": bytearray()}[fault]))
    state, refused = newest_checkpoint(tmp_path)
    assert state is not None
    assert state["step"] == 10
    assert list(refused) == [newer]
    assert newer.name in refused[newer]
    rename_refused(refused)
    assert [step for step, _ in checkpoints(tmp_path)] == [10]


def test_where_no_checkpoint_is_whole_nothing_is_guessed(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path) == (None, {})
    save_checkpoint(tmp_path, 10, WHAT).write_bytes(b"torn")
    with pytest.raises(UserError, match=r"step-000000010.*incomplete or altered"):
        newest_checkpoint(tmp_path)


def test_another_format_is_refused_with_both_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "FORMAT", 99)
    path = save_checkpoint(tmp_path, 1, WHAT)
    monkeypatch.undo()
    with pytest.raises(UserError, match=r"format 99.*reads format 3"):
        load_checkpoint(path)


def test_a_file_of_another_name_or_none_at_all_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, WHAT)
    with pytest.raises(UserError, match="not named as a checkpoint"):
        load_checkpoint(path.rename(tmp_path / "last.pt"))
    with pytest.raises(UserError, match="no checkpoint"):
        load_checkpoint(path)


class Trap:
    sprung = False

    def __setstate__(self, state: object) -> None:
        Trap.sprung = True


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, {"trap": Trap()})
    with pytest.raises(UserError, match="step-000000001") as refusal:
        load_checkpoint(path)
    assert not Trap.sprung
    assert "weights_only" not in str(refusal.value)


def test_a_fifo_named_as_a_checkpoint_is_refused_without_opening_it(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, WHAT)
    fifo = tmp_path / f"step-000000002.{'0' * 16}.pt"
    os.mkfifo(fifo)
    state, refused = newest_checkpoint(tmp_path)
    assert state is not None
    assert state["step"] == 1
    assert list(refused) == [fifo]


def test_the_last_two_are_kept_and_every_kth_epoch_s(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, SaveOptions(checkpoint_every="3steps", keep_epochs=2), steps_per_epoch=5)
    due = [step for step in range(1, 31) if keeper.is_due(step)]
    assert due == [3, 6, 9, 10, 12, 15, 18, 20, 21, 24, 27, 30]
    for step in due[:-1]:
        keeper.save(step, WHAT)
    assert [step for step, _ in checkpoints(tmp_path)] == [10, 20, 24, 27]


def test_older_ones_go_only_once_the_new_one_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(tmp_path, SaveOptions(), steps_per_epoch=5)
    for step in (1, 2):
        keeper.save(step, WHAT)
    monkeypatch.setattr(torch, "save", _half)
    with pytest.raises(UserError, match="No space left"):
        keeper.save(3, WHAT)
    assert [step for step, _ in checkpoints(tmp_path)] == [1, 2]
    assert newest_checkpoint(tmp_path)[0] is not None


def _half(state: object, file: BinaryIO) -> None:
    file.write(b"half")
    raise OSError(28, "No space left on device")


def test_what_a_killed_writer_and_a_refused_future_left_goes_with_the_next(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, SaveOptions(), steps_per_epoch=5)
    keeper.save(2, WHAT)
    shutil.copy(checkpoints(tmp_path)[0][1], tmp_path / f"step-000000009.{'0' * 16}.pt")
    (tmp_path / ".step-000000009.pt.part").write_bytes(b"half")
    keeper.save(3, WHAT)
    assert [step for step, _ in checkpoints(tmp_path)] == [2, 3]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_clock_asks_when_its_time_has_come_and_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(checkpoint, "monotonic", lambda: now[0])
    keeper = Keeper(tmp_path, SaveOptions(checkpoint_every="300s"), steps_per_epoch=5)
    asked = []
    for now[0] in (100.0, 299.0, 300.0, 301.0, 599.0, 600.0):
        asked.append(keeper.timer_expired())
    assert asked == [False, False, True, False, False, True]
    assert not any(keeper.is_due(step) for step in range(1, 50))
    assert not Keeper(tmp_path, SaveOptions(checkpoint_every="5steps"), steps_per_epoch=5).timer_expired()


@pytest.mark.parametrize(
    ("text", "interval"), [("300s", (300.0, None)), ("0.5s", (0.5, None)), ("200steps", (None, 200))]
)
def test_an_interval_is_a_time_or_a_number_of_steps(text: str, interval: tuple[float | None, int | None]) -> None:
    assert SaveOptions(checkpoint_every=text).interval == interval


@pytest.mark.parametrize("text", ["", "300", "0s", "-1s", "2.5steps", "0steps", "5 min", "s"])
def test_any_other_interval_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"300s.*200steps"):
        SaveOptions(checkpoint_every=text)
