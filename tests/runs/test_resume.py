"""A run that was cut ends as if it had not been."""

import json
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from phinets.config.errors import StoppedError, UserError
from phinets.config.methods import METHODS
from phinets.config.run import Compute, DataOptions, Optimization, PretrainConfig, SaveOptions
from phinets.runs.resume import STATE, last_state, with_resume_hint
from phinets.runs.setup import health_from_row
from phinets.runs.trainer import Silent, resume, run
from phinets.training.checkpoint import checkpoints, save_checkpoint
from phinets.training.journal import read_journal
from phinets.training.loop import Pace
from phinets.training.run_folder import lock_folder, read_config
from tests.data.test_files import write_folder
from tests.runs.test_pretrain import TINY, Listener, newest

CUT = replace(TINY, source=replace(TINY.source, train_images=80))
"""Two epochs of five steps, with a checkpoint after steps 3, 6, 9 and 10."""


class PowerCutError(Exception):
    pass


class AtStep(Silent):
    """Does something when it hears of a step."""

    def __init__(self, step: int, act: Any) -> None:
        self.step, self.act = step, act

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        if row["step"] == self.step:
            self.act()


def power_cut() -> None:
    raise PowerCutError


def cut_off(config: PretrainConfig, folder: Path, step: int = 9) -> None:
    """A run that dies when step 9 is in the journal and its checkpoint is not yet written."""
    with pytest.raises(PowerCutError):
        run(config, folder, callback=AtStep(step, power_cut))


def whole(config: PretrainConfig, folder: Path) -> Path:
    run(config, folder)
    return folder


def assert_same_end(ours: Path, theirs: Path) -> None:
    """The same weights, optimizer, journal and summary, to the last bit, but for times."""
    assert read_journal(ours / "metrics.jsonl") == read_journal(theirs / "metrics.jsonl")
    a, b = (load_file(folder / "backbone.safetensors") for folder in (ours, theirs))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert_equal(*({k: newest(f)[k] for k in ("step", "learner", "optimizer", "scaler")} for f in (ours, theirs)))
    one, two = (json.loads((folder / "summary.json").read_text()) for folder in (ours, theirs))
    for name in set(one) - {"seconds", "images_per_second", "data_wait"}:
        assert one[name] == two[name], name


def assert_equal(one: Any, two: Any) -> None:
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, two)
    elif isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            assert_equal(one[key], two[key])
    else:
        assert one == two


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_learner_cut_in_the_middle_of_an_epoch_ends_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    config = replace(CUT, method=name)
    cut_off(config, tmp_path / "cut")
    assert newest(tmp_path / "cut")["step"] == 6
    assert read_journal(tmp_path / "cut" / "metrics.jsonl")[-1]["step"] == 9
    resume(tmp_path / "cut")
    assert_same_end(tmp_path / "cut", whole(config, tmp_path / "whole"))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole(CUT, tmp_path_factory.mktemp("runs") / "whole")


