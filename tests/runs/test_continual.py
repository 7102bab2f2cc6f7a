"""Runs over a stream of tasks, in miniature: what is learned, cut, gone on with and appended to."""

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from phinets.config.continual import AppendedTask, ContinualConfig, ReadoutOptions, ReplayOptions, StreamOptions
from phinets.config.errors import StoppedError, UserError
from phinets.config.methods import METHODS
from phinets.config.record import ContinualRecord
from phinets.config.run import DataOptions, EvalConfig, Optimization, PretrainConfig, SaveOptions
from phinets.continual import metrics
from phinets.evaluation.encoders import load_encoder, load_learner
from phinets.runs.continual import Continual
from phinets.runs.recipes import BENCHMARKS, benchmark
from phinets.runs.resume import read_record
from phinets.runs.trainer import Silent, append, resume_stream, run, run_stream
from phinets.training.checkpoint import checkpoints, load_checkpoint
from phinets.training.journal import read_journal
from phinets.training.loop import Pace
from phinets.training.run_folder import read_config
from tests.export.helpers import exported
from tests.runs.test_pretrain import TINY, Listener, newest
from tests.runs.test_resume import AtStep, PowerCutError, assert_equal, power_cut

STREAM = ContinualConfig(
    method="x-phinet/cosine",
    backbone="resnet-tiny",
    batch=16,
    epochs_per_task=2,
    source=DataOptions(train_images=200, test_images=60, image_size=16),
    stream=StreamOptions(tasks="3x3"),
    memory=ReplayOptions(replay="mixup", buffer=24, distil_hidden=(8,)),
    learner=TINY.learner,
    optimization=Optimization(schedule="constant", warmup_epochs=0.0),
    evaluation=EvalConfig(encoder="both", eval_every=4, online_bank=60, online_queries=20, num_neighbors=5),
    reading=ReadoutOptions(readouts=("task-knn", "class-knn")),
    saving=SaveOptions(checkpoint_every="3steps"),
)
"""Three tasks of three forms, about 60 images and six steps each."""
STRATEGIES = {
    "finetune": ReplayOptions(),
    "mixup": STREAM.memory,
    "plain": replace(STREAM.memory, replay="plain"),
    "cassle": replace(STREAM.memory, replay="none", distil="cassle"),
    "cassle with mixup": replace(STREAM.memory, distil="cassle"),
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> ContinualRecord:
    return run_stream(STREAM, tmp_path_factory.mktemp("runs") / "stream")


@pytest.fixture(scope="module")
def folder(record: ContinualRecord) -> Path:
    return Path(record.folder)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than learning here; the run that `record` tells of is drawn."""
    monkeypatch.setattr("phinets.runs.continual.run_pictures", lambda record: {})


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """The finished run, to be changed."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def assert_same_end(ours: Path, theirs: Path) -> None:
    """The same weights, optimizer, memory, journal and summary, to the last bit, but for times."""
    assert read_journal(ours / "metrics.jsonl") == read_journal(theirs / "metrics.jsonl")
    kept = ("step", "learner", "optimizer", "scaler", "memory")
    assert_equal(*({k: newest(f)[k] for k in kept if k in newest(f)} for f in (ours, theirs)))
    a, b = (load_file(f / "backbone.safetensors") for f in (ours, theirs))
    assert_equal(a, b)
    one, two = (json.loads((f / "summary.json").read_text()) for f in (ours, theirs))
    for name in set(one) - {"seconds", "images_per_second", "data_wait"}:
        assert one[name] == two[name], name


def test_the_matrix_is_full_and_one_row_comes_after_each_task(record: ContinualRecord) -> None:
    ends = Continual.build(record.config).run_parts.schedule.ends
    readings = [row for row in record.journal if row["kind"] == "task-eval"]
    assert [row["step"] for row in readings[:: 2 * 2]] == [0, *ends]
    assert len(record.summary.readings) == 4
    for found in record.summary.readings:
        assert len(found.matrix) == len(found.untrained) == 3
        assert all(value is not None and 0 <= value <= 100 for row in found.matrix for value in row)


def test_the_summary_s_numbers_are_those_of_its_matrix(record: ContinualRecord) -> None:
    for found in record.summary.readings:
        a, b = np.array(found.matrix, float), np.array(found.untrained, float)
        assert found.average == pytest.approx(metrics.average(a))
        assert found.stages == pytest.approx(list(metrics.stages(a)))
        assert found.forgetting_max == pytest.approx(metrics.forgetting(a, "max"))
        assert found.forgetting_diag == pytest.approx(metrics.forgetting(a, "diag"))
        assert found.backward_transfer == pytest.approx(metrics.backward_transfer(a))
        assert found.forward_transfer == pytest.approx(metrics.forward_transfer(a, b))


def test_every_result_names_its_protocol(record: ContinualRecord) -> None:
    said = record.summary.protocol
    for word in ("mixup replay", "buffer 24", "3 tasks × 2 epochs", "constant", "seed 0", "n = 1", "UCL", "batch 16"):
        assert word in said
    assert "k=5" in record.summary.readings[0].protocol


def test_the_run_leaves_its_files_and_reads_back(record: ContinualRecord, folder: Path) -> None:
    there = {path.name for path in folder.iterdir()}
    assert {"config.yaml", "metrics.jsonl", "summary.json", "env.json", "backbone.safetensors"} <= there
    assert {"matrix.png", "tasks.png", "fast-slow.png"} <= there
    again = read_record(folder)
    assert isinstance(again, ContinualRecord)
    assert (again.summary, again.config, again.journal) == (record.summary, record.config, record.journal)


def test_the_rows_of_the_slow_encoder_are_its_own(record: ContinualRecord) -> None:
    fast, slow = (found for found in record.summary.readings if found.readout == "class-knn")
    assert (fast.encoder, slow.encoder) == ("fast", "slow")
    assert fast.untrained == slow.untrained
    assert fast.matrix != slow.matrix


def test_a_method_without_a_slow_encoder_is_read_out_on_its_fast_one(tmp_path: Path) -> None:
    found = run_stream(replace(STREAM, method="simsiam", epochs_per_task=1), tmp_path / "run")
    assert {one.encoder for one in found.summary.readings} == {"fast"}
    with pytest.raises(UserError, match=r"'simsiam' has no slow encoder.*x-phinet"):
        replace(STREAM, method="simsiam", evaluation=replace(STREAM.evaluation, encoder="slow"))


def test_a_stream_of_one_task_is_an_ordinary_run(tmp_path: Path) -> None:
    config = replace(
        STREAM, memory=ReplayOptions(), stream=StreamOptions(tasks="1x10"), source=TINY.source, learner=TINY.learner
    )
    run_stream(config, tmp_path / "stream")
    names = ("method", "backbone", "views", "batch", "source", "learner", "optimization", "evaluation", "saving")
    same = {name: getattr(config, name) for name in names}
    run(PretrainConfig(epochs=2, **same), tmp_path / "run")
    ours, theirs = (load_file(tmp_path / name / "backbone.safetensors") for name in ("stream", "run"))
    assert_equal(ours, theirs)


def test_what_comes_later_changes_nothing_about_what_came_before(folder: Path, tmp_path: Path) -> None:
    longer = replace(STREAM, keep_tasks=True)
    shorter = replace(longer, stream=StreamOptions(tasks="2x3"))
    ends = Continual.build(longer).run_parts.schedule.ends
    run_stream(longer, tmp_path / "longer")
    run_stream(shorter, tmp_path / "shorter")
    states = [dict(checkpoints(tmp_path / name / "checkpoints"))[ends[1]] for name in ("longer", "shorter")]
    a, b = map(load_checkpoint, states)
    for part in ("learner", "optimizer", "replay"):
        assert_equal(a[part], b[part])
    assert [step for step, _ in checkpoints(tmp_path / "longer" / "checkpoints")][:2] == list(ends[:2])


def test_readings_in_the_middle_of_a_task_leave_what_is_learned_alone(folder: Path, tmp_path: Path) -> None:
    often = replace(STREAM, reading=replace(STREAM.reading, evals_per_task=3))
    found = run_stream(often, tmp_path / "often")
    assert_equal(load_file(folder / "backbone.safetensors"), load_file(tmp_path / "often" / "backbone.safetensors"))
    shares = [row["share"] for row in found.journal if row["kind"] == "task-eval"][:: 2 * 2]
    assert len(shares) == 1 + 3 * 3
    assert shares[3::3] == [1.0, 1.0, 1.0]
    assert all(0.2 < share < 0.8 for i, share in enumerate(shares[1:]) if i % 3 != 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_cut_in_the_middle_of_a_task_ends_as_if_it_had_not_been(strategy: str, tmp_path: Path) -> None:
    config = replace(STREAM, memory=STRATEGIES[strategy], epochs_per_task=1, stream=StreamOptions(tasks="2x3"))
    end = Continual.build(config).run_parts.schedule.ends[0]
    cut = (end // 3 + 1) * 3  # a checkpoint is due after it, and not yet written
    with pytest.raises(PowerCutError):
        run_stream(config, tmp_path / "cut", callback=AtStep(cut, power_cut))
    assert end <= newest(tmp_path / "cut")["step"] < cut
    resume_stream(tmp_path / "cut")
    run_stream(config, tmp_path / "whole")
    assert_same_end(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_learner_learns_a_stream(name: str, tmp_path: Path) -> None:
    source = replace(STREAM.source, train_images=120)
    config = replace(STREAM, method=name, epochs_per_task=1, stream=StreamOptions(tasks="2x3"), source=source)
    found = run_stream(config, tmp_path / "run").summary
    assert None not in [value for row in found.readings[0].matrix for value in row]
    assert int(newest(tmp_path / "run")["learner"].get("task", 1)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["byol", "rm-simsiam", "phinet", "barlow-twins", "moco-v2"])
def test_every_family_of_learners_goes_on_with_a_stream(name: str, tmp_path: Path) -> None:
    config = replace(STREAM, method=name, epochs_per_task=1, stream=StreamOptions(tasks="2x3"))
    with pytest.raises(PowerCutError):
        run_stream(config, tmp_path / "cut", callback=AtStep(3, power_cut))
    resume_stream(tmp_path / "cut")
    run_stream(config, tmp_path / "whole")
    assert_same_end(tmp_path / "cut", tmp_path / "whole")


def test_a_run_cut_while_it_is_read_out_between_two_tasks_ends_as_if_it_had_not_been(
    folder: Path, tmp_path: Path
) -> None:
    class AtReading(AtStep):
        def on_rows(self, rows: Any) -> None:
            if rows and rows[0].get("task") == 2:
                power_cut()

    with pytest.raises(PowerCutError):
        run_stream(STREAM, tmp_path / "cut", callback=AtReading(-1, power_cut))
    assert newest(tmp_path / "cut")["step"] == Continual.build(STREAM).run_parts.schedule.ends[1]
    resume_stream(tmp_path / "cut")
    assert_same_end(tmp_path / "cut", folder)


def test_a_signal_in_the_middle_of_a_task_keeps_the_step_and_tells_the_way_on(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    with pytest.raises(StoppedError, match=r"SIGTERM after step 10\..*phinets continual --resume"):
        run_stream(STREAM, place, callback=AtStep(9, lambda: os.kill(os.getpid(), signal.SIGTERM)))
    resume_stream(place)
    assert_same_end(place, folder)


def test_rm_simsiam_is_told_of_every_task(tmp_path: Path) -> None:
    run_stream(replace(STREAM, method="rm-simsiam", epochs_per_task=1), tmp_path / "run")
    assert int(newest(tmp_path / "run")["learner"]["task"]) == 2


def test_cassle_s_frozen_encoder_is_the_one_before_the_last_task(tmp_path: Path) -> None:
    config = replace(STREAM, memory=STRATEGIES["cassle"], keep_tasks=True, epochs_per_task=1)
    run_stream(config, tmp_path / "run")
    kept = dict(checkpoints(tmp_path / "run" / "checkpoints"))
    ends = Continual.build(config).run_parts.schedule.ends
    before, last = (load_checkpoint(kept[end])["learner"] for end in ends[1:])
    frozen = {k.split("frozen.")[1]: v for k, v in last.items() if k.startswith("distiller.frozen.")}
    assert_equal(frozen, {k[2:]: v for k, v in before.items() if k.startswith("f.")})


def test_the_encoders_of_a_stream_are_found_like_those_of_any_run(folder: Path) -> None:
    kept = load_file(folder / "backbone-slow.safetensors")
    assert_equal(dict(load_encoder(folder, "slow").module.state_dict()), kept)
    assert load_learner(folder)[2] == newest(folder)["step"]


# A task that comes later


def arrays(place: Path, seed: int, size: int = 16, n: int = 60) -> str:
    """A small labelled data set of two classes as npz."""
    chance = np.random.default_rng(seed)
    labels = chance.integers(0, 2, n)
    images = chance.integers(0, 120, (n, size, size, 3)) + 100 * labels[:, None, None, None]
    np.savez(place, X=images.astype(np.uint8), Y=labels)
    return f"npz:{place}"


@pytest.fixture
def places(tmp_path: Path) -> list[str]:
    return [arrays(tmp_path / f"{name}.npz", seed) for seed, name in enumerate(("one", "two", "three"))]


@pytest.mark.parametrize("memory", ["mixup", pytest.param("cassle", marks=pytest.mark.slow)])
def test_a_task_appended_later_is_learned_as_if_it_had_been_planned(
    places: list[str], memory: str, tmp_path: Path
) -> None:
    config = replace(STREAM, memory=STRATEGIES[memory], stream=StreamOptions(task_data=tuple(places[:2])))
    run_stream(config, tmp_path / "later")
    later = append(tmp_path / "later", AppendedTask(data=places[2], epochs=2))
    planned = run_stream(replace(config, stream=StreamOptions(task_data=tuple(places))), tmp_path / "planned")
    assert_equal(*({k: newest(Path(r.folder))[k] for k in ("step", "learner", "optimizer")} for r in (later, planned)))
    if memory == "mixup":
        assert_equal(*(newest(Path(r.folder))["replay"] for r in (later, planned)))
    for ours, theirs in zip(later.summary.readings, planned.summary.readings, strict=True):
        assert ours.matrix[1:] == theirs.matrix[1:], "its column before it came is there from the append on"
        assert ours.matrix[0] == (*theirs.matrix[0][:2], None)
        assert (ours.average, ours.untrained) == (theirs.average, theirs.untrained)
        assert ours.forward_transfer == theirs.forward_transfer


def test_appending_keeps_the_older_summary_and_encoder_and_can_be_repeated(places: list[str], tmp_path: Path) -> None:
    config = replace(STREAM, stream=StreamOptions(task_data=(places[0],)), epochs_per_task=1)
    first = run_stream(config, tmp_path / "run")
    older = load_file(tmp_path / "run" / "backbone.safetensors")
    for n, place in enumerate(places[1:], 1):
        found = append(tmp_path / "run", AppendedTask(data=place, epochs=1))
        assert len(found.summary.tasks) == n + 1
    kept = json.loads((tmp_path / "run" / "summary-before-append-1.json").read_text())
    assert tuple(kept["tasks"]) == first.summary.tasks
    assert (tmp_path / "run" / "summary-before-append-2.json").exists()
    kept_at = dict(checkpoints(tmp_path / "run" / "checkpoints"))[first.summary.steps]
    assert_equal(older, dict(load_encoder(kept_at).module.state_dict()))
    run_stream(config, tmp_path / "run", overwrite=True)
    assert not list((tmp_path / "run").glob("summary-before-*"))


@pytest.mark.slow
def test_a_torn_last_checkpoint_is_told_and_the_one_before_leads_to_the_same_end(
    places: list[str], tmp_path: Path
) -> None:
    config = replace(STREAM, stream=StreamOptions(task_data=(places[0],)))
    for name in ("torn", "whole"):
        run_stream(config, tmp_path / name)
    newer = checkpoints(tmp_path / "torn" / "checkpoints")[-1][1]
    newer.write_bytes(newer.read_bytes()[:-100])
    listener = Listener()
    append(tmp_path / "torn", AppendedTask(data=places[1], epochs=1), callback=listener)
    assert any("incomplete or altered" in on_message for on_message in listener.heard)
    append(tmp_path / "whole", AppendedTask(data=places[1], epochs=1))
    assert_same_end(tmp_path / "torn", tmp_path / "whole")


@pytest.mark.slow
def test_an_append_that_was_cut_at_once_goes_on(places: list[str], tmp_path: Path) -> None:
    config = replace(STREAM, stream=StreamOptions(task_data=tuple(places[:2])), epochs_per_task=1)
    for name in ("cut", "whole"):
        run_stream(config, tmp_path / name)
    total = Continual.build(config).run_parts.schedule.total
    with pytest.raises(PowerCutError):
        append(tmp_path / "cut", AppendedTask(data=places[2], epochs=1), callback=After(total))
    assert newest(tmp_path / "cut")["step"] == total
    resume_stream(tmp_path / "cut")
    append(tmp_path / "whole", AppendedTask(data=places[2], epochs=1))
    assert_same_end(tmp_path / "cut", tmp_path / "whole")


class After(Silent):
    """Cuts the power when it hears of a later step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        if row["step"] > self.step:
            power_cut()


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def bad_appends(copy: Path, tmp_path: Path) -> Iterator[tuple[str, AppendedTask, ContinualConfig | None]]:
    good = arrays(tmp_path / "good.npz", 5)
    yield "32 × 32", AppendedTask(data=arrays(tmp_path / "large.npz", 6, size=32), epochs=1), None
    yield "no-such-file", AppendedTask(data="npz:no-such-file.npz", epochs=1), None
    yield (
        "10 training images.*batch of this run is 16",
        AppendedTask(data=arrays(tmp_path / "few.npz", 7, n=12), epochs=1),
        None,
    )
    other = replace(STREAM, source=replace(STREAM.source, image_size=32))
    yield "image_size was 16 and is 32", AppendedTask(data=good, epochs=1), other


@pytest.mark.parametrize("case", range(4))
def test_what_can_t_be_appended_is_refused_and_nothing_is_lost(case: int, copy: Path, tmp_path: Path) -> None:
    words, task, wanted = list(bad_appends(copy, tmp_path))[case]
    before = contents(copy)
    with pytest.raises(UserError, match=words):
        append(copy, task, wanted)
    assert contents(copy) == before


def test_nothing_is_appended_to_a_run_that_is_not_finished(copy: Path, tmp_path: Path) -> None:
    (copy / "summary.json").unlink()
    with pytest.raises(UserError, match=r"phinets continual --resume"):
        append(copy, AppendedTask(data=arrays(tmp_path / "good.npz", 5), epochs=1))


def test_folders_without_labels_are_learned_and_nothing_is_read_out(tmp_path: Path) -> None:
    from tests.data.test_files import write_folder

    for name in ("a", "b"):
        write_folder(tmp_path / name, 24)
    data = tuple(f"folder:{tmp_path / name}" for name in ("a", "b"))
    config = replace(STREAM, stream=StreamOptions(task_data=data), epochs_per_task=1)
    found = run_stream(config, tmp_path / "run").summary
    assert found.tasks == ("a", "b")
    assert found.readings[0].matrix == ((None, None), (None, None))
    assert found.readings[0].average is None


def test_one_new_class_is_asked_among_all_that_have_come(tmp_path: Path) -> None:
    from tests.data.test_files import write_folder

    for name in ("pets/cat", "pets/dog", "new/eel"):
        write_folder(tmp_path / name, 24)
    config = replace(STREAM, stream=StreamOptions(task_data=(f"folder:{tmp_path / 'pets'}",)), epochs_per_task=1)
    run_stream(config, tmp_path / "run")
    found = append(tmp_path / "run", AppendedTask(data=f"folder:{tmp_path / 'new'}", epochs=1)).summary
    asked = {one.readout: one.matrix[-1] for one in found.readings}
    assert [value is None for value in asked["class-knn"]] == [False, False]
    assert [value is None for value in asked["task-knn"]] == [False, True]


# The benchmarks


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_is_a_value_that_reads_back(name: str, tmp_path: Path) -> None:
    from phinets.training.run_folder import write_config

    write_config(tmp_path, benchmark(name))
    assert read_config(tmp_path / "config.yaml") == benchmark(name)


def test_the_split_cifars_follow_ucl() -> None:
    ten, hundred, million = (benchmark(f"split-cifar{name}") for name in ("10", "100", "5m"))
    assert [one.stream.shape for one in (ten, hundred, million)] == [None, (20, 5), None], "None: two classes each"
    assert [one.epochs_per_task for one in (ten, hundred, million)] == [200, 200, 1]
    for one in (ten, hundred, million):
        rate = one.optimization
        assert (one.batch, rate.lr, rate.momentum, rate.weight_decay, rate.schedule) == (
            256,
            0.03,
            0.9,
            5e-4,
            "constant",
        )
        assert (one.views, one.backbone, one.evaluation.num_neighbors, rate.warmup_epochs) == (
            "ucl",
            "resnet18-cifar",
            200,
            0,
        )


def test_a_task_smaller_than_a_batch_is_named() -> None:
    with pytest.raises(UserError, match=r"the batch of 128 is larger than the data: task 1 \("):
        Continual.build(replace(STREAM, batch=128, memory=ReplayOptions()))


def test_torch_s_generator_is_neither_used_nor_moved(folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    run_stream(replace(STREAM, epochs_per_task=1), tmp_path / "run")
    assert torch.equal(before, torch.get_rng_state())


def test_the_model_card_of_a_stream_s_encoder_tells_its_own_readouts(record: ContinualRecord, tmp_path: Path) -> None:
    exported(Path(record.folder), "safetensors", tmp_path / "slow.safetensors", encoder="slow")
    on_message = (tmp_path / "slow.safetensors.md").read_text()
    for found in record.summary.readings:
        assert (f"| {found.readout} | {found.average:.2f} | {found.forgetting_max:.2f} |" in on_message) == (
            found.encoder == "slow"
        )
    assert "raw pixels" not in on_message
    assert all(task in on_message for task in record.summary.tasks)
