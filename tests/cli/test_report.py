"""`phinets report`."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from phinets.cli import main
from phinets.config.jobs import ContinualJob
from phinets.paper.scales import SCALES
from phinets.paper.targets import TARGETS
from phinets.reproduce.store import Store
from tests.page import faking


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two targets at the smallest scale."""
    root = tmp_path_factory.mktemp("store")
    for result in faking.results([TARGETS["ema-beta"], TARGETS["fast-slow"]], SCALES["smoke"]).values():
        Store(root).put(result)
    return root


def said(words: list[object], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    code = left.value.code
    assert isinstance(code, int)
    return code, out, err


def test_it_writes_a_page_and_says_what_is_in_it(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    code, told, _ = said(["report", store, "--out", out, "--title", "Mine", "--json"], capsys)
    assert code == 0
    document = json.loads(told)
    page = out.read_text(encoding="utf-8")
    assert "<title>Mine</title>" in page
    claims = sum(len(TARGETS[name].claims) for name in ("ema-beta", "fast-slow"))
    assert document["bytes"] == len(page.encode())
    assert document["scales"] == ["smoke"]
    assert sorted(document["targets"]) == ["ema-beta", "fast-slow"]
    assert document["claims"] == {"holds": 0, "does not hold": 0, "can't tell": claims, "uninformative": 0}
    assert document["results"] == len(list((store / "results").iterdir()))
    assert list(tmp_path.glob(".*")) == [], "nothing half-written is left"


def test_the_tables_alone_are_written_as_markdown(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = said(["report", store, "--out", tmp_path / "tables.md"], capsys)
    assert code == 0
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert all(f"`{name}`" in text for name in ("ema-beta", "fast-slow"))
    assert "<html" not in text


def test_a_page_is_overwritten_only_when_asked_and_shows_only_what_is_chosen(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    out.write_text("mine", encoding="utf-8")
    code, _, err = said(["report", store, "--out", out], capsys)
    assert code == 2
    assert "already there" in err
    assert out.read_text(encoding="utf-8") == "mine"
    code, told, _ = said(["report", store, "--out", out, "--overwrite", "--targets", "fast-slow"], capsys)
    assert code == 0
    assert str(out) in told
    page = out.read_text(encoding="utf-8")
    assert 'id="smoke-fast-slow"' in page
    assert 'id="smoke-ema-beta"' not in page
    assert 'id="others"' not in page, "results of targets that are not shown belong somewhere all the same"


def test_results_of_no_target_make_a_page_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = next(iter(faking.results([TARGETS["ema-beta"]], SCALES["smoke"]).values()))
    assert isinstance(one.job, ContinualJob)
    Store(tmp_path / "s").put(replace(one, job=ContinualJob(run=replace(one.job.run, batch=10))))
    code, told, _ = said(["report", tmp_path / "s", "--out", tmp_path / "r.html", "--json"], capsys)
    assert code == 0
    assert json.loads(told)["others"] == 1
    assert "1 result belongs to no table or figure" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "phinets report runs/reproduce"),
        (["nowhere"], "'nowhere'"),
        (["{store}", "--targets", "fast-slo"], "Did you mean 'fast-slow'?"),
        (["{store}", "--scale", "large"], "large"),
        (["{store}", "--out", "report.pdf"], "'report.html'"),
        (["{store}", "--out", "no/such/report.html"], "there is no folder 'no/such'"),
        (["{empty}"], "there is no finished result in"),
    ],
)
def test_mistakes_are_told_with_their_cure(
    words: list[str],
    complaint: str,
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "results").mkdir(parents=True)
    places = {"store": str(store), "empty": str(tmp_path / "empty")}
    code, out, err = said(["report", *(word.format(**places) for word in words)], capsys)
    assert code == 2
    assert complaint in err
    assert out == ""
    assert not list(tmp_path.glob("*.html"))


def test_help_comes_without_torch_and_matplotlib_and_with_an_example() -> None:
    code = (
        "import sys\nfrom phinets.cli.report import command\n"
        "try: command(['--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'matplotlib', 'scipy', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert "Example: phinets report" in done.stdout
