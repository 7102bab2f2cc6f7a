"""A detection transfer from its config to its folder: repeated, cut and gone on with, and learning something."""

import json
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import phinets
from phinets.backbones.weights import read_weights, serialize_weights
from phinets.config.detection import DetectionConfig, DetectionRecord, ImageOptions, detection_recipe
from phinets.config.errors import StoppedError, UserError
from phinets.config.views import CIFAR_MEAN, IMAGENET_MEAN
from phinets.detection.average_precision import Detections
from phinets.runs.detect import (
    DetectorTrainer,
    SilentDetection,
    _resolve,
    all_precisions,
    build_detection,
    detect,
    read_detections,
    resume_detection,
)
from phinets.runtime.process import Signals
from phinets.training.checkpoint import newest_checkpoint
from phinets.training.loop import DivergedError, Pace
from tests.detection.helpers import squares, voc

SMOKE = detection_recipe("smoke")
IMAGES = ImageOptions(train_sides=(48, 64), test_side=64, max_side=80)
QUICK = replace(
    SMOKE,
    training=replace(SMOKE.training, iterations=4, batch=2, milestones=(3,)),
    compute=replace(SMOKE.compute, device="cpu", checkpoint_every="2steps"),
)


def quick(home: Path, **changes: Any) -> DetectionConfig:
    return replace(QUICK, images=replace(IMAGES, data=f"voc:{home}"), **changes)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return squares(tmp_path_factory.mktemp("squares"))


@pytest.fixture(scope="module")
def record(home: Path, run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> DetectionRecord:
    return detect(run_folder, quick(home, scratch=True), tmp_path_factory.mktemp("detect") / "one")


class Cutter(SilentDetection):
    """Sends this process a SIGTERM in a detector's folder, once a step is reported."""

    def __init__(self, step: int, detector: str = "encoder") -> None:
        self.step, self.detector = step, detector

    def on_start(self, folder: Path, config: object, steps: int, done: int) -> None:
        self.current = folder.name

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        if (self.current, row["step"]) == (self.detector, self.step):
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_transfer_leaves_everything_that_it_says(record: DetectionRecord) -> None:
    folder, summary = Path(record.folder), record.summary
    assert {path.name for path in folder.iterdir()} == {
        "detection.yaml", "env.json", "encoder", "scratch", "curves.png", "detections.png", "summary.json",
    }  # fmt: skip
    assert json.loads((folder / "summary.json").read_text())["detectors"][1]["name"] == "scratch"
    assert [arm.name for arm in summary.detectors] == ["encoder", "scratch"]
    assert summary.detectors[0].description.startswith("fast encoder of x-phinet, resnet-tiny")
    assert [row["step"] for row in record.journals["scratch"]] == [1, 2, 3, 4]
    assert summary.detectors[0].loss_first == record.journals["encoder"][0]["loss"]
    for words in ("16 training images, 6 test images, 2 classes", "4 steps of batch 2", "shorter side 48–64"):
        assert words in summary.protocol
    assert summary.paper is None


def test_the_numbers_are_those_of_the_kept_detections(record: DetectionRecord, home: Path, run_folder: Path) -> None:
    scenes = build_detection(run_folder, quick(home)).data
    for arm in record.summary.detectors:
        found = read_detections(Path(record.folder) / arm.name / "detections.json")
        assert all_precisions(scenes, found) == arm.precision
        assert set(arm.precision) == {"coco", "voc07", "voc12"}
        assert set(arm.precision["coco"].per_class) == {"bar", "square"}


def test_the_kept_weights_are_those_after_the_last_step(record: DetectionRecord) -> None:
    for arm in ("encoder", "scratch"):
        path = Path(record.folder) / arm / "detector.safetensors"
        state, _ = newest_checkpoint(path.parent / "checkpoints")
        assert state is not None
        kept = load_file(path)
        assert kept.keys() == state["learner"].keys()
        assert all(torch.equal(kept[name], value) for name, value in state["learner"].items())
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata().pop("phinets"))
        assert (about["classes"], about["backbone"]) == (["bar", "square"], "resnet-tiny")
        assert "data" not in about["detection"]["images"]  # whose weights travel, whose folders don't


