"""`phinets embed`, as a person at a keyboard meets it."""

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import phinets
from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions
from phinets.embed import store
from phinets.embed.store import store_folder
from phinets.evaluation.setup import eval_setup
from phinets.reports.progress import CountBar
from tests.cli.test_main import said
from tests.data import making
from tests.helpers import assert_features_close

Capture = pytest.CaptureFixture[str]
RESULTS = ("accuracy", "bank", "queries", "k", "temperature")


def table(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def test_every_picture_s_path_class_and_features_are_in_the_file(
    embed: list[str], run_folder: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "features.npz"
    code, told, err = said([*embed, "--out", str(out), "--json"], capsys)
    assert code == 0, err
    found, document = table(out), json.loads(told)
    paths = sorted(str(path) for path in photos.rglob("*.*"))
    assert found["paths"].tolist() == paths
    assert found["labels"].tolist() == [Path(path).parent.name for path in paths]
    assert found["classes"].tolist() == ["apple", "pear"]
    assert found["features"].dtype == np.float32
    wanted = phinets.load(run_folder, device="cpu")(paths)
    assert_features_close(torch.from_numpy(found["features"]), wanted)
    assert (document["images"], document["features"], document["bad_images"]) == (26, 128, 0)
    about = json.loads(str(found["about"]))
    assert about == {key: value for key, value in document.items() if key != "out"}
    assert about["data"] == f"folder:{photos}"
    assert not store_folder(out).exists()
    with ZipFile(out) as archive:  # the time of day would make every file another one
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert "26/26 images" in err


def test_parquet_holds_what_npz_holds(
    embed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(store, "ROW_GROUP", 10)
    for name in ("f.npz", "f.parquet"):
        assert said([*embed, "--out", str(tmp_path / name)], capsys)[0] == 0
    one, other = table(tmp_path / "f.npz"), parquet.read_table(tmp_path / "f.parquet")
    head = parquet.ParquetFile(tmp_path / "f.parquet").metadata
    assert [head.row_group(i).num_rows for i in range(head.num_row_groups)] == [10, 10, 6]
    assert other.column("path").to_pylist() == one["paths"].tolist()
    assert other.column("split").to_pylist() == one["splits"].tolist()
    assert other.column("label").to_pylist() == one["labels"].tolist()
    assert np.array_equal(np.stack(other.column("feature").to_numpy()), one["features"])
    assert str(other.schema.field("feature").type) == "fixed_size_list<element: float>[128]"
    assert json.loads(other.schema.metadata[b"phinets"]) == json.loads(str(one["about"]))
    assert json.loads(other.schema.metadata[b"classes"]) == one["classes"].tolist()


def test_the_run_s_own_data_have_row_numbers_and_the_features_that_eval_keeps(
    run_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    code, _, err = said(["embed", str(run_folder), "--out", str(tmp_path / "f.npz"), "--device", "cpu"], capsys)
    assert code == 0, err
    found = table(tmp_path / "f.npz")
    assert found["paths"].tolist() == [*(f"train/{i}" for i in range(96)), *(f"test/{i}" for i in range(50))]
    who = eval_setup(run_folder, EvalOptions(device="cpu"))
    known, asked = who.feature_sets()
    assert found["splits"].tolist() == ["train"] * 96 + ["test"] * 50
    assert np.array_equal(found["features"], np.concatenate([known.features, asked.features]))
    labels = torch.cat([known.labels, asked.labels]).tolist()
    assert found["labels"].tolist() == [who.classes[label] for label in labels]
    part = ["--split", "test", "--encoder", "slow", "--out", str(tmp_path / "t.npz"), "--device", "cpu"]
    assert said(["embed", str(run_folder), *part], capsys)[0] == 0
    slow = table(tmp_path / "t.npz")
    assert slow["paths"].tolist() == [f"test/{i}" for i in range(50)]
    slow_asked = eval_setup(run_folder, EvalOptions(device="cpu", encoder="slow")).feature_sets()[1]
    assert np.array_equal(slow["features"], np.asarray(slow_asked.features))


def test_a_folder_without_classes_has_empty_labels(run_folder: Path, tmp_path: Path, capsys: Capture) -> None:
    for i in range(5):
        making.save(tmp_path / "flat" / f"{i}.png")
    place = f"folder:{tmp_path / 'flat'}"
    out, picture = tmp_path / "f.npz", tmp_path / "map.png"
    more = ["--map", str(picture), "--neighbors", str(tmp_path / "sheet.png"), "--device", "cpu"]
    code, _, err = said(["embed", str(run_folder), "--data", place, "--out", str(out), *more], capsys)
    assert code == 0, err
    found = table(out)
    assert found["labels"].tolist() == [""] * 5
    assert found["classes"].tolist() == []
    assert picture.exists()


def test_a_single_picture_can_be_embedded(run_folder: Path, tmp_path: Path, capsys: Capture) -> None:
    making.save(tmp_path / "one" / "deep" / "a.png")
    words = ["embed", str(run_folder), "--data", f"folder:{tmp_path / 'one'}", "--device", "cpu"]
    pictures = ["--map", str(tmp_path / "map.png"), "--neighbors", str(tmp_path / "sheet.png")]
    code, _, err = said([*words, "--out", str(tmp_path / "f.npz"), *pictures], capsys)
    assert code == 0, err
    found = table(tmp_path / "f.npz")
    assert found["paths"].tolist() == [str(tmp_path / "one" / "deep" / "a.png")]
    assert found["labels"].tolist() == [""]
    assert found["features"].shape == (1, 128)
    code, _, err = said([*words, "--out", str(tmp_path / "g.npz"), "--split", "train"], capsys)
    assert code == 2
    assert "only 1 image" in err


def test_eval_of_an_embedded_file_is_eval_of_the_encoder(
    embed: list[str], run_folder: Path, photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    code, out, err = said(
        ["eval", "knn", str(run_folder), "--data", f"folder:{photos}", "--device", "cpu", "--json"], capsys
    )
    assert code == 0, err
    wanted = json.loads(out)
    for name in ("f.npz", "f.parquet"):
        if name == "f.parquet":
            pytest.importorskip("pyarrow")
        assert said([*embed, "--out", str(tmp_path / name)], capsys)[0] == 0
        code, out, err = said(["eval", "knn", str(tmp_path / name), "--json"], capsys)
        assert code == 0, err
        assert {key: json.loads(out)[key] for key in RESULTS} == {key: wanted[key] for key in RESULTS}
    code, _, err = said(["eval", "knn", str(tmp_path / "f.npz"), "--data", f"folder:{photos}"], capsys)
    assert code == 2
    assert "--data" in err


def test_bad_images_are_named_counted_and_left_out(
    embed: list[str], photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    good = said([*embed, "--out", str(tmp_path / "good.npz")], capsys)
    assert good[0] == 0
    (photos / "apple" / "00-torn.png").write_bytes(b"no picture")
    (photos / "pear" / "zz.jpg").symlink_to("nowhere")
    code, told, err = said([*embed, "--out", str(tmp_path / "f.npz"), "--json", "--batch", "4"], capsys)
    assert code == 0, err
    assert "00-torn.png' can't be used and is skipped: it holds none of" in err
    assert "zz.jpg' can't be used and is skipped: No such file" in err
    assert json.loads(told)["bad_images"] == 2
    one, other = table(tmp_path / "good.npz"), table(tmp_path / "f.npz")
    assert one["paths"].tolist() == other["paths"].tolist()
    assert_features_close(*(torch.from_numpy(arrays["features"]) for arrays in (other, one)))
    few = [*embed, "--out", str(tmp_path / "g.npz"), "--max-bad-images", "1"]
    code, _, err = said(few, capsys)
    assert code == 2
    assert "2 images can't be used, and --max-bad-images is 1" in err
    assert not (tmp_path / "g.npz").exists()
    assert "raise --max-bad-images" in err
    assert "--overwrite" in err
    assert said([*few[:-1], "2"], capsys)[0] == 0  # and goes on when told to
    assert table(tmp_path / "g.npz")["features"].shape == (26, 128)
    mended = [*few, "--overwrite"]
    assert said(mended, capsys)[0] == 2
    making.save(photos / "apple" / "00-torn.png")
    assert said(mended, capsys)[0] == 0
    assert table(tmp_path / "g.npz")["features"].shape == (27, 128)


def test_a_folder_of_nothing_but_bad_images_is_told_and_leaves_nothing(
    run_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "bad").mkdir()
    for i in range(3):
        (tmp_path / "bad" / f"{i}.jpg").write_bytes(b"version https://git-lfs.github.com/spec/v1")
    out = tmp_path / "f.npz"
    words = ["embed", str(run_folder), "--data", f"folder:{tmp_path / 'bad'}", "--out", str(out), "--device", "cpu"]
    code, _, err = said(words, capsys)
    assert code == 2
    assert "none of the 3 images can be used" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad"]


def test_the_map_and_the_sheet_have_their_data_beside_them(
    embed: list[str], photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    copy = str(shutil.copy(photos / "pear" / "03.png", photos / "pear" / "copy.png"))
    pictures = ["--map", str(tmp_path / "map.png"), "--neighbors", str(tmp_path / "sheet.png")]
    few = ["--queries", "3", "--near", "4", "--thumbnails", "2"]
    code, told, err = said([*embed, "--out", str(tmp_path / "f.npz"), *pictures, *few, "--json"], capsys)
    assert code == 0, err
    assert json.loads(told)["map"] == str(tmp_path / "map.png")
    found = table(tmp_path / "f.npz")
    places = list(csv.DictReader((tmp_path / "map.csv").open(encoding="utf-8")))
    assert [row["path"] for row in places] == found["paths"].tolist()
    assert [row["label"] for row in places] == found["labels"].tolist()
    near = list(csv.DictReader((tmp_path / "sheet.csv").open(encoding="utf-8")))
    asked = [found["paths"][i] for i in (0, 13, 26)]
    assert [row["query"] for row in near] == [path for path in asked for _ in range(4)]
    unit = found["features"] / np.linalg.norm(found["features"], axis=1, keepdims=True)
    for row in near:
        pair = [found["paths"].tolist().index(row[name]) for name in ("query", "neighbor")]
        assert pair[0] != pair[1]
        assert float(row["cosine"]) == pytest.approx(float(unit[pair[0]] @ unit[pair[1]]), abs=1e-5)
    assert near[-4]["query"] == copy  # the copy's nearest is the original
    assert near[-4]["neighbor"] == str(photos / "pear" / "03.png")
    assert float(near[-4]["cosine"]) == pytest.approx(1, abs=1e-5)
    for name in ("map.png", "sheet.png"):
        assert Image.open(tmp_path / name).size[0] > 300


@pytest.mark.parametrize("error", [UserError("no room."), MemoryError()])
def test_a_drawing_that_fails_leaves_the_features(
    error: Exception, embed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert said([*embed, "--out", str(tmp_path / "wanted.npz")], capsys)[0] == 0

    def failing(*_: object) -> None:
        raise error

    out, picture = tmp_path / "f.npz", tmp_path / "map.png"
    words = [*embed, "--out", str(out), "--map", str(picture)]
    with monkeypatch.context() as patch:
        patch.setattr("phinets.embed.maps.map_of", failing)
        code, _, err = said(words, capsys)
        assert code == 2
        told = f"no room. The features are in '{out}'; the same command draws them."
        assert (told if isinstance(error, UserError) else "memory") in err
    assert np.array_equal(table(out)["features"], table(tmp_path / "wanted.npz")["features"])
    assert not picture.exists()
    assert said(words, capsys)[0] == 0
    assert picture.exists()
    assert not store_folder(out).exists()


def test_pictures_from_elsewhere_may_ask_and_one_of_the_folder_is_not_its_own_neighbor(
    embed: list[str], photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    inside, outside = photos / "apple" / "06.png", tmp_path / "mine.png"
    shutil.copy(photos / "pear" / "15.png", outside)
    asking = ["--neighbors", str(tmp_path / "s.png"), "--near", "2", "--query-images", str(inside), str(outside)]
    code, _, err = said([*embed, "--out", str(tmp_path / "f.npz"), *asking], capsys)
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "s.csv").open(encoding="utf-8")))
    assert [row["query_label"] for row in rows] == ["apple", "apple", "", ""]
    assert all(row["neighbor"] != str(inside) for row in rows[:2])
    assert rows[2]["neighbor"] == str(photos / "pear" / "15.png")
    assert float(rows[2]["cosine"]) == pytest.approx(1, abs=1e-5)


def test_a_picture_is_not_its_own_neighbor_however_it_is_spelt(
    embed: list[str], photos: Path, tmp_path: Path, capsys: Capture
) -> None:
    inside, link = photos / "apple" / "06.png", tmp_path / "link.png"
    link.symlink_to(inside)
    asked = [str(link), str(photos / "pear" / ".." / "apple" / "06.png")]
    asking = ["--neighbors", str(tmp_path / "s.png"), "--near", "2", "--query-images", *asked]
    code, _, err = said([*embed, "--out", str(tmp_path / "f.npz"), *asking], capsys)
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "s.csv").open(encoding="utf-8")))
    assert len(rows) == 4
    assert all(row["query"] == str(inside) != row["neighbor"] for row in rows)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "there is no file 'nowhere'"),
        (["RUN", "--out", "f.csv"], "must end in .npz or .parquet"),
        (["RUN", "--out", "no/f.npz"], "there is no folder 'no'"),
        (["RUN", "--out", "there.npz"], "'there.npz' is already there. Choose another --out"),
        (["RUN", "--map", "there.png"], "'there.png' is already there. Choose another --map"),
        (["RUN", "--neighbors", "s.png"], "'s.csv' is already there. Choose another --neighbors"),
        (["RUN", "--map", "m.txt"], "its ending must be one of"),
        (["RUN", "--map", "a.png", "--neighbors", "a.png"], "name one file twice"),
        (["RUN", "--map", "a.png", "--neighbors", "a.svg"], "name one file twice"),
        (["RUN", "--query-images", "x.png"], "--query-images needs --neighbors"),
        (["RUN", "--neighbors", "n.png", "--query-images", "x.png"], "there is no query image 'x.png'"),
        (["RUN", "--neighbors", "n.png", "--query-images", "torn.png"], "'torn.png' can't be used"),
        (["RUN", "--neighbors", "n.png", "--queries", "100000"], "Ask for fewer --queries"),
        (["RUN", "--neighbors", "n.png", "--near", "140", "--queries", "20"], "a sheet of 20 rows with 141 pictures"),
        (["RUN", "--map", "m.png", "--thumbnails", "100000"], "at most 1,000"),
        (["RUN", "--map", "m.png", "--map-method", "tsne", "--data", "folder:three"], "--map-method pca"),
        (["RUN", "--data", "folder:nothing"], "there is no folder"),
        (["RUN", "--split", "bank"], "there is no split called 'bank'"),
        (["RUN", "--batch", "0"], "batch is 0, but must be at least 1"),
        (["RUN/backbone.safetensors"], "Choose the images with --data"),
        (["UNBEGUN"], "has no checkpoint"),
        (["SIMSIAM", "--encoder", "slow"], "no slow encoder"),
    ],
)
def test_a_mistake_gets_one_paragraph_and_leaves_nothing(
    words: list[str], says: str, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RUN", "UNBEGUN", "SIMSIAM"):
        shutil.copytree(run_folder, name)
    config = Path("SIMSIAM/config.yaml")
    config.write_text(config.read_text().replace("method: x-phinet", "method: simsiam"))
    shutil.rmtree("UNBEGUN/checkpoints")
    Path("UNBEGUN/summary.json").unlink()
    for i in range(3):
        making.save(Path("three") / f"{i}.png")
    for name in ("there.npz", "there.png", "s.csv", "torn.png"):
        Path(name).write_text("mine")
    before = sorted(Path.cwd().rglob("*"))
    code, out, err = said(["embed", *words, "--device", "cpu"], capsys)
    assert code == 2
    assert says in err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(Path.cwd().rglob("*")) == before


def test_without_pyarrow_parquet_says_what_to_install(
    embed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = said([*embed, "--out", str(tmp_path / "f.parquet")], capsys)
    assert code == 2
    assert "pip install 'phinets[parquet]'" in err


def test_an_encoder_that_gives_no_numbers_is_refused(
    embed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(phinets.Encoder, "forward", lambda self, given: torch.full((len(given), 128), torch.nan))
    code, _, err = said([*embed, "--out", str(tmp_path / "f.npz")], capsys)
    assert code == 2
    assert "not all finite numbers (row 0" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["photos"]


def test_help_comes_without_torch_and_matplotlib() -> None:
    code = (
        "import sys\nfrom phinets.cli.embed import command\n"
        "try: command(['--help'])\nexcept SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_the_bar_tells_speed_of_what_it_saw_itself_and_the_time_left() -> None:
    bar = CountBar(Console(file=io.StringIO()))
    bar(100, 1000)
    assert bar.pace(100, 1000, 5.0) == ""
    assert bar.pace(400, 1000, 100.0) == "3.0 images/s, 0:03:20 left"