def test_a_learner_cut_in_the_middle_of_an_epoch_ends_as_if_it_had_not_been(unbroken: Path, tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    resume(tmp_path / "cut")
    assert_same_end(tmp_path / "cut", unbroken)
    resumed = json.loads((tmp_path / "cut" / "env.json").read_text())["resumed"]
    assert [one["after_step"] for one in resumed] == [6]


def test_a_run_cut_before_its_first_checkpoint_begins_anew(unbroken: Path, tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut", step=3)
    assert not checkpoints(tmp_path / "cut" / "checkpoints")
    resume(tmp_path / "cut")
    assert_same_end(tmp_path / "cut", unbroken)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_step_keeps_it_and_tells_the_way_on(
    number: signal.Signals, unbroken: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "a run"
    before = signal.getsignal(number)
    with pytest.raises(StoppedError, match=rf"{number.name} after step 4\..*phinets train --resume '.*a run'") as left:
        run(CUT, folder, callback=AtStep(3, lambda: os.kill(os.getpid(), number)))
    assert left.value.exit_code == 128 + number
    assert signal.getsignal(number) is before
    assert newest(folder)["step"] == 4
    resume(folder)
    assert_same_end(folder, unbroken)


def test_a_second_interrupt_is_obeyed_at_once(unbroken: Path, tmp_path: Path) -> None:
    def twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(StoppedError, match=r"SIGINT.*up to step 3 .*--resume"):
        run(CUT, tmp_path / "run", callback=AtStep(6, twice))
    resume(tmp_path / "run")
    assert_same_end(tmp_path / "run", unbroken)


def test_an_altered_checkpoint_is_named_and_the_one_before_it_leads_to_the_same_end(
    unbroken: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cut"
    cut_off(CUT, folder)
    newer = checkpoints(folder / "checkpoints")[-1][1]
    newer.write_bytes(newer.read_bytes()[:-100])
    listener = Listener()
    resume(folder, callback=listener)
    assert len(listener.heard) == 1
    assert newer.name in listener.heard[0]
    assert_same_end(folder, unbroken)


def test_a_finished_run_is_only_read(unbroken: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in unbroken.rglob("*")}
    record = resume(unbroken)
    assert record.summary.steps == 10
    assert len(record.journal) == len(read_journal(unbroken / "metrics.jsonl"))
    assert {path: path.stat().st_mtime_ns for path in unbroken.rglob("*")} == before


def test_how_it_is_computed_and_kept_may_change_but_not_what_is_learned(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    with pytest.raises(UserError, match=r"epochs was 2 and is 3.*--config"):
        resume(tmp_path / "cut", replace(CUT, epochs=3))
    with pytest.raises(UserError, match=r"optimization\.lr was 0.03"):
        resume(tmp_path / "cut", replace(CUT, optimization=replace(CUT.optimization, lr=0.1)))
    wanted = replace(CUT, compute=Compute(threads=1, accumulate=2), saving=SaveOptions(checkpoint_every="1steps"))
    assert resume(tmp_path / "cut", wanted).summary.steps == 10
    (entry,) = json.loads((tmp_path / "cut" / "env.json").read_text())["resumed"]
    assert entry["settings"]["compute.accumulate"] == 2
    assert read_config(tmp_path / "cut" / "config.yaml") == wanted


def test_a_config_that_was_edited_on_the_way_is_refused(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    path = tmp_path / "cut" / "config.yaml"
    path.write_text(path.read_text().replace("\nseed: 0", "\nseed: 1"))
    with pytest.raises(UserError, match=r"settings or the data have changed.*\(seed was 0 and is 1\)"):
        resume(tmp_path / "cut")


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_a_run_is_named(there: bool, tmp_path: Path) -> None:
    folder = tmp_path if there else tmp_path / "missing"
    with pytest.raises(UserError, match="holds no run"):
        resume(folder)


def test_two_processes_never_work_on_one_run(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    with lock_folder(tmp_path / "cut"), pytest.raises(UserError, match="another process is working on the run"):
        resume(tmp_path / "cut")


def test_a_collapse_that_was_said_is_not_said_again(tmp_path: Path) -> None:
    fatal = Optimization(lr=4.0, weight_decay=0.9, momentum=0.0, warmup_epochs=0)
    doomed = replace(CUT, epochs=12, optimization=fatal)
    listener = Listener()
    with pytest.raises(PowerCutError):
        run(doomed, tmp_path / "cut", callback=AtStep(57, power_cut))
    looks = [row for row in read_journal(tmp_path / "cut" / "metrics.jsonl") if row["kind"] == "eval"]
    assert health_from_row(looks[-2]).verdict == "collapsed"
    resume(tmp_path / "cut", callback=listener)
    assert listener.heard == []


@pytest.mark.parametrize("labeled", [True, False])
def test_bad_images_are_remembered_over_a_cut(labeled: bool, tmp_path: Path) -> None:
    """With labels the judge meets them first, before the first step; without, the feed."""
    config = replace(CUT, data=f"folder:{photos(tmp_path, labeled)}", source=DataOptions(image_size=16))
    cut_off(config, tmp_path / "cut")
    record = resume(tmp_path / "cut")
    assert record.summary.bad_images == 1
    assert [row["kind"] for row in record.journal].count("bad-image") == 1
    assert_same_end(tmp_path / "cut", whole(config, tmp_path / "whole"))


def photos(home: Path, labeled: bool) -> Path:
    """A hundred pictures in a folder, and a torn one; labelled by two subfolders, or not."""
    for name in ("cat", "dog") if labeled else ("all",):
        write_folder(home / "photos" / name, good=50 if labeled else 100, bad=() if name == "dog" else ("torn.png",))
    return home / "photos"


def test_too_many_bad_images_are_refused_after_the_first_step_where_the_baseline_meets_them(tmp_path: Path) -> None:
    source = DataOptions(image_size=16, max_bad_images=0)
    evaluation = replace(CUT.evaluation, eval_every=0)
    config = replace(CUT, data=f"folder:{photos(tmp_path, labeled=True)}", source=source, evaluation=evaluation)
    with pytest.raises(UserError, match="--max-bad-images is 0") as refusal:
        run(config, tmp_path / "run")
    steps = [row["step"] for row in read_journal(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "step"]
    assert steps in ([], [1])
    printed = re.search(r"--resume (\S+) --max-bad-images (\d+)$", str(refusal.value))
    assert printed is not None
    enough = replace(config, source=replace(source, max_bad_images=int(printed[2])))
    assert resume(Path(printed[1]), enough).summary.bad_images == 1


def test_data_that_have_changed_on_the_way_are_noticed(tmp_path: Path) -> None:
    root = photos(tmp_path, labeled=False)
    config = replace(CUT, data=f"folder:{root}", source=DataOptions(image_size=16))
    cut_off(config, tmp_path / "cut")
    (root / "all" / "007.png").rename(root / "all" / "other.png")
    with pytest.raises(UserError, match=r"data have changed.*images\.t(rain|est) was"):
        resume(tmp_path / "cut")


def test_overwriting_a_run_that_is_being_worked_on_takes_nothing_away(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*")}
    with lock_folder(tmp_path / "cut"), pytest.raises(UserError, match="another process is working on the run"):
        run(CUT, tmp_path / "cut", overwrite=True)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*")} == before


def test_a_signal_while_a_checkpoint_is_read_is_not_taken_for_a_bad_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(CUT, tmp_path / "cut")
    monkeypatch.setattr(torch, "load", lambda *words, **more: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(StoppedError, match=r"SIGTERM.*up to step 6 .*--resume"):
        resume(tmp_path / "cut")
    assert [step for step, _ in checkpoints(tmp_path / "cut" / "checkpoints")] == [3, 6]


def test_a_signal_at_the_last_step_is_obeyed_before_judging(unbroken: Path, tmp_path: Path) -> None:
    with pytest.raises(StoppedError, match=r"SIGTERM after step 10\."):
        run(CUT, tmp_path / "run", callback=AtStep(10, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    assert not (tmp_path / "run" / "summary.json").exists()
    resume(tmp_path / "run")
    assert_same_end(tmp_path / "run", unbroken)


def test_a_run_cut_before_it_had_a_place_for_checkpoints_can_go_on(unbroken: Path, tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut", step=3)
    for name in ("checkpoints", "env.json", "metrics.jsonl"):
        path = tmp_path / "cut" / name
        path.rmdir() if path.is_dir() else path.unlink()
    resume(tmp_path / "cut")
    assert_same_end(tmp_path / "cut", unbroken)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("env.json", "[1]"),
        ("env.json", "{"),
        ("env.json", '{"resumed": 5}'),
        ("env.json", "[" * 100_000),
        ("summary.json", "{}"),
        ("summary.json", "[]"),
        ("config.yaml", "method: [1"),
        ("checkpoints", None),
        ("metrics.jsonl", "[1]\n" * 200),
        ("metrics.jsonl", ""),
    ],
)
def test_a_run_whose_files_were_damaged_says_so(name: str, content: str | None, tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    path = tmp_path / "cut" / name
    if content is None:
        shutil.rmtree(path)
    path.write_text(content or "")
    with pytest.raises(UserError, match=name):
        resume(tmp_path / "cut")


def test_a_run_killed_between_writing_and_pruning_keeps_two_checkpoints_after_all(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        run(CUT, tmp_path / "run", callback=AtStep(10, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    saved = tmp_path / "run" / "checkpoints"
    for step in (3, 6):
        shutil.copy(checkpoints(saved)[0][1], saved / f"step-{step:09d}.{'0' * 16}.pt")
    resume(tmp_path / "run")
    assert [step for step, _ in checkpoints(saved)] == [9, 10]


def test_without_a_usable_checkpoint_nothing_is_said_to_be_saved(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    for _, path in checkpoints(tmp_path / "cut" / "checkpoints"):
        path.write_bytes(b"torn")
    with pytest.raises(UserError, match=r"no checkpoint.*--config") as refusal:
        resume(tmp_path / "cut")
    assert "is saved" not in str(refusal.value)
    assert "--resume" not in str(refusal.value)


@pytest.mark.parametrize("key", ["seconds", "pace", "journal", "run", "scaler", "learner"])
def test_a_checkpoint_without_a_key_is_refused_by_its_name(key: str, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    state: dict[str, Any] = {name: {} for name in STATE - {"step", key}}
    save_checkpoint(tmp_path / "checkpoints", 5, state)
    with pytest.raises(UserError, match=key):
        last_state(tmp_path)


def test_a_folder_that_can_t_be_written_is_an_error_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("")
    failure = PermissionError(13, "Permission denied", str(tmp_path / "checkpoints"))
    hint = with_resume_hint(tmp_path, "train", diverged="", out_of_memory="")
    with pytest.raises(UserError, match=r"checkpoints.*Permission denied.*--resume"), hint:
        raise failure
