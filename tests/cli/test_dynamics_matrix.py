"""`phinets dynamics flow`, `train` and `check-paper`, as a person at a keyboard meets them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phinets.dynamics.matrix import MATRIX_FLOWS, MatrixFlow
from phinets.dynamics.matrix_trajectories import compare_with_reduced
from phinets.reports.dynamics_figures import flow_figure
from tests.cli.test_main import said

Capture = pytest.CaptureFixture[str]
QUICK = ["--time", "20", "--dim", "2", "--input-dim", "3"]
SHORT = ["--time", "1", "--rate", "0.1", "--halvings", "1", "--dim", "2", "--input-dim", "3", "--scale", "0.5"]


def document(words: list[str], capsys: Capture) -> Any:
    code, out, err = said(["dynamics", *words, "--json"], capsys)
    assert code == 0, err
    return json.loads(out)


def saved(path: Path, **more: Any) -> Path:
    random = np.random.default_rng(0)
    weights = {"W_f": random.normal(size=(2, 3)), "W_g": random.normal(size=(2, 2)), "W_h": random.normal(size=(2, 2))}
    np.savez(path, **{name: matrix for name, matrix in (weights | more).items() if matrix is not None})
    return path


@pytest.mark.parametrize("action", ["flow", "train", "check-paper"])
def test_every_action_has_help_with_an_example(action: str, capsys: Capture) -> None:
    code, out, _ = said(["dynamics", action, "--help"], capsys)
    assert code == 0
    assert f"Example: phinets dynamics {action}" in out
    assert "--json" in out


@pytest.mark.parametrize("action", ["flow", "train", "check-paper"])
def test_help_comes_without_torch_scipy_or_matplotlib(action: str) -> None:
    words = f"['dynamics', '{action}', '--help']"
    code = f"""
import sys
from phinets.cli.main import main
try:
    main({words})
except SystemExit:
    pass
