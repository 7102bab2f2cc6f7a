"""No command line ends in a traceback: exit code 2 for what the user can change, 1 with a bug report for the rest."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from phinets.cli.command import Outcome, round_numbers
from tests.cli.test_main import TINY, said

PHINETS = [sys.executable, "-m", "phinets"]
HUGE = "9" * 25


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a command line that must exit with 2 and one line."""
    code, _, err = said(words, capsys)
    assert (code, err.count("\n")) == (2, 1), f"{words}: {code}, {err}"
    return err


def test_a_bug_gets_a_short_message_and_a_report_with_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("phinets.cli.list._rows", lambda kind: {}[kind])
    code, out, err = said(["list", "methods", "--json"], capsys)
    (report,) = tmp_path.iterdir()
    assert (code, err.count("\n"), "Traceback" in err) == (1, 1, False)
    assert str(report) in err
    assert str(report) in json.loads(out)["error"]
    assert all(text in report.read_text() for text in ("Traceback", "KeyError", "list", "phinets"))


def test_whole_numbers_beyond_64_bits_are_refused_in_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    _, page, _ = said(["train", "--help"], capsys)
    options = set(re.findall(r"(--[a-z-]+) (?:\{None\}\|)?(?:\{?\[?INT)", page))
    assert len(options) > 20
    for option in options:
        refusal(["train", option, HUGE], capsys)
    others = ("continual --buffer", "detect x --data voc:x --batch", "eval knn x --bank", "embed x --queries")
    for line in (*others, "bench cost --batches", "data check shapes --limit", "reproduce voc --seeds"):
        refusal([*line.split(), HUGE], capsys)
    refusal(["train", "--epochs", "9" * 400], capsys)
    refusal(["train", "--epochs", "9" * 5000], capsys)
    refusal(["dynamics", "train", "--halvings", "99999999999"], capsys)


def test_paths_devices_and_numbers_that_can_t_be_used_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "too long" in refusal(["train", *TINY, "--out", "x" * 300], capsys)
    assert "too long" in refusal(["draw", "shapes", "--out", f"{'x' * 300}.png"], capsys)
    for words in (["data", "check"], ["train", *TINY, "--data"]):
        assert "no such user" in refusal([*words, "folder:~nosuchuser/x"], capsys)
    assert "--device auto" in refusal(["train", *TINY, "--device", "hpu"], capsys)
    assert "weight_decay" in refusal(["train", *TINY, "--weight-decay", "1e300"], capsys)
    (tmp_path / "dated.yaml").write_text("seed: 2020-99-99\n")
    (tmp_path / "huge.yaml").write_text(f"seed: {HUGE}\n")
    for name in ("dated.yaml", "huge.yaml"):
        assert name in refusal(["train", "--config", name], capsys)


def test_sizes_beyond_the_memory_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "run")]
    words = ["train", *TINY, "--method", "moco-v2", "--queue", "10000000000", *out]
    assert "memory" in said(words, capsys)[2]
    assert said([*words, "--overwrite"], capsys)[0] == 2


def test_the_environment_of_a_launcher_must_hold_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "abc")
    assert "RANK" in refusal(["list", "methods"], capsys)


def test_an_output_without_a_reader_space_or_letters_never_traces_back() -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    unbuffered = buffered | {"PYTHONUNBUFFERED": "1"}
    latin = buffered | {"PYTHONIOENCODING": "latin-1"}
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full:
        cases: dict[str, tuple[list[str], Any, dict[str, str]]] = {
            "pipe": (["list", "methods"], writer, buffered),
            "unbuffered pipe": (["train", "--help"], writer, unbuffered),
            "full": (["list", "methods", "--json"], full, buffered),
            "latin": (["list", "methods"], subprocess.DEVNULL, latin),
        }
        processes = {
            name: subprocess.Popen([*PHINETS, *words], stdout=stdout, stderr=subprocess.PIPE, env=env, text=True)
            for name, (words, stdout, env) in cases.items()
        }
        ends = {name: (process.communicate()[1], process.returncode) for name, process in processes.items()}
    os.close(writer)
    assert not {name: error for name, (error, _) in ends.items() if "Traceback" in error or "Exception" in error}
    assert {name: code for name, (_, code) in ends.items()} == {
        "pipe": 1,
        "unbuffered pipe": 1,
        "full": 2,
        "latin": 0,
    }


def test_help_has_no_colors_under_no_color(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tyro._fmtlib._FORCE_ANSI", False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in said(["list", "--help"], capsys)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = said(["list", "--help"], capsys)
    assert (code, "\x1b[" in out, "phinets list" in out) == (0, False, True)


def test_an_invalid_choice_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["list", "fruit"], ["train", "--optimizer", "adam"], ["continual", "--readouts", "x"]):
        assert refusal(words, capsys).lower().count("invalid choice") == 1


def test_numbers_in_json_have_six_digits_but_those_of_the_dynamics_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"accuracy": 80 / 3, "l2": 1e-5, "held_out": [{"1": 100 / 7}], "n": 123456789, "on": True, "no": None}
    assert round_numbers(document, 6) == document | {"accuracy": 26.6667, "held_out": [{"1": 14.2857}]}
    assert round_numbers(document, None) == document
    monkeypatch.setattr("phinets.cli.list.command", lambda words: Outcome(document, print))
    assert json.loads(said(["list", "--json"], capsys)[1])["accuracy"] == 26.6667
    _, out, _ = said(["dynamics", "equilibria", "--json"], capsys)
    assert max(len(str(point["psi"])) for point in json.loads(out)["equilibria"]) > 10
