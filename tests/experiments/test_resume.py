"""A run that was cut ends as if it had not been."""

import json
import os
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
from phinets.config.run import Compute, DataOptions, Optimisation, RunConfig, Saving
from phinets.engine.checkpoint import checkpoints
from phinets.engine.journal import read_journal
from phinets.engine.loop import Pace
from phinets.experiments.folder import locked
from phinets.experiments.meter import health_of
from phinets.experiments.run import resume, run
from phinets.experiments.watching import Silent
from tests.experiments.test_run import TINY, Listener, newest

CUT = replace(TINY, source=replace(TINY.source, train_images=80))
"""Two epochs of five steps, with a checkpoint after steps 3, 6, 9 and 10."""


class PowerCutError(Exception):
    pass


class AtStep(Silent):
    """Does something when it hears of a step."""

    def __init__(self, step: int, act: Any) -> None:
        self.step, self.act = step, act

    def stepped(self, row: Mapping[str, Any], pace: Pace) -> None:
        if row["step"] == self.step:
            self.act()


def power_cut() -> None:
    raise PowerCutError


def cut_off(config: RunConfig, folder: Path, step: int = 9) -> None:
    """A run that dies when step 9 is in the journal and its checkpoint is not yet written."""
    with pytest.raises(PowerCutError):
        run(config, folder, watcher=AtStep(step, power_cut))


def whole(config: RunConfig, folder: Path) -> Path:
    run(config, folder)
    return folder


def assert_same_end(ours: Path, theirs: Path) -> None:
    """The same weights, optimiser, journal and summary, to the last bit, but for times."""
    assert read_journal(ours / "metrics.jsonl") == read_journal(theirs / "metrics.jsonl")
    a, b = (load_file(folder / "backbone.safetensors") for folder in (ours, theirs))
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert_equal(*({k: newest(f)[k] for k in ("step", "learner", "optimiser", "scaler")} for f in (ours, theirs)))
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
        run(CUT, folder, watcher=AtStep(3, lambda: os.kill(os.getpid(), number)))
    assert left.value.exit_code == 128 + number
    assert signal.getsignal(number) is before
    assert newest(folder)["step"] == 4
    resume(folder)
    assert_same_end(folder, unbroken)


def test_a_second_interrupt_is_obeyed_at_once(unbroken: Path, tmp_path: Path) -> None:
    def twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(StoppedError, match=r"at once by SIGINT.*up to step 3 is kept"):
        run(CUT, tmp_path / "run", watcher=AtStep(6, twice))
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
    resume(folder, watcher=listener)
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
    with pytest.raises(UserError, match=r"optimisation\.lr was 0.03"):
        resume(tmp_path / "cut", replace(CUT, optimisation=replace(CUT.optimisation, lr=0.1)))
    wanted = replace(CUT, compute=Compute(threads=1, accumulate=2), saving=Saving(checkpoint_every="1steps"))
    assert resume(tmp_path / "cut", wanted).summary.steps == 10


def test_a_config_that_was_edited_on_the_way_is_refused(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    path = tmp_path / "cut" / "config.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    with pytest.raises(UserError, match=r"config\.yaml' was changed.*seed was 0 and is 1"):
        resume(tmp_path / "cut")


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_a_run_is_named(there: bool, tmp_path: Path) -> None:
    folder = tmp_path if there else tmp_path / "missing"
    with pytest.raises(UserError, match="holds no run"):
        resume(folder)


def test_two_processes_never_work_on_one_run(tmp_path: Path) -> None:
    cut_off(CUT, tmp_path / "cut")
    with locked(tmp_path / "cut"), pytest.raises(UserError, match="another process is working on the run"):
        resume(tmp_path / "cut")


def test_a_collapse_that_was_said_is_not_said_again(tmp_path: Path) -> None:
    fatal = Optimisation(lr=4.0, weight_decay=0.9, momentum=0.0, warmup_epochs=0)
    doomed = replace(CUT, epochs=12, optimisation=fatal)
    listener = Listener()
    with pytest.raises(PowerCutError):
        run(doomed, tmp_path / "cut", watcher=AtStep(57, power_cut))
    looks = [row for row in read_journal(tmp_path / "cut" / "metrics.jsonl") if row["kind"] == "look"]
    assert health_of(looks[-2]).verdict == "collapsed"
    resume(tmp_path / "cut", watcher=listener)
    assert listener.heard == []


def test_bad_images_are_remembered_over_a_cut(tmp_path: Path) -> None:
    from tests.data.test_files import write_folder

    data = write_folder(tmp_path / "photos", good=100, bad=("torn.png",))
    config = replace(CUT, data=f"folder:{data}", source=DataOptions(image_size=16))
    cut_off(config, tmp_path / "cut")
    record = resume(tmp_path / "cut")
    assert record.summary.bad_images == 1
    assert_same_end(tmp_path / "cut", whole(config, tmp_path / "whole"))
