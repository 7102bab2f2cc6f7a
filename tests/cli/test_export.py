"""`phinets export`, as a person at a keyboard meets it."""

import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from phinets.backbones import backbone
from phinets.export import TARGET_MODULES
from phinets.training.checkpoint import checkpoints
from tests.cli.test_main import said
from tests.export.helpers import run_with

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a finished run, called RUN, in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run_folder, "RUN")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_help_names_every_target_and_comes_without_torch() -> None:
    code = (
        "import sys\nfrom phinets.cli.export import command\n"
        "try: command(['--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'torchvision', 'onnx', 'timm', 'scipy', 'matplotlib') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert "Example: phinets export" in done.stdout
    assert all(name in done.stdout for name in TARGET_MODULES)


def test_an_export_says_where_it_is_and_what_it_is(here: Path, capsys: Capture) -> None:
    code, out, err = said(["export", "RUN", "--to", "safetensors", "--encoder", "slow", "--json"], capsys)
    assert code == 0, err
    document = json.loads(out)
    assert document["files"] == {"weights": "RUN-slow.safetensors", "card": "RUN-slow.safetensors.md"}
    assert document["sha256"] == sha256(Path("RUN-slow.safetensors").read_bytes()).hexdigest()
    assert (document["target"], document["encoder"], document["backbone"]) == ("safetensors", "slow", "resnet-tiny")
    assert document["difference"] <= 1e-5
    code, out, _ = said(["export", "RUN", "--to", "safetensors", "--out", "mine.safetensors"], capsys)
    assert code == 0
    assert out.splitlines()[:2] == ["mine.safetensors", "mine.safetensors.md"]
    assert "fast encoder of x-phinet, resnet-tiny, at the end of its run" in out


@pytest.mark.slow
def test_what_is_exported_is_judged_as_the_run_was(here: Path, capsys: Capture) -> None:
    assert said(["export", "RUN", "--to", "safetensors"], capsys)[0] == 0
    sizes = ["--bank", "96", "--test-images", "50", "--num-neighbors", "7"]
    rest = ["--data", "shapes", *sizes, "--device", "cpu", "--json"]
    by_file = json.loads(said(["eval", "knn", "RUN.safetensors", *rest], capsys)[1])
    assert by_file["accuracy"] == json.loads(Path("RUN/summary.json").read_text())["knn"]


@pytest.mark.slow
@pytest.mark.parametrize("to", ["onnx"])
def test_json_is_one_document_though_the_exporter_likes_to_talk(to: str, here: Path) -> None:
    words = [sys.executable, "-m", "phinets", "export", "RUN", "--to", to, "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["files"]["weights"] == f"RUN.{to}"
    assert "Traceback" not in done.stderr


def test_a_name_tells_the_checkpoint_and_the_target(here: Path, capsys: Capture) -> None:
    first = checkpoints(here / "RUN" / "checkpoints")[0][1]
    assert said(["export", str(first), "--to", "safetensors"], capsys)[0] == 0
    assert Path("RUN-step-000000006.safetensors").exists()
    monkeyed = here / "RUN" / "backbone.safetensors"
    assert said(["export", str(monkeyed), "--to", "safetensors", "--out", "copy.safetensors"], capsys)[0] == 0


@pytest.mark.parametrize("taken", ["w.safetensors", "w.safetensors.md"])
def test_nothing_is_overwritten_unasked(taken: str, here: Path, capsys: Capture) -> None:
    Path(taken).write_text("mine")
    words = ["export", "RUN", "--to", "safetensors", "--out", "w.safetensors"]
    before = tree(here)
    code, _, err = said(words, capsys)
    assert code == 2
    assert f"'{taken}' is already there" in err
    assert tree(here) == before
    assert said([*words, "--overwrite"], capsys)[0] == 0
    assert Path(taken).read_bytes() != b"mine"


@pytest.mark.slow
def test_configurations_are_not_overwritten_unasked_either(run_folder: Path, here: Path, capsys: Capture) -> None:
    run_with("resnet50", run_folder, here / "R50")
    Path("configs").mkdir()
    Path("configs/train_net.py").write_text("mine")
    words = ["export", "R50", "--to", "detectron2", "--configs", "configs"]
    before = tree(here)
    code, _, err = said(words, capsys)
    assert code == 2
    assert "'configs/train_net.py' is already there" in err
    assert tree(here) == before
    code, out, _ = said([*words, "--overwrite", "--json"], capsys)
    assert code == 0
    assert set(json.loads(out)["files"]) == {
        "weights", "card", "Base-RCNN-C4-BN.yaml", "pascal_voc_R_50_C4_24k.yaml", "train_net.py",
    }  # fmt: skip
    assert Path("configs/train_net.py").read_text() != "mine"


def test_what_is_exported_is_never_written_over(here: Path, capsys: Capture) -> None:
    before = tree(here)
    for place, out in (
        ("RUN", "RUN/backbone.safetensors"),
        ("RUN", "RUN/checkpoints/w.safetensors"),
        ("RUN/backbone.safetensors", "RUN/backbone.safetensors"),
    ):
        words = ["export", place, "--encoder", "fast", "--to", "safetensors", "--out", out, "--overwrite"]
        code, _, err = said(words, capsys)
        assert code == 2
        assert "Choose another --out" in err
    assert tree(here) == before


MISTAKES = [
    (["RUN"], "torchvision|timm"),
    (["RUN", "--to", "tensorflow"], "there is no target called 'tensorflow'"),
    (["RUN", "--to", "torchvison"], "Did you mean 'torchvision'"),
    (["nowhere", "--to", "safetensors"], "there is no file 'nowhere'"),
    ([".", "--to", "safetensors"], "holds no run"),
    (["RUN", "--to", "torchvision"], "3×3 of stride 2 without a max-pool"),
    (["RUN", "--to", "timm"], "3×3 of stride 2 without a max-pool"),
    (["RUN", "--to", "detectron2"], "3×3 of stride 2 without a max-pool"),
    (["RUN", "--to", "torchvision", "--out", "w.bin"], "its suffix must be .pth or .safetensors"),
    (["RUN", "--to", "onnx", "--out", "w.pth"], "its suffix must be .onnx"),
    (["RUN", "--to", "safetensors", "--out", "no/such/w.safetensors"], "there is no folder 'no/such'"),
    (["RUN", "--to", "safetensors", "--headless"], "--headless has no meaning for --to safetensors"),
    (["RUN", "--to", "timm", "--with-preprocessing"], "--with-preprocessing has no meaning for --to timm"),
    (["RUN", "--to", "timm", "--opset", "20"], "--opset has no meaning for --to timm"),
    (["RUN", "--to", "onnx", "--configs", "c"], "--configs has no meaning for --to onnx"),
    (["RUN", "--to", "onnx", "--opset", "7"], "opset is 7"),
    (["RUN", "--to", "onnx", "--image-size", "4"], "image_size is 4"),
    (["RUN", "--to", "safetensors", "--views", "ucl"], "Leave out --views"),
    (["RUN", "--to", "safetensors", "--backbone", "resnet18"], "Leave out --backbone"),
    (["w.pth", "--to", "safetensors"], "--backbone"),
    (["w.pth", "--to", "safetensors", "--backbone", "resnet-tiny", "--encoder", "slow"], "holds one encoder"),
    (["w.pth", "--to", "safetensors", "--backbone", "resnet18"], "missing"),
    (["w.pth", "--to", "safetensors", "--backbone", "resnet-tiny", "--views", "ulc"], "Did you mean 'ucl'"),
    (["odd.safetensors", "--to", "onnx"], "image_size 'large'"),
    (["CUT", "--to", "safetensors"], "--unfinished"),
    (["EMPTY", "--to", "safetensors"], "has no checkpoint"),
    (["EMPTY", "--to", "safetensors", "--unfinished"], "has no checkpoint"),
    (["TORN", "--to", "safetensors"], "summary.json' can't be read"),
    (["maps.pth", "--to", "safetensors", "--backbone", "maps.maps"], "one feature vector per image"),
    (["vit.pth", "--to", "torchvision", "--backbone", "timm:test_vit"], "names and shapes of any of torchvision's"),
]  # fmt: skip


def test_a_mistake_gets_one_paragraph_and_leaves_nothing(here: Path, capsys: Capture) -> None:
    _prepare_mistakes()
    before, violations = tree(here), []
    for words, text in MISTAKES:
        code, out, err = said(["export", *words], capsys)
        if (code, out) != (2, "") or text not in err or "Traceback" in err:
            violations.append((words, code, out, err))
        after = {name: content for name, content in tree(here).items() if "__pycache__" not in name}
        if after != before:
            violations.append((words, code, "files changed", str(sorted(set(after) ^ set(before)))))
    assert not violations


def _prepare_mistakes() -> None:
    tiny = backbone("resnet-tiny").state_dict()
    torch.save(tiny, "w.pth")
    save_file(dict(tiny), "odd.safetensors", {"backbone": "resnet-tiny", "image_size": "large"})
    for name in ("CUT", "EMPTY", "TORN"):
        shutil.copytree("RUN", name)
    for name in ("CUT", "EMPTY"):
        Path(name, "summary.json").unlink()
    shutil.rmtree("EMPTY/checkpoints")
    Path("TORN/summary.json").write_text("{")
    Path("maps.py").write_text("import torch\ndef maps():\n    return torch.nn.Conv2d(3, 4, 3)\n")
    torch.save(torch.nn.Conv2d(3, 4, 3).state_dict(), "maps.pth")
    pytest.importorskip("timm")
    torch.save(backbone("timm:test_vit").state_dict(), "vit.pth")


@pytest.mark.slow
def test_from_a_true_training_to_somebody_else_s_model(tmp_path: Path, capsys: Capture) -> None:
    """Two words: train, export; then three lines that anybody with torchvision has."""
    sizes = (
        "--image-size 32 --train-images 64 --test-images 40 --batch 16 --epochs 1 --warmup-epochs 0 --num-neighbors 5"
    )
    heads = (
        "--projector 16 16 --h-hidden 8 --g-hidden 8 --online-bank 64 --online-queries 20 --eval-every 0 --device cpu"
    )
    run = tmp_path / "run"
    words = ["train", "--recipe", "smoke", "--backbone", "resnet18", *sizes.split(), *heads.split(), "--out", str(run)]
    assert said(words, capsys)[0] == 0
    out = tmp_path / "w.pth"
    code, _, err = said(["export", str(run), "--to", "torchvision", "--out", str(out)], capsys)
    assert code == 0, err
    model = torchvision.models.resnet18()
    model.load_state_dict(torch.load(out, weights_only=True), strict=True)
    summary = json.loads((run / "summary.json").read_text())
    assert f"| {summary['knn']:.2f} | {summary['linear']:.2f} |" in Path(f"{out}.md").read_text()
