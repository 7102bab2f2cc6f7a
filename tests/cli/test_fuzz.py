"""Random command lines: each ends with exit code 0 or 2, and none with a traceback or a bug report."""

import io
import random
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from phinets.cli.main import COMMANDS, main
from tests.cli.test_main import TINY

LINES = 520
SEED = 20250424
TRAIN = ["train", *TINY]
DETECT = ["detect", "nowhere", "--data", "voc:nowhere"]
STARTS: tuple[list[str], ...] = (
    *([name] for name in COMMANDS if name not in ("train", "continual", "bench", "reproduce", "draw", "report")),
    *(["list", kind] for kind in ("methods", "backbones", "data", "views", "recipes", "benchmarks", "fruit")),
    *(["eval", action, "nowhere"] for action in ("knn", "linear", "finetune", "health", "features")),
    ["data", "list"], ["data", "check", "shapes", "--limit", "3"], ["data", "check", "folder:nowhere"],
    ["data", "prepare", "cifar5m"], ["embed", "nowhere"], ["export", "nowhere", "--to", "timm"], DETECT,
    ["report", "nowhere"], ["draw", "continual", "nowhere"], ["reproduce", "cost", "--dry-run"],
    ["reproduce", "--list"], ["dynamics", "equilibria"], ["dynamics", "check-paper", "--only", "nothing"],
    ["train", "--help"], ["continual", "--help"], ["bench", "cost", "--help"],
    *([TRAIN] * 8), *([["continual", "--tasks", "nothing"]] * 3), ["bench", "cost", "--methods", "nothing"],
)  # fmt: skip
"""Beginnings of command lines that end at once, or train for four steps."""
VALUES = (
    "0", "1", "-1", "2", "7", "1e300", "-1e300", "nan", "inf", "-inf", "1e-300", "0.5", "9" * 19, "9" * 25, "9" * 5000,
    "", " ", "-", "--", "=", "x" * 300, "x/" * 200, "nowhere", ".", "..", "/", "/dev/null", "/proc/self/mem", "~",
    "~nosuchuser/x",
    "folder:~nosuchuser/x", "folder:", "folder:.", "npz:", "npz:nowhere.npz", "voc:", "timm:", "timm:nothing",
    "stream:shapes", "shapes", "os.system", "os.path", "a.b.c", "[bold]", "[/red]", "$x$", "%s", "{0}", "\x00", "\x07",
    "\ud800",
    "ä→", "None", "True", "auto", "cpu", "cuda", "cuda:99", "hpu", "meta", "fast", "slow", "both", "none", "mixup",
    "paper", "phinet", "moco-v2", "x-phinet", "byol", "simsiam", "resnet-tiny", "0s", "1steps", "300s", "5x2", "1%",
    "101%",
)  # fmt: skip
SLOW_OPTIONS = {
    "--epochs", "--epochs-per-task", "--train-images", "--test-images", "--image-size", "--backbone", "--recipe",
    "--compile",
    "--download", "--iterations", "--projector", "--h-hidden", "--g-hidden", "--engine", "--grid", "--time",
    "--threads",
    "--batch", "--data", "--limit", "--config", "--resume", "--out", "--log",
}  # fmt: skip
"""Options that get only values that are refused, so that no line trains for long or loads the network."""
REFUSED = ("-1", "nan", "9" * 25, "", "x" * 300, "nowhere", "\x00", "-inf")


def run(words: list[str]) -> tuple[int, str]:
    """Exit code, and all that was printed."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output), pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code or 0), output.getvalue()


def option_names(start: list[str]) -> list[str]:
    """The options in the help of a command, and two that no command has."""
    command = start[:2] if start[0] in ("eval", "data", "dynamics", "bench") else start[:1]
    return sorted({*re.findall(r"--[a-z][a-z0-9-]+", run([*command, "--help"])[1]), "--no-such", "--rece"})


def random_line(chance: random.Random, names: dict[str, list[str]]) -> list[str]:
    """A beginning, some options with values, and sometimes a stray word."""
    start = chance.choice(STARTS)
    line = list(start)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        option = chance.choice(names[start[0]])
        line.append(option)
        if chance.random() < 0.9:
            line.append(chance.choice(REFUSED if option in SLOW_OPTIONS else VALUES))
    if chance.random() < 0.1:
        line.insert(chance.randrange(1, len(line) + 1), chance.choice(VALUES))
    return line


@pytest.mark.slow
def test_no_command_line_ends_in_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHINETS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chance = random.Random(SEED)
    names = {start[0]: option_names(start) for start in STARTS}
    faults = []
    for number in range(LINES):
        line = random_line(chance, names)
        if line[0] == "train":
            line += ["--out", str(tmp_path / f"run{number}")]
        code, text = run(line)
        if code not in (0, 2) or "Traceback" in text:
            faults.append(f"{line}: {code}, {text[-300:]}")
    assert not faults, "\n".join(faults)
