"""The command line, as a person at a keyboard meets it."""

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from phinets.cli.main import COMMANDS, main
from phinets.cli.train import parse
from phinets.config.methods import METHODS
from phinets.runs.recipes import recipe

TINY = shlex.split(
    "--recipe smoke --epochs 1 --batch 16 --train-images 64 --test-images 40 --image-size 16 --projector 16 16 "
    "--h-hidden 8 --g-hidden 8 --online-bank 64 --online-queries 20 --num-neighbors 5 --eval-every 2"
)


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    with pytest.raises(SystemExit) as left:
        main(words)
    captured = capsys.readouterr()
    return int(left.value.code or 0), captured.out, captured.err


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(["--help"], capsys)
    assert code == 0
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said([name, "--help"], capsys)
    assert code == 0
    assert f"Example: phinets {name}" in out
    assert "--json" in out


@pytest.mark.parametrize("kind", ["methods", "backbones", "data", "views", "recipes"])
def test_list_says_what_there_is_one_line_each(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(["list", kind, "--json"], capsys)
    rows = json.loads(out)
    assert code == 0
    assert rows
    assert all(text and "\n" not in text for text in rows.values())
    _, shown, _ = said(["list", kind], capsys)
    assert all(name in shown for name in rows)


def test_list_methods_is_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = said(["list", "methods", "--json"], capsys)
    assert list(json.loads(out)) == list(METHODS)


@pytest.mark.slow
def test_train_prints_exactly_one_json_document(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "phinets", "train", *TINY, "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["folder"] == str(tmp_path / "run")
    assert document["verdict"] in ("healthy", "collapsing", "collapsed")
    assert "step 4/4" in done.stderr


def test_train_ends_with_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(["train", *TINY, "--out", str(tmp_path / "run")], capsys)
    assert code == 0
    assert all(word in out for word in ("raw pixels", "untrained", "kNN %", "linear %"))


def test_options_change_the_recipe_and_nothing_else() -> None:
    parsed = parse(["--recipe", "smoke", "--method", "phinet", "--lr", "0.5"]).run
    expected = recipe("smoke")
    assert (parsed.method, parsed.optimization.lr) == ("phinet", 0.5)
    assert (parsed.epochs, parsed.source, parsed.evaluation) == (expected.epochs, expected.source, expected.evaluation)


def test_a_config_file_is_where_the_other_options_start(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("epochs: 20\noptimization: {lr: 1e-2}\n")
    parsed = parse(["--config", str(tmp_path / "c.yaml"), "--seed", "5"]).run
    assert (parsed.epochs, parsed.optimization.lr, parsed.seed) == (20, 0.01, 5)


def test_with_no_further_word_it_is_the_main_job() -> None:
    assert parse([]).run == recipe("default")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["trane"], "Did you mean 'train'"),
        (["train", "--recipe", "smoak"], "Did you mean 'smoke'"),
        (["train", "--method", "xphinet"], "Did you mean 'x-phinet'"),
        (["train", "--backbone", "resnet-tini"], "Did you mean 'resnet-tiny'"),
        (["train", "--data", "shape"], "Did you mean 'shapes'"),
        (["train", "--views", "none"], "view plan 'none'"),
        (["train", "--warmup-epochs", "100"], "longer than the run"),
        (["train", "--beta", "1.5"], "[0, 1]"),
        (["train", "--batch", "100", "--train-images", "50"], "larger than the data"),
        (["train", "--device", "nonsense"], "--device auto"),
        (["train", "--config", "no-such.yaml"], "no-such.yaml"),
        (["train", "--recipe", "smoke", "--config", "x.yaml"], "Use one of them"),
        (["draw", "shapes", "--out", "no/such/folder/x.png"], "can't be written"),
    ],
)
def test_a_mistake_gets_one_paragraph_and_exit_code_2(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = said(words, capsys)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["train", "--epochs", "many"], ["train", "--no-such-option"], ["list", "fruit"]])
def test_words_that_can_t_be_parsed_leave_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(words, capsys)
    assert code == 2
    assert err
    assert out == ""


def test_a_mistake_under_json_is_a_json_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(["train", "--method", "xphinet", "--json"], capsys)
    assert code == 2
    assert "Did you mean" in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("content", "says"), [("epoch: 3\n", "Did you mean 'epochs'"), ("epochs: soon\n", "whole number"), ("a: [", "YAML")]
)
def test_a_bad_config_file_is_named_with_its_fault(
    content: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    code, _, err = said(["train", "--config", str(path)], capsys)
    assert code == 2
    assert says in err
    assert "bad.yaml" in err


def test_an_existing_run_is_refused_and_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("config.yaml", "env.json"):
        (tmp_path / name).write_text("mine")
    code, _, err = said(["train", *TINY, "--out", str(tmp_path)], capsys)
    assert code == 2
    assert "--overwrite" in err
    assert (tmp_path / "config.yaml").read_text() == "mine"


@pytest.mark.parametrize("picture", ["architecture", "hippocampus", "shapes"])
def test_draw_draws_and_does_not_overwrite(picture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["draw", picture, "--out", str(tmp_path / "picture.png")]
    assert said(words, capsys)[0] == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert said(words, capsys)[0] == 2


def test_names_with_brackets_are_shown_as_they_are() -> None:
    from rich.console import Console

    from phinets.cli.train import Terminal

    console = Console(file=io.StringIO(), width=200)
    Terminal(console).on_message("'pictures/[/red]/[bold]x.png' can't be used")
    assert "pictures/[/red]/[bold]x.png" in console.file.getvalue()  # type: ignore[attr-defined]


def test_an_option_without_its_value_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["train", "--resume"])
    assert left.value.code == 2
    assert "--resume" in capsys.readouterr().err


def test_a_run_folder_of_version_0_1_is_refused_with_the_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("method: phinet\noptimisation:\n  lr: 0.03\njudging:\n  look_every: 10\n")
    for words in (["train", "--resume", str(tmp_path)], ["continual", "--config", str(tmp_path / "config.yaml")]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 2
        assert "phinets 0.1" in capsys.readouterr().err
