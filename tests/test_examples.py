"""Every example runs as a user would start it, and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
LINES = 60
QUICK = {"dynamics_portrait": ["portrait.png"]}
SLOW = {
    "own_training_loop": ["10"],
    "folder_to_features": ["{photos}", "runs/photos"],
    "own_backbone_and_dataset": [],
    "continual_stream": ["runs/stream"],
    "custom_evaluation": ["{run_folder}"],
}


def output(name: str, arguments: list[str], cwd: Path) -> str:
    """What an example prints; it must end with exit code 0."""
    environment = os.environ | {"PHINETS_DATA": str(cwd / "data"), "MPLBACKEND": "agg"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    process = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_every_example_is_run_here_and_short() -> None:
    files = {path.stem: path.read_text().splitlines() for path in EXAMPLES.glob("*.py")}
    assert set(files) == QUICK.keys() | SLOW.keys()
    assert len(files) >= 6
    assert not {name: len(lines) for name, lines in files.items() if len(lines) >= LINES}


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_example_runs(name: str, tmp_path: Path) -> None:
    assert output(name, QUICK[name], tmp_path).splitlines()[-1] == "portrait.png"
    assert (tmp_path / "portrait.png").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_an_example_runs(name: str, tmp_path: Path, photos: Path, run_folder: Path) -> None:
    places = {"photos": str(photos), "run_folder": str(run_folder)}
    assert output(name, [word.format(**places) for word in SLOW[name]], tmp_path)
