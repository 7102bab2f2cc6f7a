"""A whole run, in miniature."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.methods import METHODS, LearnerOptions
from phinets.config.run import DataOptions, EvalConfig, Optimization, PretrainConfig, SaveOptions
from phinets.runs.monitor import diagnosis
from phinets.runs.setup import resolve_config
from phinets.runs.trainer import Silent, run
from phinets.training.checkpoint import newest_checkpoint
from phinets.training.journal import read_journal
from phinets.training.loop import DivergedError
from phinets.training.run_folder import read_config
from phinets.views import make_views

TINY = PretrainConfig(
    backbone="resnet-tiny",
    epochs=2,
    batch=16,
    source=DataOptions(train_images=64, test_images=40, image_size=16),
    learner=LearnerOptions(projector=(16, 16), h_hidden=(8,), g_hidden=(8,), queue=32),
    optimization=Optimization(warmup_epochs=0.5),
    evaluation=EvalConfig(eval_every=3, online_bank=64, online_queries=20, num_neighbors=5),
    saving=SaveOptions(checkpoint_every="3steps"),
)
FILES = {
    "config.yaml",
    "metrics.jsonl",
    "checkpoints",
    "backbone.safetensors",
    "backbone-slow.safetensors",
    "env.json",
    "curves.png",
    "summary.json",
}


def newest(folder: Path) -> dict[str, Any]:
    """The newest checkpoint of a run."""
    state, refused = newest_checkpoint(folder / "checkpoints")
    assert state is not None
    assert not refused
    return state


class Listener(Silent):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_message(self, text: str) -> None:
        self.heard.append(text)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    run(TINY, folder)
    return folder


def test_a_run_leaves_everything_it_promises(finished: Path) -> None:
    assert {p.name for p in finished.iterdir()} == FILES
    summary = json.loads((finished / "summary.json").read_text())
    promised = {"knn", "linear", "knn_untrained", "knn_pixels", "verdict", "seconds", "images_per_second", "data_wait"}
    assert promised <= set(summary)
    assert all(0 <= summary[key] <= 100 for key in ("knn", "linear", "knn_untrained", "knn_pixels"))
    assert 0 <= summary["data_wait"] <= 1
    assert summary["beats_untrained"] == (summary["knn"] > summary["knn_untrained"])
    environment = json.loads((finished / "env.json").read_text())
    assert {"packages", "commit", "seed", "device"} <= set(environment)


def test_the_journal_has_every_step_once_and_a_look_when_due(finished: Path) -> None:
    rows = read_journal(finished / "metrics.jsonl")
    assert [row["step"] for row in rows if row["kind"] == "step"] == list(range(1, 9))
    assert [row["step"] for row in rows if row["kind"] == "eval"] == [3, 6, 8]
    assert all({"loss", "sim1", "sim2", "lr"} <= set(row) for row in rows if row["kind"] == "step")


def test_the_config_file_repeats_the_run(finished: Path, tmp_path: Path) -> None:
    config = read_config(finished / "config.yaml")
    assert config == TINY
    run(config, tmp_path / "again")
    assert read_journal(tmp_path / "again" / "metrics.jsonl") == read_journal(finished / "metrics.jsonl")
    ours, theirs = (load_file(folder / "backbone.safetensors") for folder in (finished, tmp_path / "again"))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_places_are_kept_in_full_so_that_a_run_goes_on_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = resolve_config(replace(TINY, data="folder:photos", source=DataOptions(root="data")))
    assert config.data == f"folder:{tmp_path / 'photos'}"
    assert config.source.root == str(tmp_path / "data")
    assert resolve_config(config) == config


def test_another_seed_is_another_run(finished: Path, tmp_path: Path) -> None:
    run(replace(TINY, seed=1), tmp_path / "other")
    assert read_journal(tmp_path / "other" / "metrics.jsonl") != read_journal(finished / "metrics.jsonl")


def test_the_exported_backbone_loads_strictly_and_is_the_checkpoint_s(finished: Path) -> None:
    weights = load_file(finished / "backbone.safetensors")
    backbone("resnet-tiny").load_state_dict(weights, strict=True)
    state = newest(finished)
    assert state["step"] == 8
    for name, value in weights.items():
        assert torch.equal(value, state["learner"][f"f.backbone.{name}"]), name


def test_the_global_generator_is_neither_used_nor_moved(tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    run(TINY, tmp_path / "run")
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", METHODS)
def test_every_method_makes_a_whole_run(name: str, tmp_path: Path) -> None:
    evaluation = replace(TINY.evaluation, eval_every=0)
    record = run(replace(TINY, method=name, epochs=1, evaluation=evaluation), tmp_path / "run")
    assert record.summary.steps == 4
    assert [row["kind"] for row in record.journal] == ["step", "baseline", *["step"] * 3, "eval", "score"]


def test_an_older_run_is_left_alone_unless_told_otherwise(finished: Path) -> None:
    before = (finished / "summary.json").read_text()
    with pytest.raises(UserError, match="--overwrite"):
        run(TINY, finished)
    assert (finished / "summary.json").read_text() == before


def test_overwriting_replaces_the_run_and_nothing_else(tmp_path: Path) -> None:
    run(TINY, tmp_path / "run")
    (tmp_path / "run" / "my-note").write_text("mine")
    run(replace(TINY, seed=3), tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "my-note").read_text() == "mine"
    assert len(read_journal(tmp_path / "run" / "metrics.jsonl")) == 13
    assert read_config(tmp_path / "run" / "config.yaml").seed == 3


def test_a_folder_with_something_else_in_it_is_never_touched(tmp_path: Path) -> None:
    for name in ("thesis.tex", "config.yaml"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="--out"):
        run(TINY, tmp_path, overwrite=True)
    assert {p.read_text() for p in tmp_path.iterdir()} == {"mine"}
    assert len(list(tmp_path.iterdir())) == 2


def test_an_empty_folder_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(replace(TINY, epochs=1), Path("."))
    assert (tmp_path / "summary.json").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"batch": 65}, "batch of 65 is larger than the data"),
        ({"data": "shape"}, "Did you mean 'shapes'"),
        ({"backbone": "resnet-tinny"}, "Did you mean 'resnet-tiny'"),
    ],
)
def test_what_can_t_be_run_leaves_no_folder(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=says):
        run(replace(TINY, **change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_place_that_can_t_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="can't be written"):
        run(TINY, tmp_path / "file" / "run")


def test_divergence_stops_the_run_and_keeps_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The views of the sixth step are made of NaN; the look after the third has left a checkpoint."""

    def poisoned(images: torch.Tensor, *rest: Any, **options: Any) -> Any:
        poisoned.calls += 1  # type: ignore[attr-defined]
        views = make_views(images, *rest, **options)
        return views if poisoned.calls < 6 else views.map(lambda v: v * float("nan"))  # type: ignore[attr-defined]

    poisoned.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr("phinets.training.loader.make_views", poisoned)
    with pytest.raises(DivergedError, match=r"step 6.*up to step 3 .*--lr"):
        run(TINY, tmp_path / "run")
    state = newest(tmp_path / "run")
    assert state["step"] == 3
    assert all(torch.isfinite(v).all() for v in state["learner"].values())
    assert [row["step"] for row in read_journal(tmp_path / "run" / "metrics.jsonl") if row["kind"] == "step"][-1] == 5