print([name for name in ('torch', 'scipy', 'matplotlib') if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().endswith("[]")


@pytest.mark.parametrize("system", MATRIX_FLOWS)
def test_flow_tells_norms_and_eigenvalues_at_a_dozen_times(system: str, capsys: Capture) -> None:
    found = document(["flow", "--system", system, "--rho", "0.05", *QUICK], capsys)
    rows, summary = found["rows"], found["summary"]
    assert len(rows) == 12
    assert (rows[0]["time"], rows[-1]["time"]) == (0, 20)
    has_g = system in ("phinet", "x-phinet")
    assert ("C1" in rows[0], "C2" in rows[0], "asymmetry_g" in rows[0]) == (has_g, True, has_g)
    for row in rows:
        assert row["balance"] == pytest.approx(rows[0]["balance"] * np.exp(-0.1 * row["time"]), rel=1e-6)
        gaps = [
            abs(a - b)
            for name in row["predicted"]
            for a, b in zip(row["eigenvalues"][name], row["predicted"][name], strict=True)
        ]
        assert row["difference"] == pytest.approx(max(gaps))
    assert summary["decay_rates"]["balance"] == pytest.approx(summary["two_rho"], rel=1e-4)
    assert (found["dim"], found["input_dim"]) == (2, 3)


def test_the_matrix_system_is_phinet_s(capsys: Capture) -> None:
    one, two = (document(["flow", "--system", system, *QUICK], capsys) for system in ("matrix", "phinet"))
    assert one["rows"] == two["rows"]


def test_flow_goes_from_weights_of_a_file_and_from_aligned_ones_as_predicted(tmp_path: Path, capsys: Capture) -> None:
    path = saved(tmp_path / "w.npz", W_f=np.diag([0.5, 0.3]), W_g=np.diag([0.1, 0.4]), W_h=np.diag([0.4, 0.2]))
    found = document(["flow", "--start", str(path), "--time", "50"], capsys)
    assert found["start"] == str(path)
    assert found["rows"][0]["eigenvalues"]["psi"] == pytest.approx([0.4, 0.2])
    assert found["summary"]["largest_difference"] < 1e-8


def test_symmetric_starts_are_symmetric_and_the_version_matters(capsys: Capture) -> None:
    one, two = (document(["flow", "--symmetric", "--version", v, *QUICK], capsys) for v in ("published", "corrected"))
    assert one["rows"][0]["asymmetry_h"] < 1e-12 < 1e-3 < one["rows"][-1]["asymmetry_h"]
    first, last = (np.subtract(*(each["rows"][k]["eigenvalues"]["gamma"] for each in (one, two))) for k in (0, -1))
    assert np.abs(first).max() < 1e-12
    assert np.abs(last).max() > 1e-3


def test_without_a_time_flow_goes_on_for_ten_times_that_of_weight_decay(capsys: Capture) -> None:
    assert document(["flow", "--rho", "0.2", "--dim", "2"], capsys)["time"] == pytest.approx(50)


def test_flow_is_told_in_tables_and_drawn_but_not_over_another_picture(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "flow.png"
    words = ["dynamics", "flow", *QUICK, "--out", str(path)]
    code, out, _ = said(words, capsys)
    assert code == 0
    assert path.stat().st_size > 10_000
    assert "2ρ = 0.06" in out
    assert "ψ, reduced" in out
    assert "γ, reduced" in out
    code, _, err = said(words, capsys)
    assert code == 2
    assert "--overwrite" in err
    assert said([*words, "--overwrite"], capsys)[0] == 0


def test_a_wide_table_is_printed_in_full_on_a_narrow_terminal(capsys: Capture, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = said(["dynamics", "train", "--time", "0.4", "--dim", "2"], capsys)
    assert code == 0
    heading, *rows = out.splitlines()[:4]
    assert heading.split()[:2] == ["rate", "steps"]
    assert [row.split()[:2] for row in rows] == [["0.02", "20"], ["0.01", "40"], ["0.005", "80"]]
    assert "…" not in out


def test_the_picture_has_one_panel_of_norms_and_one_for_each_kind_of_eigenvalue() -> None:
    system = MatrixFlow()
    start = {"W_f": np.eye(2), "W_g": np.array([[0.1, 0.5], [0.0, 0.2]]), "W_h": np.eye(2)}
    figure = flow_figure(compare_with_reduced(system, start, np.linspace(0, 10, 11)), "a title")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == "norms"
    assert len(titles) == 3
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert len(labels) == len(set(labels)) == 6


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rho", "0"], "rho is 0.0"),
        (["--sigma2", "-1"], "sigma2 is -1.0"),
        (["--time", "0"], "time is 0.0"),
        (["--time", "nan"], "time is nan"),
        (["--system", "simsam"], "Did you mean 'simsiam'"),
        (["--system", "abc"], "Known: byol, matrix, phinet, simsiam, x-phinet"),
        (["--system", "phinet-phi"], "Give --system phinet here"),
        (["--version", "printed"], "there is no version called 'printed'"),
        (["--tau", "0.9"], "--tau 0.9 is for simsiam"),
        (["--system", "simsiam", "--kappa", "0.9"], "--kappa 0.9 is for byol and x-phinet"),
        (["--dim", "0"], "dim is 0"),
        (["--dim", "5000"], "Choose a smaller --dim"),
        (["--dim", "1000000"], "Choose a smaller --dim"),
        (["--scale", "-1"], "scale is -1.0"),
        (["--seed", "-1"], "seed is -1"),
        (["--start", "nowhere.npz"], "there is no file 'nowhere.npz'"),
        (["--out", "nowhere/flow.png"], "there is no folder 'nowhere'"),
        (["--scale", "1e90"], "could not be integrated"),
    ],
)
def test_bad_words_for_flow_are_told_what_is_right(words: list[str], says: str, capsys: Capture) -> None:
    code, out, err = said(["dynamics", "flow", *words], capsys)
    assert code == 2
    assert says in err
    assert not out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"W_g": np.eye(3)}, "W_g is (3, 3), but beside W_f of (2, 3) it must be (2, 2)"),
        ({"W_h": None}, "there is no W_h"),
        ({"W_h": np.full((2, 2), np.nan)}, "W_h holds NaN"),
        ({"W_h": np.ones(2)}, "W_h is float64 of shape (2,)"),
        ({"W_h": np.eye(2) * 1j}, "W_h is complex128"),
    ],
)
def test_weights_in_a_file_that_don_t_fit_are_told(more: Any, says: str, tmp_path: Path, capsys: Capture) -> None:
    code, _, err = said(["dynamics", "flow", "--start", str(saved(tmp_path / "w.npz", **more))], capsys)
    assert code == 2
    assert says in err


def test_a_start_that_is_no_npz_is_told(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "text.npz").write_text("no weights")
    np.save(tmp_path / "one.npy", np.eye(2))
    np.savez(tmp_path / "objects.npz", W_f=np.array([{}], dtype=object))
    for name in ("text.npz", "one.npy", "objects.npz"):
        code, _, err = said(["dynamics", "flow", "--start", str(tmp_path / name)], capsys)
        assert code == 2
        assert "numpy.savez" in err


