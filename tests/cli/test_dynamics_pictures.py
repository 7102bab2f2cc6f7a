"""`phinets dynamics portrait` and `explore`, as a person at a keyboard meets them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.systems import PhiNet
from phinets.reports.explorer import explorer
from tests.cli.test_main import said

Capture = pytest.CaptureFixture[str]
BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("action", ["portrait", "explore"])
def test_every_action_has_help_with_an_example_and_comes_without_heavy_imports(action: str) -> None:
    code = (
        f"import sys\nfrom phinets.cli import main\ntry: main(['dynamics', '{action}', '--help'])\n"
        "except SystemExit: pass\nprint('HEAVY', [m for m in ('torch', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"
    assert f"Example: phinets dynamics {action}" in done.stdout
    assert "--json" in done.stdout


@pytest.mark.parametrize("ending", BEGINS)
def test_portrait_draws_in_the_format_that_the_ending_names(ending: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / f"p.{ending}"
    code, out, _ = said(["dynamics", "portrait", "--rho", "0.03", "--out", str(path)], capsys)
    assert code == 0
    assert path.name in out
    assert path.read_bytes().startswith(BEGINS[ending])


def test_portrait_tells_the_equilibria_that_it_shows(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "p.png"
    words = ["--version", "published", "--sigma2", "0.7", "--rho", "0.01", "--start", "0.1", "0.2", "--out", str(path)]
    code, out, _ = said(["dynamics", "portrait", *words, "--json"], capsys)
    document = json.loads(out)
    assert code == 0
    assert (document["picture"], document["figure"]) == (str(path), "portrait")
    ours = [point.plain() for point in equilibria(PhiNet(sigma2=0.7, rho=0.01, version="published"))]
    assert document["shown"] == [{"rho": 0.01, "equilibria": ours}]


@pytest.mark.parametrize(
    ("words", "rhos"),
    [
        (["--figure", "line", "--system", "simsiam", "--sigma2", "0.5"], [1.08 / 6, 0.8 / 6]),
        (["--figure", "comparison"], [0.08, 0.08]),
        (["--figure", "comparison", "--rho", "0.05"], [0.05, 0.05]),
        (["--system", "simsiam", "--tau", "0.9"], [0.03]),
    ],
)
def test_every_figure_shows_its_weight_decays(
    words: list[str], rhos: list[float], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "p.png"
    code, out, _ = said(["dynamics", "portrait", *words, "--out", str(path), "--json"], capsys)
    assert code == 0
    assert [each["rho"] for each in json.loads(out)["shown"]] == pytest.approx(rhos)
    assert Image.open(path).width > 300


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rho", "0"], "rho is 0.0, but must be above 0"),
        (["--sigma2", "-1"], "sigma2 is -1.0"),
        (["--system", "phinett"], "Did you mean 'phinet'?"),
        (["--system", "x-phinet"], "can't show x-phinet"),
        (["--figure", "line"], "Give --system simsiam"),
        (["--figure", "regimes", "--rho", "0.1"], "Leave --rho 0.1 out"),
        (["--figure", "regimes", "--box", "0", "1", "0", "1"], "Leave --box and --start out"),
        (["--box", "1", "0", "0", "1"], "the box is empty"),
        (["--box", "0", "1", "2", "2"], "the box is empty"),
        (["--start", "nan", "0"], "finite"),
        (["--start", "1e20", "0"], "within ±1e+06"),
        (["--start", "0", "-1e200"], "within ±1e+06"),
        (["--start", "0.1"], "start"),
        (["--out", "p.xyz"], "its ending must be one of"),
    ],
)
def test_a_mistake_is_told_with_its_cure_and_writes_nothing(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = said(["dynamics", "portrait", *words], capsys)
    assert code == 2
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_another_place_is_offered_with_the_ending_that_was_asked_for(capsys: Capture) -> None:
    code, _, err = said(["dynamics", "explore", "--out", "nowhere/x.html"], capsys)
    assert code == 2
    assert "e.g. 'x.html'" in err


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("box", [[], ["--box", "-0.1", "0.5", "0", "1"]])
@pytest.mark.parametrize("words", [["--system", "simsiam"], ["--figure", "comparison"], []])
def test_a_start_outside_the_window_spoils_no_picture(
    words: list[str], box: list[str], tmp_path: Path, capsys: Capture
) -> None:
    more = [*words, *box, "--start", "1e3", "0", "--out", str(tmp_path / "p.png")]
    assert said(["dynamics", "portrait", *more], capsys)[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["bifurcations", "--rho-min", "0.05"],
        ["bifurcations", "--rho-max", "1e-6"],
        ["bifurcations", "--system", "simsiam", "--figure", "map"],
        ["basins", "--grid", "21", "--rho", "0.05"],
        ["basins", "--grid", "21", "--system", "simsiam"],
    ],
)
def test_bifurcations_and_basins_draw_what_they_tell(words: list[str], tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "drawn.png"
    code, out, _ = said(["dynamics", *words, "--out", str(path), "--json"], capsys)
    document = json.loads(out)
    assert code == 0
    assert str(path) in (document.get("picture"), document.get("map"))
    panels = 1 + (words == ["basins", "--grid", "21", "--rho", "0.05"])
    assert Image.open(path).width == pytest.approx(panels * 110 * (5.6 if "basins" in words else 7.5), rel=0.1)
    before = path.read_bytes()
    code, _, err = said(["dynamics", *words, "--out", str(path)], capsys)
    assert (code, path.read_bytes()) == (2, before)
    assert "--overwrite" in err


@pytest.mark.parametrize("action", ["portrait", "explore"])
def test_nothing_is_replaced_unasked(action: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / {"portrait": "p.png", "explore": "e.html"}[action]
    path.write_text("mine")
    code, _, err = said(["dynamics", action, "--out", str(path)], capsys)
    assert (code, path.read_text()) == (2, "mine")
    assert "--overwrite" in err
    assert said(["dynamics", action, "--out", str(path), "--overwrite"], capsys)[0] == 0
    assert path.stat().st_size > 1000


def test_explore_writes_the_whole_page(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "explorer.html"
    code, out, _ = said(["dynamics", "explore", "--out", str(path), "--json"], capsys)
    assert code == 0
    assert json.loads(out) == {"page": str(path), "bytes": path.stat().st_size}
    assert path.read_text(encoding="utf-8") == explorer()


@pytest.mark.parametrize("out", ["explorer", ".", "page.txt"])
def test_a_page_has_the_ending_of_a_page(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = said(["dynamics", "explore", "--out", out], capsys)
    assert code == 2
    assert ".html'" in err
    assert list(tmp_path.iterdir()) == []


def test_every_picture_of_the_documentation_is_there_small_and_redrawn_by_make() -> None:
    root = Path(__file__).parents[2]
    text = (root / "docs" / "dynamics.md").read_text(encoding="utf-8")
    shown = re.findall(r"]\((pictures/[^)]*)\)", text)
    assert len(shown) > 8
    make = (root / "Makefile").read_text(encoding="utf-8")
    for picture in shown:
        path = root / "docs" / picture
        assert 1000 < path.stat().st_size < 150_000
        assert f"docs/{picture}" in make
    for line in re.findall(r"^`(phinets dynamics .* --out docs/[^`]*)`$", text, flags=re.MULTILINE):
        assert f"\t{line} --overwrite\n" in make