def test_weights_that_are_no_numbers_are_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient of NaN at the sixth step, where a look is due: its loss is still a number, the weights are not."""
    from phinets.runtime.devices import Precision

    def poisoned(self: Precision, loss: torch.Tensor) -> None:
        steps.append(1)
        (loss * (float("nan") if len(steps) == 6 else 1.0)).backward()

    steps: list[int] = []
    monkeypatch.setattr(Precision, "backward", poisoned)
    with pytest.raises(DivergedError, match="weights are not finite after step 6"):
        run(TINY, tmp_path / "run")
    state = newest(tmp_path / "run")
    assert state["step"] == 3
    assert all(torch.isfinite(v).all() for v in state["learner"].values())


def test_a_collapse_is_said_once_with_its_cause(tmp_path: Path) -> None:
    """Weights that decay to nothing give everybody the same code."""
    listener = Listener()
    doomed = replace(
        TINY, epochs=12, optimization=Optimization(lr=4.0, weight_decay=0.9, momentum=0.0, warmup_epochs=0)
    )
    record = run(doomed, tmp_path / "run", callback=listener)
    assert record.summary.verdict == "collapsed"
    assert len(listener.heard) == 1
    assert "weight decay of 0.9" in listener.heard[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "phinet/cosine-no-stop-gradient"}, "stop-gradient"),
        ({"learner": LearnerOptions(beta=1.0)}, "--beta 0.99"),
        ({"optimization": Optimization(constant_h=False, warmup_epochs=0)}, "--constant-h"),
        ({"batch": 16}, "--batch 128"),
        ({}, "half of each"),
    ],
)
def test_the_diagnosis_names_what_is_unusual(change: dict[str, Any], says: str) -> None:
    assert says in diagnosis(replace(TINY, **{"batch": 256, **change}), "collapsed", 0.01, 1.0)


def test_a_run_of_one_step_has_its_baselines_too(tmp_path: Path) -> None:
    source = replace(TINY.source, train_images=TINY.batch)
    record = run(replace(TINY, epochs=1, source=source), tmp_path / "run")
    assert [row["kind"] for row in record.journal] == ["baseline", "step", "eval", "score"]


def test_a_figure_that_can_t_be_drawn_is_a_message_and_the_run_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(record: object) -> bytes:
        raise RuntimeError("no font")

    monkeypatch.setattr("phinets.runs.pretrain.curves", fail)
    listener = Listener()
    record = run(replace(TINY, epochs=1), tmp_path / "run", callback=listener)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["knn"] == record.summary.knn
    assert any("no font" in text for text in listener.heard)
