"""Exports: whoever takes the file has the same encoder, and a file that is not the same never appears."""

import shutil
import sys
from pathlib import Path

import pytest
import torch
import torchvision
from safetensors.torch import load_file
from torch import nn

from phinets.backbones import backbone
from phinets.config.errors import UserError
from phinets.config.record import RunRecord
from phinets.evaluation.encoders import load_encoder
from phinets.export import TARGET_MODULES
from phinets.export.export import find_target
from phinets.training.checkpoint import checkpoints
from tests.export.helpers import code_of, exported, images, lived_in, run_with, said_by, same

TORCHVISION = ["resnet18", *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet34", "resnet50"))]


@pytest.mark.parametrize("name", TORCHVISION)
def test_a_fresh_torchvision_model_takes_the_file_strictly(name: str, run_folder: Path, tmp_path: Path) -> None:
    encoder = run_with(name, run_folder, tmp_path / "run")
    exported(tmp_path / "run", "torchvision", tmp_path / "w.pth")
    fresh = torchvision.models.get_model(name, weights=None)
    fresh.load_state_dict(torch.load(tmp_path / "w.pth", weights_only=True), strict=True)
    with torch.no_grad():
        assert not fresh.eval()(images(2)).any()  # nobody has trained its classifier
    fresh.fc = nn.Identity()
    assert same(fresh, encoder)


def test_the_card_tells_a_classifier_that_nobody_trained_from_one_that_was_left_out(
    run_folder: Path, tmp_path: Path
) -> None:
    run_with("resnet18", run_folder, tmp_path / "run")
    torch.save(torchvision.models.resnet18().state_dict(), tmp_path / "own.pth")
    exported(tmp_path / "run", "torchvision", tmp_path / "w.pth")
    exported(tmp_path / "own.pth", "torchvision", tmp_path / "v.pth", backbone="resnet18", image_size=32)
    ours, theirs = ((tmp_path / f"{name}.pth.md").read_text() for name in "wv")
    assert "nothing has trained it" in ours
    assert "nothing has trained it" not in theirs
    assert "a classifier in the file was left out" in theirs


def test_a_headless_file_is_for_a_model_without_fc(run_folder: Path, tmp_path: Path) -> None:
    encoder = run_with("resnet18", run_folder, tmp_path / "run")
    exported(tmp_path / "run", "torchvision", tmp_path / "w.safetensors", headless=True)
    tensors = load_file(tmp_path / "w.safetensors")
    fresh = torchvision.models.resnet18()
    with pytest.raises(RuntimeError, match="Missing key"):
        fresh.load_state_dict(tensors, strict=True)
    fresh.fc = nn.Identity()
    fresh.load_state_dict(tensors, strict=True)
    assert same(fresh, encoder)


@pytest.mark.parametrize("name", [*TORCHVISION, "timm:resnet10t"])
def test_a_fresh_timm_model_takes_the_file_strictly(name: str, run_folder: Path, tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    encoder = run_with(name, run_folder, tmp_path / "run")
    exported(tmp_path / "run", "timm", tmp_path / "w.safetensors")
    fresh = timm.create_model(name.removeprefix("timm:"), num_classes=0)
    fresh.load_state_dict(load_file(tmp_path / "w.safetensors"), strict=True)
    assert same(fresh, encoder)


@pytest.mark.slow
def test_timm_s_resnet_is_torchvision_s_too(run_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("timm")
    encoder = run_with("timm:resnet18", run_folder, tmp_path / "run")
    exported(tmp_path / "run", "torchvision", tmp_path / "w.pth", headless=True)
    fresh = torchvision.models.resnet18()
    fresh.fc = nn.Identity()
    fresh.load_state_dict(torch.load(tmp_path / "w.pth", weights_only=True), strict=True)
    assert same(fresh, encoder)


@pytest.mark.parametrize("clock", ["fast", "slow"])
def test_a_safetensors_export_is_the_file_that_the_run_wrote(run_folder: Path, tmp_path: Path, clock: str) -> None:
    own = run_folder / ("backbone.safetensors" if clock == "fast" else "backbone-slow.safetensors")
    out = tmp_path / "w.safetensors"
    exported(run_folder, "safetensors", out, encoder=clock)
    assert said_by(out) == said_by(own)
    theirs, ours = load_file(own), load_file(out)
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())
    again = load_encoder(out)
    assert (again.backbone, again.encoder) == ("resnet-tiny", clock)
    exported(out, "safetensors", tmp_path / "again.safetensors")
    assert said_by(tmp_path / "again.safetensors") == said_by(own)


@pytest.mark.slow
def test_double_precision_stays_in_safetensors_and_is_single_elsewhere(run_folder: Path, tmp_path: Path) -> None:
    run_with("resnet18", run_folder, tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("precision: auto", "precision: fp64"))
    for to, ending, dtype in (("safetensors", "safetensors", torch.float64), ("torchvision", "pth", torch.float32)):
        out = tmp_path / f"w.{ending}"
        exported(tmp_path / "run", to, out)
        tensors = load_file(out) if ending == "safetensors" else torch.load(out, weights_only=True)
        assert tensors["conv1.weight"].dtype == dtype


@pytest.mark.parametrize(
    ("name", "to", "ending", "options"),
    [
        ("resnet18", "torchvision", ".pth", {}),
        ("resnet-tiny", "safetensors", ".safetensors", {}),
        ("timm:resnet10t", "timm", ".safetensors", {}),
        pytest.param("timm:resnet10t", "timm", ".pth", {}, marks=pytest.mark.slow),
        pytest.param("resnet18", "torchvision", ".pth", {"headless": True}, marks=pytest.mark.slow),
        pytest.param("resnet18", "torchvision", ".safetensors", {}, marks=pytest.mark.slow),
    ],
)
def test_the_code_on_the_card_loads_the_encoder(
    name: str,
    to: str,
    ending: str,
    options: dict[str, bool],
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if to == "timm":
        pytest.importorskip("timm")
    encoder = run_with(name, run_folder, tmp_path / "run")
    out = tmp_path / f'it\'s "mine"{ending}'
    exported(tmp_path / "run", to, out, **options)
    monkeypatch.chdir(tmp_path)
    names: dict[str, nn.Module] = {}
    exec(code_of(tmp_path / f"{out.name}.md"), names)
    assert same(names["model"], encoder)


def test_one_who_shares_names_and_shapes_but_computes_something_else_is_found_out(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ResNet-18 without its max-pool has every weight of ResNet-18, and other features."""
    (tmp_path / "poolless.py").write_text(
        "import torchvision, torch\n"
        "def net():\n"
        "    model = torchvision.models.resnet18()\n"
        "    model.fc = model.maxpool = torch.nn.Identity()\n"
        "    return model\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run_with("poolless.net", run_folder, tmp_path / "run")
    before = sorted(tmp_path.rglob("*"))
    for to, ending in (("torchvision", "pth"), ("detectron2", "pkl")):
        with pytest.raises(UserError, match=r"not the same encoder \(features differ by .*nothing was written"):
            exported(tmp_path / "run", to, tmp_path / f"w.{ending}")
    assert [path for path in sorted(tmp_path.rglob("*")) if path.suffix in (".pth", ".pkl", ".md", ".part")] == []
    exported(tmp_path / "run", "safetensors", tmp_path / "w.safetensors")
    assert len(sorted(tmp_path.rglob("*"))) >= len(before) + 2


@pytest.mark.slow
def test_an_encoder_of_one_s_own_that_is_a_resnet_is_recognized(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_nets.py").write_text(
        "import torchvision, torch\n"
        "def net():\n"
        "    model = torchvision.models.resnet18()\n"
        "    model.fc = torch.nn.Identity()\n"
        "    return model\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    encoder = run_with("own_nets.net", run_folder, tmp_path / "run")
    exported(tmp_path / "run", "torchvision", tmp_path / "w.pth")
    fresh = torchvision.models.resnet18()
    fresh.load_state_dict(torch.load(tmp_path / "w.pth", weights_only=True), strict=True)
    fresh.fc = nn.Identity()
    assert same(fresh, encoder)


def test_an_encoder_that_has_diverged_is_not_exported(tmp_path: Path) -> None:
    encoder = lived_in(backbone("resnet-tiny"))
    with torch.no_grad():
        next(encoder.parameters()).fill_(float("nan"))
    torch.save(encoder.state_dict(), tmp_path / "nan.pth")
    with pytest.raises(UserError, match="not finite: it has diverged"):
        exported(tmp_path / "nan.pth", "safetensors", tmp_path / "w.safetensors", backbone="resnet-tiny")
    assert [path.name for path in tmp_path.iterdir()] == ["nan.pth"]


@pytest.mark.parametrize(
    ("to", "name", "stride"),
    [("torchvision", "resnet18-cifar", 1), ("timm", "resnet-tiny", 2), ("detectron2", "resnet-tiny", 2)],
)
def test_a_stem_for_small_images_says_why_it_can_t_go_and_what_can(
    to: str, name: str, stride: int, tmp_path: Path
) -> None:
    torch.save(backbone(name).state_dict(), tmp_path / "small.pth")
    ending = find_target(to).suffixes[0]
    with pytest.raises(UserError) as refused:
        exported(tmp_path / "small.pth", to, tmp_path / f"w{ending}", backbone=name)
    for words in (f"3×3 of stride {stride} without a max-pool", "7×7 of stride 2", "--to safetensors", "phinets.load"):
        assert words in str(refused.value)


def test_weights_of_a_given_checkpoint_are_its_own(miniature: RunRecord, run_folder: Path, tmp_path: Path) -> None:
    first, last = (path for _, path in checkpoints(run_folder / "checkpoints"))
    for name, place in (("first", first), ("last", last), ("end", run_folder)):
        exported(place, "safetensors", tmp_path / f"{name}.safetensors")
    weights = {name: load_file(tmp_path / f"{name}.safetensors")["conv1.weight"] for name in ("first", "last", "end")}
    assert torch.equal(weights["last"], weights["end"])
    assert not torch.equal(weights["first"], weights["end"])


def test_every_target_is_a_module_with_endings_and_none_is_loaded_unasked() -> None:
    for name, module in TARGET_MODULES.items():
        target = find_target(name)
        assert target.suffixes
        assert sys.modules[module].TARGETS[name] is target
    with pytest.raises(UserError, match="Did you mean 'torchvision'"):
        find_target("torchvison")


def test_a_run_whose_weights_have_a_flipped_bit_is_not_exported(run_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    weights = folder / "backbone.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        exported(folder, "safetensors", tmp_path / "w.safetensors")
    assert not (tmp_path / "w.safetensors").exists()
    weights.unlink()  # the cure: the newest checkpoint has the same weights
    exported(folder, "safetensors", tmp_path / "w.safetensors")
    load_encoder(tmp_path / "w.safetensors")
