"""`phinets draw continual`: the right picture of the right runs, and a word where there is none."""

from pathlib import Path

import pytest

from phinets.cli.main import main
from phinets.config.record import ContinualRecord
from tests.reports.streams import stream_record

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which folders were read; what stands in them is made up."""
    folders: list[str] = []

    def read(folder: Path) -> ContinualRecord:
        folders.append(str(folder))
        return stream_record(2, seed=len(folders), readouts=("task-knn",))

    monkeypatch.setattr("phinets.runs.resume.stream_record", read)
    return folders


def run(words: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


@pytest.mark.parametrize("figure", ["matrix", "tasks", "fast-slow", "forgetting"])
def test_each_figure_of_a_run_is_drawn(figure: str, asked: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    assert run(["draw", "continual", "runs/a", "--figure", figure, "--out", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert asked == [str(Path("runs/a"))]


def test_forgetting_takes_as_many_runs_as_there_are(asked: list[str], tmp_path: Path) -> None:
    words = ["draw", "continual", "a", "b", "c", "--figure", "forgetting", "--out", str(tmp_path / "x.svg")]
    assert run(words) == 0
    assert asked == ["a", "b", "c"]
    assert "n = 3" in (tmp_path / "x.svg").read_text()


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["continual"], "Name its folder"),
        (["continual", "a", "b"], "use --figure forgetting"),
        (["shapes", "a"], "not a picture of runs"),
    ],
)
def test_what_can_t_be_drawn_is_said(
    words: list[str], cure: str, asked: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert run(["draw", *words, "--out", str(tmp_path / "x.png")]) == 2
    assert cure in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()
    assert not asked