@pytest.mark.parametrize("arm", ["encoder", "scratch"])
def test_a_loaded_detector_finds_what_its_arm_has_found(arm: str, record: DetectionRecord, home: Path) -> None:
    detector = phinets.load_detector(record.folder, arm, device="cpu")
    on_message = read_detections(Path(record.folder) / arm / "detections.json")
    names = (home / "ImageSets" / "Main" / "test.txt").read_text().split()
    paths = [home / "JPEGImages" / f"{name}.jpg" for name in names]
    opened = [Image.open(path) for path in paths]
    arrays = np.stack([np.asarray(Image.open(path)) for path in paths])
    assert detector.classes == ("bar", "square")
    assert sum(len(one.scores) for one in on_message) > 0
    for given in (paths, opened, arrays, list(arrays)):
        found = detector(given)
        assert len(found) == len(on_message) == 6
        for one, wanted in zip(found, on_message, strict=True):
            assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, wanted, strict=True))
    assert len(detector(paths[0])) == 1


def test_a_detector_that_is_not_there_is_named(record: DetectionRecord, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no detector called 'encoders'"):
        phinets.load_detector(record.folder, "encoders")
    with pytest.raises(UserError, match="there is no detector"):
        phinets.load_detector(tmp_path)


def assert_same(one: Path, two: Path) -> None:
    """Weights and detections, bit for bit, and the journal."""
    for name in ("detections.json", "metrics.jsonl", "detector.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_the_same_transfer_again_gives_the_same_bits_whatever_torch_s_seed(
    record: DetectionRecord, home: Path, run_folder: Path, tmp_path: Path
) -> None:
    torch.manual_seed(99)
    detect(run_folder, quick(home), tmp_path / "again")
    assert_same(tmp_path / "again" / "encoder", Path(record.folder) / "encoder")


@pytest.mark.parametrize("cut", [("encoder", 2), pytest.param(("scratch", 2), marks=pytest.mark.slow)])
def test_an_interrupted_run_resumes_and_ends_with_the_same_bits(
    cut: tuple[str, int], record: DetectionRecord, home: Path, run_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cut"
    with pytest.raises(StoppedError, match=r"stopped by SIGTERM after step .* Resume with: phinets detect --resume"):
        detect(run_folder, quick(home, scratch=True), folder, callback=Cutter(cut[1], cut[0]))
    state, _ = newest_checkpoint(folder / cut[0] / "checkpoints")
    assert state is not None
    assert 2 <= state["step"] < 4
    assert not (folder / "summary.json").exists()
    resumed = resume_detection(folder)
    for arm in ("encoder", "scratch"):
        assert_same(folder / arm, Path(record.folder) / arm)
    assert [a.precision for a in resumed.summary.detectors] == [a.precision for a in record.summary.detectors]


@pytest.mark.slow
def test_going_on_from_the_checkpoint_before_a_torn_one_gives_the_same_bits(
    record: DetectionRecord, home: Path, run_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "torn"
    with pytest.raises(StoppedError):
        detect(run_folder, quick(home), folder, callback=Cutter(2))
    newest = sorted((folder / "encoder" / "checkpoints").glob("step-*.pt"))[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    resume_detection(folder)
    assert_same(folder / "encoder", Path(record.folder) / "encoder")


def test_a_finished_transfer_is_only_read(record: DetectionRecord) -> None:
    folder = Path(record.folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert resume_detection(folder) == record
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_other_settings_pictures_or_weights_are_not_mixed_into_a_begun_transfer(
    home: Path, run_folder: Path, tmp_path: Path
) -> None:
    own, weights, folder = tmp_path / "own", tmp_path / "w.safetensors", tmp_path / "cut"
    shutil.copytree(home, own)
    shutil.copy(run_folder / "backbone.safetensors", weights)
    with pytest.raises(StoppedError):
        detect(weights, quick(own), folder, callback=Cutter(2))
    begun = yaml.safe_load((folder / "detection.yaml").read_text())
    assert Path(begun["target"]) == weights
    with pytest.raises(UserError, match=r"has other settings \(seed was 0 and is 5"):
        resume_detection(folder, replace(build_detection(weights, quick(own)).config, seed=5))
    xml = own / "Annotations" / "000.xml"
    kept = xml.read_text()
    xml.write_text(kept.replace("<difficult>0", "<difficult>1", 1))
    with pytest.raises(UserError, match=r"image_checksums\.train was 16 images"):
        resume_detection(folder)
    xml.write_text(kept)
    tensors, metadata = read_weights(weights)
    weights.write_bytes(serialize_weights({name: value + 1 for name, value in tensors.items()}, metadata))
    with pytest.raises(UserError, match=r"weights was .* and is"):
        resume_detection(folder)


def test_lists_that_changed_between_two_arms_are_noticed_though_the_first_is_finished(
    home: Path, run_folder: Path, tmp_path: Path
) -> None:
    own, folder = tmp_path / "own", tmp_path / "cut"
    shutil.copytree(home, own)
    with pytest.raises(StoppedError):
        detect(run_folder, quick(own, scratch=True), folder, callback=Cutter(2, "scratch"))
    shutil.rmtree(folder / "scratch")  # cut before the second one began: no checkpoint to compare with
    listed = own / "ImageSets" / "Main" / "trainval.txt"
    listed.write_text("\n".join(listed.read_text().split()[1:]))
    with pytest.raises(UserError, match=r"since the run started \(image_checksums\.train was 16 images"):
        resume_detection(folder)
    assert not (folder / "scratch").exists()


def test_a_diverged_detector_names_the_rate_to_try(home: Path, run_folder: Path, tmp_path: Path) -> None:
    config = quick(home)
    images = replace(config.images, pixel_std=(1e-38, 1e-38, 1e-38))  # pixels beyond the range of floats
    with pytest.raises(DivergedError, match=r"not finite after step .*--lr 0\.02\b"):
        detect(run_folder, replace(config, images=images), tmp_path / "diverged")


class Breaker(SilentDetection):
    """Breaks every picture to learn from after the first step; mends them when asked."""

    def __init__(self, home: Path) -> None:
        ids = (home / "ImageSets" / "Main" / "trainval.txt").read_text().split()
        self.whole = {path: path.read_bytes() for path in (home / "JPEGImages" / f"{name}.jpg" for name in ids)}

    def on_step(self, row: Mapping[str, Any], pace: Pace) -> None:
        for path, content in self.whole.items():
            path.write_bytes(content[: len(content) // 2])

    def mend(self) -> None:
        for path, content in self.whole.items():
            path.write_bytes(content)


def test_steps_are_saved_when_an_image_breaks_during_training_and_it_is_named_at_the_next_start(
    record: DetectionRecord, home: Path, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phinets.training.loop.REPORT_EVERY", 1)
    own, folder = tmp_path / "own", tmp_path / "broken"
    shutil.copytree(home, own)
    breaker, rarely = Breaker(own), replace(QUICK.compute, checkpoint_every="300s")
    with pytest.raises(UserError, match=r"can't be used.* Resume with: phinets detect --resume"):
        detect(run_folder, quick(own, compute=rarely), folder, callback=breaker)
    state, _ = newest_checkpoint(folder / "encoder" / "checkpoints")
    assert state is not None
    assert state["step"] == len((folder / "encoder" / "metrics.jsonl").read_text().splitlines()) > 0
    with pytest.raises(UserError, match="16 of the 22 images can't be used"):
        resume_detection(folder)
    breaker.mend()
    resume_detection(folder)
    assert_same(folder / "encoder", Path(record.folder) / "encoder")


def test_the_encoder_s_own_mean_and_deviation_are_used_unless_told_otherwise(
    home: Path, run_folder: Path, tmp_path: Path
) -> None:
    assert build_detection(run_folder, quick(home)).config.images.pixel_mean == IMAGENET_MEAN
    weights = tmp_path / "w.safetensors"
    save_file(load_file(run_folder / "backbone.safetensors"), weights, {"backbone": "resnet-tiny", "views": "ucl"})
    assert build_detection(weights, quick(home)).config.images.pixel_mean == CIFAR_MEAN
    who = build_detection(weights, quick(home)).encoder
    who.module.default_cfg = {"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6)}  # type: ignore[assignment]  # timm's
    assert _resolve(IMAGES, replace(who, metadata={})).pixel_mean == (0.1, 0.2, 0.3)
    on_message = replace(IMAGES, data=f"voc:{home}", pixel_mean=(0.5, 0.5, 0.5))
    assert build_detection(weights, replace(QUICK, images=on_message)).config.images.pixel_mean == (0.5, 0.5, 0.5)


def test_a_run_that_is_not_finished_must_be_asked_for(home: Path, run_folder: Path, tmp_path: Path) -> None:
    cut_run = tmp_path / "run"
    shutil.copytree(run_folder, cut_run)
    (cut_run / "summary.json").unlink()
    with pytest.raises(UserError, match=r"is unfinished: .* after step \d+\. .* or use --unfinished"):
        build_detection(cut_run, quick(home))
    newest = build_detection(cut_run, quick(home, unfinished=True)).encoder
    assert newest.step is not None
    named = sorted((cut_run / "checkpoints").glob("step-*.pt"))[-1]
    assert build_detection(named, quick(home)).encoder.step == newest.step


def test_a_folder_with_something_else_in_it_is_left_alone(
    record: DetectionRecord, home: Path, run_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all my work")
    with pytest.raises(UserError, match="holds no run of this kind"):
        detect(run_folder, quick(home), tmp_path / "mine", overwrite=True)
    with pytest.raises(UserError, match="already holds a run"):
        detect(run_folder, quick(home), Path(record.folder))
    with pytest.raises(UserError, match="holds no run"):
        detect(run_folder, quick(home), run_folder, overwrite=True)
    shutil.copytree(record.folder, tmp_path / "old")
    (tmp_path / "old" / "notes.txt").write_text("mine")
    detect(run_folder, quick(home), tmp_path / "old", overwrite=True)
    assert (tmp_path / "old" / "notes.txt").exists()
    assert not (tmp_path / "old" / "scratch").exists()


def test_classes_that_the_drawn_pictures_do_not_show_are_said(run_folder: Path, tmp_path: Path) -> None:
    voc(tmp_path, {"trainval": ["a", "c"], "test": ["b"]})
    with pytest.warns(UserWarning, match="1 test images show no cat, which is left out of the mean"):
        build_detection(run_folder, quick(tmp_path))


@pytest.mark.slow
def test_training_lowers_the_loss_and_lifts_the_precision_far_above_the_untrained_detector(
    home: Path, run_folder: Path, tmp_path: Path
) -> None:
    looks = replace(QUICK.proposals, anchor_sizes=(16, 24, 32), regions=16, test_proposals=30)
    training = replace(QUICK.training, iterations=60, batch=4, lr=0.16, milestones=(48,), warmup_steps=10)
    still = replace(training, iterations=1, lr=1e-9)
    first, last = (
        detect(run_folder, quick(home, proposals=looks, training=how), tmp_path / name).summary.detectors[0]
        for name, how in (("first", still), ("last", training))
    )
    assert last.loss_last < 0.5 * last.loss_first
    assert (first.precision["coco"].ap50 or 0.0) < 5
    assert (last.precision["coco"].ap50 or 0.0) > 60


class Whole(torch.nn.Module):
    """A detector that finds one thing: the whole picture."""

    def detect(self, pictures: list[torch.Tensor]) -> list[Detections]:
        height, width = pictures[0].shape[1:]
        return [Detections(np.array([[0.0, 0.0, width, height]]), np.array([0]), np.array([1.0]))]


def test_what_is_found_is_told_in_the_picture_s_own_pixels(run_folder: Path, tmp_path: Path) -> None:
    home = voc(tmp_path / "voc")
    config = quick(home)
    run = build_detection(run_folder, config)
    trainer = DetectorTrainer(run, "encoder", tmp_path, Signals(), SilentDetection())
    (found,) = trainer.test(Whole())  # type: ignore[arg-type]
    assert found.boxes.tolist() == [[0, 0, 40, 30]]
