"""Who is judged: one encoder, from wherever it is taken; and what it is judged on."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions
from phinets.config.record import RunRecord, Score
from phinets.config.run import DataOptions, EvalConfig
from phinets.config.views import PLANS
from phinets.data import BadImages, DataSplits, ImageSet, InMemory
from phinets.evaluation.encoders import load_encoder
from phinets.evaluation.evaluator import Evaluator
from phinets.evaluation.features import FeatureExtractor, require_classes
from phinets.evaluation.knn import knn_accuracy
from phinets.evaluation.linear import fit_probe, probe_accuracy
from phinets.evaluation.setup import eval_setup, open_target
from phinets.training.checkpoint import checkpoints
from tests.data import making
from tests.helpers import MINIATURE, TinyEncoder, assert_features_close

ON_CPU = EvalOptions(device="cpu")


@pytest.mark.parametrize(("clock", "ending"), [("fast", ""), ("slow", "_slow")])
def test_the_command_s_numbers_are_the_run_s(miniature: RunRecord, run_folder: Path, clock: Any, ending: str) -> None:
    found = open_target(run_folder, replace(ON_CPU, encoder=clock))
    train, test = (one.tensors() for one in found.feature_sets())
    assert knn_accuracy(*test, *train, k=7) == getattr(miniature.summary, f"knn{ending}")
    assert probe_accuracy(fit_probe(*train), *test) == getattr(miniature.summary, f"linear{ending}")
    assert found.evaluation.num_neighbors == 7


def test_the_live_monitor_s_last_number_is_the_command_s(miniature: RunRecord, run_folder: Path) -> None:
    """Its bank and its queries hold all images here, so it must say what the judgement after the run says."""
    last = [row for row in miniature.journal if row["kind"] == "eval"][-1]
    assert last["knn"] == miniature.summary.knn
    assert last["knn_slow"] == miniature.summary.knn_slow


@pytest.mark.parametrize("clock", ["fast", "slow"])
def test_a_run_s_end_its_last_checkpoint_and_its_file_hold_one_encoder(run_folder: Path, clock: Any) -> None:
    end, last = load_encoder(run_folder, clock), load_encoder(checkpoints(run_folder / "checkpoints")[-1][1], clock)
    name = "backbone.safetensors" if clock == "fast" else "backbone-slow.safetensors"
    file = load_encoder(run_folder / name)
    for other in (last, file):
        for key, value in end.module.state_dict().items():
            assert torch.equal(value, other.module.state_dict()[key])
    assert (file.backbone, file.metadata["image_size"], file.metadata["encoder"]) == ("resnet-tiny", "16", clock)
    assert "after step 12" in last.description


def test_fast_and_slow_are_two_encoders_and_an_earlier_checkpoint_is_a_third(run_folder: Path) -> None:
    first = checkpoints(run_folder / "checkpoints")[0][1]
    encoders = [load_encoder(run_folder, "fast"), load_encoder(run_folder, "slow"), load_encoder(first, "fast")]
    weights = [one.module.state_dict()["conv1.weight"] for one in encoders]
    assert not any(torch.equal(weights[i], weights[j]) for i, j in [(0, 1), (0, 2), (1, 2)])


def test_an_unfinished_run_is_judged_by_its_newest_checkpoint(run_folder: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(run_folder, cut)
    for name in ("summary.json", "backbone.safetensors", "backbone-slow.safetensors"):
        (cut / name).unlink()
    checkpoints(cut / "checkpoints")[-1][1].unlink()
    assert "after step 6" in load_encoder(cut).description


def test_a_file_of_weights_is_judged_at_the_size_it_says(run_folder: Path) -> None:
    asked = replace(ON_CPU, data="shapes", bank=96, test_images=50)
    by_file, by_run = open_target(run_folder / "backbone.safetensors", asked), open_target(run_folder, ON_CPU)
    assert_features_close(by_file.feature_sets()[0].tensors()[0], by_run.feature_sets()[0].tensors()[0])


def test_a_state_dict_says_nothing_and_is_told(run_folder: Path, tmp_path: Path) -> None:
    torch.save(load_file(run_folder / "backbone.safetensors"), tmp_path / "w.pth")
    with pytest.raises(UserError, match="--backbone"):
        load_encoder(tmp_path / "w.pth")
    with pytest.raises(UserError, match="--data"):
        eval_setup(tmp_path / "w.pth", replace(ON_CPU, backbone="resnet-tiny"))
    with pytest.raises(UserError, match="missing"):
        load_encoder(tmp_path / "w.pth", backbone="resnet18-cifar")
    told = replace(ON_CPU, backbone="resnet-tiny", data="shapes", image_size=16, bank=96, test_images=50)
    assert_features_close(
        open_target(tmp_path / "w.pth", told).feature_sets()[0].tensors()[0],
        open_target(run_folder, ON_CPU).feature_sets()[0].tensors()[0],
    )


def test_what_can_t_be_asked_is_refused(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="belongs to a run"):
        load_encoder(run_folder, backbone="resnet18")
    with pytest.raises(UserError, match="holds no run"):
        load_encoder(tmp_path)
    with pytest.raises(UserError, match="holds one encoder"):
        load_encoder(run_folder / "backbone.safetensors", "slow")
    simsiam = tmp_path / "simsiam"
    simsiam.mkdir()
    text = (run_folder / "config.yaml").read_text().replace("method: x-phinet", "method: simsiam")
    (simsiam / "config.yaml").write_text(text.replace("encoder: both", "encoder: fast").replace("- slow-gap", ""))
    with pytest.raises(UserError, match="'simsiam' has no slow encoder"):
        load_encoder(simsiam, "slow")
    with pytest.raises(UserError, match="has no checkpoint"):
        load_encoder(simsiam)


def test_labels_that_are_missing_or_all_alike_are_refused() -> None:
    with pytest.raises(UserError, match="the training images have no labels in 'folder:x'"):
        require_classes(None, torch.tensor([1]), "folder:x")
    with pytest.raises(UserError, match="the test images have no labels in 'folder:x'"):
        require_classes(torch.tensor([0, 1]), torch.tensor([], dtype=torch.long), "folder:x")
    with pytest.raises(UserError, match="all of one class"):
        require_classes(torch.tensor([3, 3]), torch.tensor([3]), "folder:x")


def test_a_run_without_a_slow_encoder_can_t_be_asked_for_it() -> None:
    with pytest.raises(UserError, match="'simsiam' has no slow encoder"):
        replace(MINIATURE, method="simsiam")


def test_data_options_default_to_the_run_s(run_folder: Path) -> None:
    who = eval_setup(run_folder, ON_CPU)
    assert (len(who.train), len(who.test), who.extractor.size) == (96, 50, 16)
    other = eval_setup(run_folder, replace(ON_CPU, test_images=20, bank=30, labels="50%"))
    assert len(other.test) == 20
    assert 10 <= len(other.train) <= 20
    assert DataOptions().image_size == 32


def test_the_run_s_bank_is_the_command_s(run_folder: Path, tmp_path: Path) -> None:
    smaller = tmp_path / "smaller"
    shutil.copytree(run_folder, smaller)
    config = smaller / "config.yaml"
    config.write_text(config.read_text().replace("final_bank: null", "final_bank: 40"))
    assert len(eval_setup(smaller, ON_CPU).train) == 40
    assert len(eval_setup(smaller, replace(ON_CPU, bank=30)).train) == 30
    assert len(eval_setup(smaller, replace(ON_CPU, bank=120)).train) == 120  # more than the run ever read


@pytest.mark.parametrize(
    ("labels", "says"), [([3] * 6, "all of one class"), ([-1] * 6, "have no labels"), (None, "have no labels")]
)
def test_a_run_on_data_that_tell_nothing_apart_is_not_judged_and_says_why(labels: list[int] | None, says: str) -> None:
    pixels = torch.zeros(6, 3, 8, 8, dtype=torch.uint8)
    part = ImageSet(InMemory(pixels), None if labels is None else torch.tensor(labels))
    extractor = FeatureExtractor(
        plan=PLANS["simsiam-cifar"], size=8, device=torch.device("cpu"), bad_images=BadImages(0)
    )
    evaluator = Evaluator(
        split=DataSplits(part, part, ("a", "b", "c", "d")), extractor=extractor, protocol=EvalConfig()
    )
    assert evaluator.score(None) == Score(knn=None, linear=None)
    assert evaluator.online_knn(TinyEncoder()) is None
    assert says in evaluator.describe()


def test_the_protocol_says_of_how_many_test_images_the_first_ones_are_used() -> None:
    pixels, labels = torch.zeros(1200, 3, 8, 8, dtype=torch.uint8), torch.arange(1200) % 2
    images = ImageSet(InMemory(pixels), labels)
    extractor = FeatureExtractor(
        plan=PLANS["simsiam-cifar"], size=8, device=torch.device("cpu"), bad_images=BadImages(0)
    )
    for n, text in ((500, "the first 500 of 1,200 test"), (None, "all 1200 test"), (1200, "all 1200 test")):
        split = DataSplits(images.head(100), images.head(n), ("a", "b"))
        evaluator = Evaluator(split=split, extractor=extractor, protocol=EvalConfig())
        assert f"bank of 100 training images, {text} images" in evaluator.describe()


def test_data_are_the_run_s_own_however_their_place_is_written(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copytree(run_folder, own)
    for i in range(40):
        making.save(tmp_path / "photos" / ("one" if i % 2 else "two") / f"{i}.png")
    config = own / "config.yaml"
    text = config.read_text().replace("data: shapes", f"data: folder:{tmp_path / 'photos'}")
    config.write_text(text.replace("train_images: 96", "train_images: 11").replace("test_images: 50", "test_images: 3"))
    monkeypatch.chdir(tmp_path)
    for named in (None, "folder:photos", f"folder:{tmp_path / 'photos'}"):
        who = eval_setup(own, replace(ON_CPU, data=named))
        assert (len(who.train), len(who.test)) == (11, 3)
