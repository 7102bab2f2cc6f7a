"""`phinets data`, as a person at a keyboard meets it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phinets.cli.data import ACTIONS
from phinets.data import DATA, PLACES
from phinets.reports.image_figures import samples
from tests.cli.test_main import TINY, said
from tests.data import making

pytestmark = pytest.mark.filterwarnings("ignore:.*not the published file:UserWarning")
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_has_help_with_an_example(action: str, capsys: Capture) -> None:
    code, out, _ = said(["data", action, "--help"], capsys)
    assert code == 0
    assert f"Example: phinets data {action}" in out
    assert "--json" in out


def test_list_tells_every_name_what_it_is_and_whether_it_is_there(tmp_path: Path, capsys: Capture) -> None:
    making.cifar10(tmp_path)
    code, out, _ = said(["data", "list", "--root", str(tmp_path), "--json"], capsys)
    rows = json.loads(out)
    assert code == 0
    assert set(rows) == {*DATA, *(f"{kind}:{'NAME' if kind == 'stream' else 'PATH'}" for kind in PLACES)}
    assert all(row["what"] for row in rows.values())
    assert rows["cifar10"]["state"].startswith("found in")
    assert "--download" in rows["stl10"]["state"]
    shown = said(["data", "list"], capsys)[1]
    assert all(name in shown for name in rows)


def test_check_tells_what_is_there(tmp_path: Path, capsys: Capture) -> None:
    pixels = making.cifar10(tmp_path)
    code, out, _ = said(["data", "check", "cifar10", "--root", str(tmp_path), "--json"], capsys)
    document = json.loads(out)
    assert code == 0
    assert set(document["splits"]) == {"train", "test"}
    train = document["splits"]["train"]
    assert (train["images"], train["labeled"], train["bad"]) == (100, 100, [])
    assert train["classes"] == dict.fromkeys(making.TEN, 10)
    assert train["mean"] == pytest.approx((pixels / 255).mean(axis=(0, 2, 3)))
    shown = said(["data", "check", "cifar10", "--root", str(tmp_path)], capsys)[1]
    assert "10 classes, 10 images each" in shown
    assert "32 × 32" in shown
    assert "std at 32 px" in " ".join(shown.split())
    assert train["image_size"] == 32


def test_check_looks_at_a_part_some_classes_or_the_first_few(tmp_path: Path, capsys: Capture) -> None:
    making.stl10(tmp_path)
    words = ["data", "check", "stl10", "--root", str(tmp_path), "--json"]
    splits = json.loads(said([*words], capsys)[1])["splits"]
    assert {name: (part["images"], part["labeled"]) for name, part in splits.items()} == {
        "train": (15, 6), "test": (4, 4), "bank": (6, 6),
    }  # fmt: skip
    assert set(json.loads(said([*words, "--split", "bank"], capsys)[1])["splits"]) == {"bank"}
    limited = json.loads(said([*words, "--limit", "3"], capsys)[1])["splits"]
    assert [part["images"] for part in limited.values()] == [3, 3, 3]
    chosen = json.loads(said([*words, "--classes", "bird", "2"], capsys)[1])["splits"]
    assert all(set(part["classes"]) == {"bird", "car"} for part in chosen.values())


def folder_with_damage(root: Path) -> Path:
    for i in range(9):
        Image.fromarray(making.noise(10 + i, 20, 3)).save(root / f"{i}.png")
    (root / "bad.png").write_text("text")
    return root


def test_check_names_every_damaged_file_and_says_that_labels_lack(tmp_path: Path, capsys: Capture) -> None:
    name = f"folder:{folder_with_damage(tmp_path)}"
    code, out, _ = said(["data", "check", name, "--json"], capsys)
    splits = json.loads(out)["splits"].values()
    assert code == 0
    told = [bad for part in splits for bad in part["bad"]]
    assert [bad["where"] for bad in told] == [str(tmp_path / "bad.png")]
    assert "none of JPEG" in told[0]["why"]
    assert sum(part["images"] for part in splits) == 10
    shown = said(["data", "check", name], capsys)[1]
    assert "bad.png': it holds none of JPEG" in shown
    assert "no labels" in shown


def test_check_draws_samples_beside_their_views_and_overwrites_nothing(tmp_path: Path, capsys: Capture) -> None:
    words = ["data", "check", "shapes", "--limit", "12", "--out", str(tmp_path / "s.png")]
    code, out, _ = said([*words, "--json"], capsys)
    assert code == 0
    assert json.loads(out)["picture"] == str(tmp_path / "s.png")
    drawn = (tmp_path / "s.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert said(words, capsys)[0] == 2
    assert said([*words, "--overwrite"], capsys)[0] == 0
    assert (tmp_path / "s.png").read_bytes() == drawn


def test_the_picture_has_a_row_per_image_and_a_column_per_way_of_seeing_it() -> None:
    columns = {name: making.noise(3, 8, 8, 3, seed=i) for i, name in enumerate(("image", "first view"))}
    figure = samples(columns, ["cat", "", "dog"], "title")
    grid = np.array(figure.axes).reshape(3, 2)
    for column, (name, pictures) in zip(grid.T, columns.items(), strict=True):
        assert column[0].get_title() == name
        for cell, picture in zip(column, pictures, strict=True):
            assert (cell.get_images()[0].get_array() == picture).all()
    assert [cell.get_ylabel() for cell in grid[:, 0]] == ["cat", "", "dog"]


def test_prepare_then_train_from_the_disk(tmp_path: Path, capsys: Capture) -> None:
    making.cifar5m_parts(tmp_path / "from", n=40)
    words = ["data", "prepare", "cifar5m", "--root", str(tmp_path), "--from", str(tmp_path / "from"), "--json"]
    code, out, err = said(words, capsys)
    assert code == 0
    assert json.loads(out)["complete"] is True
    assert "part5: converted, 40 images" in err
    assert "already there" in said(words, capsys)[2]
    run = ["train", *TINY, "--data", "cifar5m", "--root", str(tmp_path), "--out", str(tmp_path / "run"), "--json"]
    code, out, err = said(run, capsys)
    assert code == 0, err
    assert json.loads(out)["data"] == "cifar5m"


def test_a_part_that_lacks_is_told_and_the_rest_is_done(tmp_path: Path, capsys: Capture) -> None:
    making.cifar5m_parts(tmp_path / "cifar5m", n=10, parts=(0, 5))
    code, out, err = said(["data", "prepare", "cifar5m", "--root", str(tmp_path)], capsys)
    assert code == 0
    assert "not complete" in out.replace("\n", " ")
    assert "part3: not found" in err


@pytest.mark.parametrize("labeled", [True, False])
def test_a_folder_trains_with_labels_or_without(labeled: bool, tmp_path: Path, capsys: Capture) -> None:
    for i in range(100):
        path = tmp_path / "pictures" / (f"class{i % 2}" if labeled else ".") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(making.noise(18, 18, 3, seed=i)).save(path)
    words = ["--data", f"folder:{tmp_path / 'pictures'}", "--out", str(tmp_path / "run"), "--json"]
    code, out, err = said(["train", *TINY, *words], capsys)
    assert code == 0, err
    assert (json.loads(out)["knn"] is not None) == labeled


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["chek", "shapes"], "Did you mean 'check'"),
        (["check", "shape"], "Did you mean 'shapes'"),
        (["check", "cifar10", "--root", "nowhere"], "phinets data check cifar10 --root nowhere --download"),
        (["check", "shapes", "--limit", "0"], "limit is 0"),
        (["check", "shapes", "--limit", "5", "--split", "bank"], "no split called 'bank'"),
        (["check", "shapes", "--views", "no"], "no view plan"),
        (["check", "shapes", "--limit", "5", "--out", "no/such/x.png"], "can't be written"),
        (["check", "folder:none"], "there is no folder"),
        (["check", "npz:none"], "there is no file"),
        (["prepare", "cifar5m", "--root", "nowhere"], "none of part0.npz"),
        (["prepare", "cifar10"], "cifar10"),
        (["check"], "required"),
    ],
)
def test_a_mistake_gets_one_paragraph_and_exit_code_2(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = said(["data", *words], capsys)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_help_comes_without_torch() -> None:
    code = (
        "import sys\nfrom phinets.cli.data import command\n"
        "try: command(['check', '--help'])\nexcept SystemExit: pass\n"
        "print('TORCH', 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "TORCH False"
