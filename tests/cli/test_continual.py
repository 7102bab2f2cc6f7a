"""`phinets continual` as a person meets it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phinets.cli import main
from phinets.cli.continual import parse
from phinets.config.continual import ContinualConfig
from phinets.config.errors import UserError
from phinets.runs.recipes import BENCHMARKS

SMALL = [
    *("--epochs-per-task", "1", "--train-images", "120", "--test-images", "40", "--image-size", "16"),
    *("--tasks", "2x2", "--batch", "16", "--eval-every", "0", "--readouts", "task-knn", "--num-neighbors", "5"),
    *("--projector", "16", "16", "--final-bank", "20"),
]


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["continual", *words])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_with_no_further_word_it_is_x_phinet_on_the_embedded_world() -> None:
    config = parse([]).run
    assert (config.method, config.data, config.stream.shape) == ("x-phinet/cosine", "shapes", None)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_is_known_by_name(name: str) -> None:
    assert parse(["--benchmark", name]).run == BENCHMARKS[name]()


def test_options_change_the_benchmark() -> None:
    words = "--benchmark split-cifar100 --tasks 10x10 --replay mixup --epochs-per-task 3 --method byol --order-seed 4"
    config = parse(words.split()).run
    assert (config.data, config.stream.shape, config.stream.order_seed) == ("cifar100", (10, 10), 4)
    assert (config.memory.replay, config.epochs_per_task, config.method) == ("mixup", 3, "byol")


def test_help_comes_without_torch_and_with_an_example() -> None:
    code = (
        "import sys\nfrom phinets.cli.continual import parse\n"
        "try: parse(['--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert "Example: phinets continual" in done.stdout


def test_a_run_prints_one_document_and_a_finished_one_is_only_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said([*SMALL, "--out", str(tmp_path / "run"), "--json"], capsys)
    assert code == 0
    document = json.loads(out)
    assert len(document["readings"][0]["matrix"]) == 2
    assert "after task 2: task-knn fast:" in err
    code, again, _ = said(["--resume", str(tmp_path / "run"), "--json"], capsys)
    assert (code, json.loads(again)) == (0, document)
    code, table, _ = said(["--resume", str(tmp_path / "run")], capsys)
    assert code == 0
    for word in ("task-knn", "forgetting", "transfer", "untrained"):
        assert word in table


@pytest.mark.slow
def test_a_task_is_appended_by_naming_its_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = np.random.default_rng(0)
    np.savez(tmp_path / "new.npz", X=chance.integers(0, 255, (40, 16, 16, 3), np.uint8), Y=chance.integers(0, 2, 40))
    run = str(tmp_path / "run")
    assert said([*SMALL, "--out", run], capsys)[0] == 0
    words = ["--append", run, "--data", f"npz:{tmp_path / 'new.npz'}", "--epochs-per-task", "2", "--json"]
    code, out, _ = said(words, capsys)
    assert code == 0
    document = json.loads(out)
    assert document["tasks"][-1] == "new.npz"
    assert document["readings"][0]["matrix"][0][-1] is None
    assert document["readings"][0]["matrix"][1][-1] is not None
    assert None not in document["readings"][0]["untrained"]
    assert "then new.npz × 2 epochs" in document["protocol"]
    assert said(words, capsys)[0] == 0, "and once more"
    code, out, _ = said(["--resume", run, "--json"], capsys)
    assert (code, len(json.loads(out)["tasks"])) == (0, 4)
    code, out, _ = said(["--config", f"{run}/config.yaml", "--out", str(tmp_path / "again"), "--json"], capsys)
    assert (code, len(json.loads(out)["tasks"])) == (0, 4)


BAD = {
    "--tasks 6x2": "6x2 takes 12 classes, but 'shapes' has 10",
    "--tasks five": "TASKSxCLASSES such as 5x2",
    "--tasks 2x2 --class-order disc nonsense square star": "nonsense",
    "--replay mixup --buffer 64": "buffer holds 64 images, but a step draws a batch of 128",
    "--task-data folder:nowhere folder:nowhere-else": "nowhere",
    "--task-data": "--task-data names no data",
    "--task-data folder:a --data shapes": "--data and --task-data",
    "--split domain": "--split domain takes each first-level folder",
    "--benchmark split-nothing": r"no benchmark called 'split-nothing'.*split-shapes",
    "--readouts knn": "task-knn",
    "--append nowhere --data shapes": "'nowhere' holds no run",
    "--resume nowhere": "'nowhere' holds no run",
    "--benchmark split-shapes --resume nowhere": "--benchmark and --resume",
    "--keep-epochs 2": "--keep-tasks",
    "--encoder slow --method simsiam": "'simsiam' has no slow encoder",
    "--epochs-per-task 0": "--epochs-per-task is 0",
    "--batch 4096 --train-images 2000": "task 1",
}


@pytest.mark.parametrize("words", BAD)
def test_a_mistake_gets_one_paragraph_and_nothing_is_written(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    monkeypatch.chdir(tmp_path)
    small = [] if "--append" in words or "--resume" in words else ["--image-size", "16", "--out", "run"]
    quick = [] if "--train-images" in words or not small else ["--train-images", "600", "--test-images", "100"]
    code, _, err = said([*words.split(), *small, *quick], capsys)
    assert code == 2
    assert re.search(BAD[words], err, re.DOTALL), err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_how_many_images_the_benchmark_takes_has_no_meaning_for_other_data() -> None:
    assert parse([]).run.source.train_images == parse(["--data", "shapes"]).run.source.train_images == 20_000
    for words in (["--data", "folder:a"], ["--task-data", "folder:a", "folder:b"]):
        assert parse(words).run.source.train_images is None
    assert parse(["--data", "folder:a", "--train-images", "9"]).run.source.train_images == 9


def test_a_run_on_data_sets_of_its_own_is_judged_on_what_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from phinets.cli.main import main as door

    chance = np.random.default_rng(0)
    place = f"npz:{tmp_path / 'a.npz'}"
    np.savez(tmp_path / "a.npz", X=chance.integers(0, 255, (60, 16, 16, 3), np.uint8), Y=chance.integers(0, 2, 60))
    words = [word for word in SMALL if word not in ("--tasks", "2x2")]
    code, _, err = said([*words, "--task-data", place, "--out", str(tmp_path / "run")], capsys)
    assert code == 0
    assert "a.npz" in err
    assert "shapes" not in err
    with pytest.raises(SystemExit) as left:
        door(["eval", "knn", str(tmp_path / "run"), "--num-neighbors", "5"])
    assert left.value.code == 2
    assert "--data" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        door(["eval", "knn", str(tmp_path / "run"), "--num-neighbors", "5", "--data", place])
    assert not left.value.code


def test_append_needs_the_new_images(tmp_path: Path) -> None:
    from phinets.training.run_folder import write_config

    write_config(tmp_path, ContinualConfig())
    with pytest.raises(UserError, match="--append needs the images of the new task"):
        parse(["--append", str(tmp_path)])
    with pytest.raises(UserError, match="--out"):
        parse(["--append", str(tmp_path), "--data", "shapes", "--out", "elsewhere"])


def test_each_kind_of_run_is_sent_to_its_own_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from phinets.config.run import PretrainConfig
    from phinets.training.run_folder import write_config

    for name, config in (("stream", ContinualConfig()), ("body", PretrainConfig())):
        (tmp_path / name).mkdir()
        write_config(tmp_path / name, config)
    code, _, err = said(["--resume", str(tmp_path / "body")], capsys)
    assert code == 2
    assert "Use `phinets train`" in err
    with pytest.raises(SystemExit):
        main(["train", "--resume", str(tmp_path / "stream")])
    assert "Use `phinets continual`" in capsys.readouterr().err
