"""`phinets eval`, as a person at a keyboard meets it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision

from phinets.cli.eval import ACTIONS
from phinets.config.record import RunRecord
from tests.cli.test_main import said
from tests.data import making

Capture = pytest.CaptureFixture[str]
ON_CPU = ["--device", "cpu", "--json"]


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_help_with_an_example(action: str, capsys: Capture) -> None:
    code, out, _ = said(["eval", action, "--help"], capsys)
    assert code == 0
    assert f"Example: phinets eval {action}" in out
    assert "--json" in out


def test_knn_and_linear_repeat_the_summary_and_say_their_protocol(
    miniature: RunRecord,
    run_folder: Path,
    capsys: Capture,
) -> None:
    for judgement in ("knn", "linear"):
        code, out, _ = said(["eval", judgement, str(run_folder), *ON_CPU], capsys)
        document = json.loads(out)
        assert code == 0
        assert document["accuracy"] == getattr(miniature.summary, judgement)
        assert document["bank"] == 96
        assert document["queries"] == 50
        assert "bank of 96 training images, all 50 test images" in document["protocol"]
    shown = said(["eval", "knn", str(run_folder), "--encoder", "slow", "--device", "cpu"], capsys)[1]
    assert f"knn {miniature.summary.knn_slow:.2f} %" in shown
    assert "slow encoder of x-phinet" in shown
    assert "k=7, T=0.1" in shown


def test_the_two_probes_are_always_named(run_folder: Path, capsys: Capture) -> None:
    words = ["eval", "linear", str(run_folder), *ON_CPU]
    cached = json.loads(said(words, capsys)[1])
    paper = json.loads(said([*words, "--probe", "paper", "--epochs", "2", "--rates", "1", "30"], capsys)[1])
    assert (cached["probe"], paper["probe"]) == ("cached", "paper")
    assert "linear probe `cached`: logistic regression" in cached["protocol"]
    assert "linear probe `paper`: SGD on augmented views" in paper["protocol"]
    assert set(paper["held_out"]) == {"1.0", "30.0"}
    assert paper["rate"] == max((1.0, 30.0), key=lambda rate: paper["held_out"][str(rate)])


def test_fine_tuning_on_some_labels_stands_beside_fresh_weights(run_folder: Path, capsys: Capture) -> None:
    words = ["eval", "finetune", str(run_folder), "--labels", "10%", "--epochs", "2", "--scratch", *ON_CPU]
    document = json.loads(said(words, capsys)[1])
    assert {"accuracy", "scratch", "labels", "bank"} <= set(document)
    assert document["bank"] <= 20
    assert "10% of the labels (seed 0)" in document["protocol"]
    assert json.loads(said(words, capsys)[1]) == document  # and again the same


def test_kept_features_are_judged_as_the_encoder_was(run_folder: Path, tmp_path: Path, capsys: Capture) -> None:
    kept = tmp_path / "kept.npz"
    assert said(["eval", "features", str(run_folder), "--out", str(kept), *ON_CPU], capsys)[0] == 0
    by_run = json.loads(said(["eval", "knn", str(run_folder), *ON_CPU], capsys)[1])
    by_files = json.loads(said(["eval", "knn", str(kept), *ON_CPU], capsys)[1])
    assert by_files["accuracy"] == by_run["accuracy"]
    assert by_files["k"] == 7
    code, out, _ = said(["eval", "features", str(run_folder), "--out", str(kept), *ON_CPU], capsys)
    assert code == 2
    assert "already there" in json.loads(out)["error"]


def test_health_tells_every_measure_of_a_run(run_folder: Path, capsys: Capture) -> None:
    document = json.loads(said(["eval", "health", str(run_folder), *ON_CPU], capsys)[1])
    assert {"spread", "effective_rank", "alignment", "spectrum_codes", "stable_rank_g2", "slow_cosine"} <= set(document)
    assert {"code_rms", "sim2_gradient_share"} <= set(document)
    shown = said(["eval", "health", str(run_folder), "--device", "cpu"], capsys)[1]
    assert f"the codes are {document['verdict']}" in shown
    assert "stable rank g2" in shown


@pytest.mark.slow
def test_a_torchvision_state_dict_is_judged(tmp_path: Path, capsys: Capture) -> None:
    torch.save(torchvision.models.resnet18(weights=None).state_dict(), tmp_path / "r.pth")
    sizes = ["--bank", "40", "--test-images", "20", "--num-neighbors", "3", "--image-size", "64"]
    words = ["--backbone", "resnet18", "--data", "shapes", *sizes]
    code, out, err = said(["eval", "knn", str(tmp_path / "r.pth"), *words, *ON_CPU], capsys)
    assert code == 0, err
    assert json.loads(out)["backbone"] == "resnet18"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["knn", "nowhere"], "there is no file 'nowhere'"),
        (["knn", "RUN", "--num-neighbors", "500"], "k is 500, but the bank holds 96 images"),
        (["knn", "RUN", "--num-neighbors", "0"], "num_neighbors is 0"),
        (["knn", "RUN", "--temperature", "0"], "temperature is 0.0"),
        (["knn", "RUN", "--data", "folder:pictures"], "the training images have no labels in"),
        (["linear", "RUN", "--classes", "0"], "all of one class"),
        (["linear", "RUN", "--rates", "3"], "--probe paper"),
        (["linear", "RUN", "--probe", "paper", "--rates", "3", "3"], "different numbers"),
        (["linear", "RUN", "--probe", "paper", "--epochs", "0"], "epochs is 0"),
        (["linear", "no-labels.npz"], "'no-labels.npz' has no labels"),
        (["knn", "nan.npz", "--num-neighbors", "2"], "not all finite numbers"),
        (["linear", "nan.npz"], "not all finite numbers"),
        (["finetune", "nan.npz"], "needs images"),
        (["finetune", "RUN", "--labels", "none"], "e.g. 1% or 10%"),
        (["finetune", "RUN", "--lr", "-1"], "lr is -1.0"),
        (["knn", "RUN/backbone.safetensors"], "--data"),
        (["knn", "RUN/backbone.safetensors", "--backbone", "resnet18", "--data", "shapes"], "missing"),
        (["health", "RUN/backbone.safetensors"], "run folder"),
        (["health", "RUN", "--images", "1"], "images is 1"),
        (["vote", "RUN"], "there is no action of `phinets eval` called 'vote'"),
    ],
)
def test_a_mistake_gets_one_paragraph_and_exit_code_2(
    words: list[str],
    says: str,
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run_folder, "RUN")
    for i in range(12):
        making.save(Path("pictures") / f"{i}.png")
    features, splits = np.full((6, 2), np.nan), np.array(["train"] * 4 + ["test"] * 2)
    np.savez("no-labels.npz", features=features, splits=splits)
    np.savez("nan.npz", features=features, splits=splits, labels=np.arange(6) % 2)
    before = sorted(Path.cwd().rglob("*"))
    code, out, err = said(["eval", *words], capsys)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(Path.cwd().rglob("*")) == before


def test_an_encoder_that_gives_no_feature_vectors_is_refused(
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("maps.py").write_text("import torch\ndef maps():\n    return torch.nn.Conv2d(3, 4, 3)\n")
    torch.save(torch.nn.Conv2d(3, 4, 3).state_dict(), "w.pth")
    code, _, err = said(["eval", "knn", "w.pth", "--backbone", "maps.maps", "--data", "shapes", *ON_CPU], capsys)
    assert code == 2
    assert "(2, 4, 30, 30)" in err


def test_a_bank_smaller_than_the_run_s_k_votes_as_a_whole(run_folder: Path, capsys: Capture) -> None:
    document = json.loads(said(["eval", "knn", str(run_folder), "--bank", "5", *ON_CPU], capsys)[1])
    assert document["k"] == document["bank"] == 5
    assert "k=5" in document["protocol"]


def test_the_protocol_says_which_classes_and_how_large(run_folder: Path, capsys: Capture) -> None:
    sizes = ["--classes", "0", "1", "--test-images", "8", "--num-neighbors", "3"]
    words = ["eval", "knn", str(run_folder), *sizes, *ON_CPU]
    document = json.loads(said(words, capsys)[1])
    assert "2 classes (" in document["protocol"]
    assert "at 16 pixels" in document["protocol"]
    assert "the first" in document["protocol"]
    assert (document["classes"], document["image_size"]) == (2, 16)


@pytest.mark.parametrize("broken", [2, 6])
@pytest.mark.parametrize("action", [["knn", "--num-neighbors", "3"], ["linear", "--probe", "paper", "--epochs", "1"]])
def test_bad_images_are_told_counted_and_not_too_many(
    action: list[str], broken: int, run_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    for i in range(40):
        making.save(tmp_path / "photos" / ("one" if i % 2 else "two") / f"{i}.png")
    for i in range(broken):
        (tmp_path / "photos" / "one" / f"{4 * i + 1}.png").write_bytes(b"torn")
    words = ["eval", action[0], str(run_folder), *action[1:], "--data", f"folder:{tmp_path / 'photos'}"]
    code, out, err = said([*words, "--max-bad-images", "4", *ON_CPU], capsys)
    if broken > 4:
        assert code == 2
        assert "--max-bad-images is 4" in err
    else:
        document = json.loads(out)
        assert document["bad_images"] == broken
        assert err.count("its neighbor stands in for it") == broken
        assert f"{broken} bad ones replaced" in document["protocol"]
