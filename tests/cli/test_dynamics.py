"""`phinets dynamics`, as a person at a keyboard meets it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phinets.cli.dynamics import ACTIONS
from phinets.dynamics.equilibria import equilibria
from phinets.dynamics.systems import PhiNet
from tests.cli.test_main import said

Capture = pytest.CaptureFixture[str]
MINE = ("equilibria", "bifurcations", "basins")


def _document(words: list[str], capsys: Capture) -> Any:
    code, out, err = said(["dynamics", *words, "--json"], capsys)
    assert code == 0, err
    return json.loads(out)


def test_without_an_action_the_actions_are_told(capsys: Capture) -> None:
    code, out, _ = said(["dynamics"], capsys)
    assert code == 0
    assert all(action in out for action in ACTIONS)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_help_with_an_example(action: str, capsys: Capture) -> None:
    code, out, _ = said(["dynamics", action, "--help"], capsys)
    assert code == 0
    assert f"Example: phinets dynamics {action}" in out
    assert "--json" in out


@pytest.mark.parametrize("action", MINE)
def test_the_example_of_the_help_works(
    action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    _, out, _ = said(["dynamics", action, "--help"], capsys)
    example = out.split("Example: phinets ")[1].splitlines()[0].split()
    small = ["--grid", "11"] if action == "basins" else []
    code, out, err = said([*example, *small], capsys)
    assert (code, err) == (0, "")
    assert out.strip()


@pytest.mark.parametrize("action", MINE)
def test_help_comes_without_torch_scipy_or_matplotlib(action: str) -> None:
    code = (
        "import sys\nfrom phinets.cli.main import main\n"
        f"try:\n    main(['dynamics', '{action}', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'scipy', 'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_equilibria_are_those_of_the_library(capsys: Capture) -> None:
    document = _document(["equilibria", "--version", "published", "--sigma2", "0.5", "--rho", "0.01"], capsys)
    expected = equilibria(PhiNet(sigma2=0.5, rho=0.01, version="published"))
    assert document["equilibria"] == [each.plain() for each in expected]
    assert {"psi", "gamma", "kind", "eigenvalues"} <= document["equilibria"][0].keys()
    assert (document["system"], document["version"], document["rho"]) == ("phinet", "published", 0.01)
    assert document["sinks"] == sum(each.kind == "sink" for each in expected)


def test_the_default_version_is_the_corrected_one(capsys: Capture) -> None:
    assert _document(["equilibria"], capsys) == _document(["equilibria", "--version", "corrected"], capsys)
    assert _document(["equilibria"], capsys) != _document(["equilibria", "--version", "published"], capsys)


@pytest.mark.parametrize("system", ["simsiam", "phinet", "phinet-phi", "x-phinet"])
def test_every_system_has_every_action(system: str, capsys: Capture) -> None:
    _, shown, _ = said(["dynamics", "equilibria", "--system", system], capsys)
    assert "collapsed" in shown
    found = _document(["bifurcations", "--system", system], capsys)
    assert len(found["sinks"]) == len(found["bifurcations"]) + 1 == len(found["regimes"])
    assert {"rho", "psi", "gamma"} <= found["bifurcations"][0].keys()
    _, shown, _ = said(["dynamics", "bifurcations", "--system", system], capsys)
    assert "2 sinks, MEDIUM" in shown
    ends = _document(["basins", "--system", system, "--grid", "5"], capsys)
    assert sum(sink["share"] for sink in ends["sinks"]) + ends["undecided"] / 25 == pytest.approx(1)


def test_simsiam_s_threshold_comes_out(capsys: Capture) -> None:
    words = ["bifurcations", "--system", "simsiam", "--sigma2", "3"]
    assert [each["rho"] for each in _document(words, capsys)["bifurcations"]] == [1 / 16]
    assert [each["rho"] for each in _document([*words, "--tau", "0.5"], capsys)["bifurcations"]] == [1 / 64]


def test_basins_tell_shares_beside_simsiam_s_and_write_the_map_once(tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "map.npz"
    words = ["basins", "--box", "0.01", "0.1", "0", "2", "--grid", "9", "--out", str(target)]
    document = _document(words, capsys)
    with np.load(target, allow_pickle=False) as saved:
        shares = [np.mean(saved["labels"] == number) for number in range(len(saved["sinks"]))]
        assert [sink["share"] for sink in document["sinks"]] == pytest.approx(shares)
        assert (saved["psi"][0], saved["gamma"][-1]) == (0.01, 2)
    assert document["non_collapsed"] > document["simsiam"]["non_collapsed"]
    code, _, err = said(["dynamics", *words], capsys)
    assert code == 2
    assert "--overwrite" in err
    assert said(["dynamics", *words, "--overwrite"], capsys)[0] == 0


@pytest.mark.parametrize(("name", "begins"), [("MAP.NPZ", b"PK"), ("MAP.PNG", b"\x89PNG")])
def test_an_ending_may_be_written_large(name: str, begins: bytes, tmp_path: Path, capsys: Capture) -> None:
    _document(["basins", "--grid", "5", "--out", str(tmp_path / name)], capsys)
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["equilibria", "--rho", "0"], "rho is 0.0"),
        (["equilibria", "--rho", "nan"], "rho is nan"),
        (["equilibria", "--rho", "1e-13"], "Give e.g. 0.03"),
        (["equilibria", "--sigma2", "-1"], "sigma2 is -1.0"),
        (["equilibria", "--system", "phi-net"], "Did you mean 'phinet'"),
        (["equilibria", "--system", "matrix"], "phinet-phi"),
        (["bifurcations", "--system", "matrix"], "phinet-phi"),
        (["equilibria", "--version", "printed"], "Known: corrected, published"),
        (["equilibria", "--tau", "0.5"], "--tau 0.5 is for simsiam"),
        (["equilibria", "--system", "x-phinet", "--kappa", "0"], "kappa is 0.0"),
        (["bifurcations", "--rho-min", "0.2", "--rho-max", "0.1"], "range of rho"),
        (["basins", "--box", "1", "0", "0", "1"], "psi is from 1.0 to 0.0"),
        (["basins", "--grid", "1"], "grid is 1"),
        (["basins", "--phi", "1"], "phi 1.0 does not apply"),
        (["basins", "--out", "map.txt"], ".npz"),
        (["basin"], "Did you mean 'basins'"),
    ],
)
def test_a_mistake_is_told_with_its_cure(words: list[str], says: str, capsys: Capture) -> None:
    code, out, err = said(["dynamics", *words], capsys)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err