def test_a_damaged_compressed_start_is_told(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "w.npz"
    np.savez_compressed(path, W_f=np.random.default_rng(0).normal(size=(20, 30)))
    whole = path.read_bytes()
    for offset in (60, 200, 1000):  # a stream that ends early, one that makes no sense, one of the wrong sum
        path.write_bytes(whole[:offset] + b"\xff" * 8 + whole[offset + 8 :])
        code, _, err = said(["dynamics", "flow", "--start", str(path)], capsys)
        assert code == 2
        assert "can't be read as .npz" in err


def test_a_flow_of_hardly_any_weight_decay_has_an_end(capsys: Capture) -> None:
    assert document(["flow", "--rho", "1e-10", "--dim", "1", "--input-dim", "1"], capsys)["time"] == 1e6


def test_weights_that_rest_have_no_order_of_convergence(tmp_path: Path, capsys: Capture) -> None:
    path = saved(tmp_path / "zeros.npz", W_f=np.zeros((2, 3)), W_g=np.zeros((2, 2)), W_h=np.zeros((2, 2)))
    words = ["train", "--start", str(path), "--time", "1", "--rate", "0.1", "--halvings", "1"]
    assert document(words, capsys)["order"] == {"weights": None, "eigenvalues": None}
    code, out, _ = said(["dynamics", *words], capsys)
    assert (code, "nan" in out, "rate^" in out) == (0, False, False)


def test_a_file_and_words_for_random_weights_exclude_each_other(tmp_path: Path, capsys: Capture) -> None:
    code, _, err = said(["dynamics", "flow", "--start", str(saved(tmp_path / "w.npz")), "--dim", "3"], capsys)
    assert code == 2
    assert "--dim is for random weights" in err


def test_train_tells_how_far_each_learning_rate_is_from_either_flow(capsys: Capture) -> None:
    found = document(["train", *SHORT], capsys)
    assert [row["rate"] for row in found["rows"]] == pytest.approx([0.1, 0.05])
    assert [row["steps"] for row in found["rows"]] == [10, 20]
    near, nearer = (row["corrected"]["weights"]["mean"] for row in found["rows"])
    assert near / nearer == pytest.approx(2, rel=0.15)
    assert found["order"]["weights"] == pytest.approx(1, abs=0.15)
    assert found["rows"][-1]["published"]["weights"]["mean"] > nearer


def test_train_on_samples_tells_mean_and_spread(capsys: Capture) -> None:
    found = document(["train", *SHORT, "--batch", "4", "--system", "simsiam"], capsys)
    assert (found["batch"], found["runs"]) == (4, 3)
    assert found["rows"][0]["corrected"]["weights"]["std"] > 0
    assert "published" not in found["rows"][0]
    code, out, _ = said(["dynamics", "train", *SHORT, "--batch", "4"], capsys)
    assert code == 0
    assert "batches of 4, 3 runs" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rate", "0"], "rate is 0.0"),
        (["--rate", "20"], "at most the time"),
        (["--halvings", "-1"], "halvings is -1"),
        (["--halvings", "40"], "Choose fewer --halvings"),
        (["--batch", "0"], "batch is 0"),
        (["--time", "-1"], "time is -1.0"),
        (["--scale", "9", "--rate", "1"], "diverged"),
    ],
)
def test_bad_words_for_train_are_told_what_is_right(words: list[str], says: str, capsys: Capture) -> None:
    code, _, err = said(["dynamics", "train", *words], capsys)
    assert code == 2
    assert says in err


def test_check_paper_has_a_row_a_statement_with_both_verdicts(capsys: Capture) -> None:
    found = document(["check-paper", "--only", "gradient", "medium", "commutator-3"], capsys)
    assert list(found["statements"]) == ["gradient", "medium", "commutator-3"]
    for row in found["statements"].values():
        assert {"statement", "where", "published", "corrected", "needs", "numbers"} <= set(row)
    code, out, _ = said(["dynamics", "check-paper", "--only", "gradient"], capsys)
    assert code == 0
    assert "published: 0 of 1 hold, corrected: 1 of 1 hold" in out
    _, out, _ = said(["dynamics", "check-paper", "--only", "gradient", "cycles"], capsys)
    assert "corrected: 1 of 1 hold; not counted, since the paper does not state it: cycles" in out


@pytest.mark.parametrize(
    ("words", "says"), [(["--only", "c3"], "there is no statement called 'c3'"), (["--sigma2", "-2"], "sigma2 is -2.0")]
)
def test_bad_words_for_check_paper_are_told_what_is_right(words: list[str], says: str, capsys: Capture) -> None:
    code, _, err = said(["dynamics", "check-paper", *words], capsys)
    assert code == 2
    assert says in err
