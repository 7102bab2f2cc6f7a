"""`phinets detect`, as a person at a keyboard meets it."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from phinets.cli.detect import parse
from phinets.config.detection import DetectionConfig, pocket, smoke
from phinets.config.errors import UserError
from tests.cli.test_main import said
from tests.detection.helpers import squares, voc

Capture = pytest.CaptureFixture[str]
QUICK = shlex.split(
    "--recipe smoke --iterations 2 --train-sides 48 --test-side 48 --max-side 64 --device cpu --train-images 4"
)


def test_help_comes_without_torch() -> None:
    code = (
        "import sys\nfrom phinets.cli.detect import parse\n"
        "try: parse(['--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert "Example: phinets detect" in done.stdout


def test_options_change_the_recipe_that_they_name() -> None:
    assert parse(["RUN", "--data", "voc:x"]).how.training == pocket().training
    assert parse(["RUN", "--data", "voc:x", "--recipe", "paper"]).how.training == DetectionConfig().training
    changed = parse(["RUN", "--data", "voc:x", "--recipe", "smoke", "--iterations", "9"]).how
    assert changed.training.iterations == 9
    assert changed.training.batch == smoke().training.batch
    assert changed.images.data == "voc:x"


def test_the_paper_s_recipe_is_detectron2_s_for_c4_on_voc() -> None:
    paper = DetectionConfig()
    assert paper.training.peak_lr == 0.02
    assert (paper.images.train_sides[0], paper.images.train_sides[-1], paper.images.test_side) == (480, 800, 800)
    assert paper.proposals.regions == 512
    assert "24,000 steps of batch 16, lr 0.02" in paper.describe()
    assert "a tenth after 18,000 and 22,000, warm-up 100" in paper.describe()


def test_a_transfer_says_its_table_its_protocol_and_its_folder(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    home = squares(tmp_path / "squares", train=4, test=2)
    words = ["detect", str(run_folder), "--data", f"voc:{home}", *QUICK, "--scratch", "--out", "out"]
    code, out, err = said([*words, "--json"], capsys)
    document = json.loads(out)
    assert code == 0, err
    assert document["folder"] == "out"
    assert [arm["name"] for arm in document["detectors"]] == ["encoder", "scratch"]
    assert set(document["detectors"][0]["precision"]["voc07"]) == {"ap", "ap50", "ap75", "per_class", "per_class50"}
    assert "step 2/2" in err
    code, shown, _ = said(["detect", "--resume", "out", "--metric", "voc07"], capsys)
    assert code == 0
    assert "fresh weights" in shown
    assert "VOC 2007's: 11 points of recall" in " ".join(shown.split())
    assert "AP75" in shown
    assert "square" in shown
    code, out, _ = said([*words, "--json"], capsys)
    assert code == 2
    assert "already holds a run" in json.loads(out)["error"]


MISTAKES: list[tuple[list[str], str]] = [
    (["--data", "voc:cats"], "name the encoder"),
    (["RUN"], "name the annotated images: --data voc:PATH"),
    (["RUN", "--data", "folder:cats"], "'folder:cats' is no place of annotated images"),
    (["RUN", "--data", "voc:"], "'voc:' is no place of annotated images"),
    (["RUN", "--data", "voc:nowhere"], "there is no folder"),
    (["RUN", "--data", "voc:RUN"], "not in VOC's layout"),
    (["nowhere", "--data", "voc:cats"], "there is no file 'nowhere'"),
    (["UNFINISHED", "--data", "voc:cats"], "has no checkpoint"),
    (["RUN", "--data", "voc:cats", "--classes", "emu"], "there is no class called 'emu'"),
    (["RUN", "--data", "voc:cats", "--test-set", "trainval"], "both splits"),
    (["RUN", "--data", "voc:cats", "--recipe", "big"], "there is no recipe of `phinets detect` called 'big'"),
    (["RUN", "--data", "voc:cats", "--batch", "0"], "batch is 0"),
    (["RUN", "--data", "voc:cats", "--accumulate", "3"], "can't be split into 3 equal micro-batches"),
    (["RUN", "--data", "voc:cats", "--lr", "0"], "lr is 0.0"),
    (["RUN", "--data", "voc:cats", "--train-sides", "8"], "train_sides is (8,)"),
    (["RUN", "--data", "voc:cats", "--max-side", "100"], "max_side is 100"),
    (["RUN", "--data", "voc:cats", "--anchor-sizes", "0"], "anchor_sizes is"),
    (["RUN", "--data", "voc:cats", "--metric", "map"], "invalid choice"),
    (["RUN", "--data", "voc:cats", "--encoder", "fast", "--backbone", "resnet18"], "Leave out --backbone"),
    (["RUN", "--data", "voc:cats", "--out", "RUN", "--overwrite"], "holds no run"),
    (["RUN", "--data", "voc:cats", "--device", "abacus"], "the device 'abacus' can't be used"),
    (["flat.pth", "--data", "voc:cats", "--backbone", "flat.flat"], "does not fit a C4 detector"),
    (["--resume", "RUN"], "holds no detection transfer to resume"),
    (["--resume", "RUN", "--recipe", "smoke"], "Use one of them"),
]


def test_a_mistake_gets_one_paragraph_and_exit_code_2(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run_folder, "RUN")
    Path("UNFINISHED").mkdir()
    shutil.copy(run_folder / "config.yaml", "UNFINISHED")
    voc(Path("cats"))
    Path("flat.py").write_text(
        "import torch\ndef flat():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12288, 2))\n"
    )
    torch.save({"1.weight": torch.zeros(2, 12288), "1.bias": torch.zeros(2)}, "flat.pth")
    before, violations = sorted(Path.cwd().rglob("*")), []
    for words, text in MISTAKES:
        code, out, err = said(["detect", *words], capsys)
        if (code, out) != (2, "") or text not in " ".join(err.split()) or "Traceback" in err:
            violations.append((words, code, out, err))
        after = [path for path in sorted(Path.cwd().rglob("*")) if "__pycache__" not in str(path)]
        if after != before:
            violations.append((words, code, "files changed", str(set(after) ^ set(before))))
    assert not violations


def test_a_detector_is_trained_by_one_process(monkeypatch: pytest.MonkeyPatch, run_folder: Path) -> None:
    from phinets.runs.detect import build_detection

    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="torchrun"):
        build_detection(run_folder, smoke())
