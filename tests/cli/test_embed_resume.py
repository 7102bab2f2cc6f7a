"""An interrupted `phinets embed` resumes, and the file is identical."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import torch

import phinets
from phinets.embed import store
from phinets.embed.store import FEATURES, STATE, FeatureStore, store_folder
from tests.cli.test_embed import table
from tests.cli.test_main import said
from tests.data import making

Capture = pytest.CaptureFixture[str]


class PlugError(BaseException):
    """Somebody pulled the plug."""


def cut_after(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is saved after every batch, and the process dies after some batches, while it appends the next."""
    monkeypatch.setattr(store, "SECONDS", -1.0)
    add, save = FeatureStore.add, FeatureStore.save

    def add_or_die(self: FeatureStore, *batch: Any) -> None:
        if self.batches == batches:
            monkeypatch.setattr(FeatureStore, "save", lambda self: None)
            with (self.folder / FEATURES).open("ab") as file:
                file.write(b"half a batch")
            raise PlugError
        add(self, *batch)

    monkeypatch.setattr(FeatureStore, "save", save)
    monkeypatch.setattr(FeatureStore, "add", add_or_die)


def stored_batches(out: Path) -> int:
    """The batches in the store of a feature file; 0 where there is none."""
    try:
        return int(json.loads((store_folder(out) / STATE).read_text())["batches"])
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_who_is_cut_goes_on_and_gets_the_identical_file(
    ending: str, embed: list[str], photos: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(store, "ROW_GROUP", 5)
    (photos / "apple" / "05.jpg").write_bytes(b"")
    words = [*embed, "--batch", "4"]
    whole, cut = tmp_path / f"whole.{ending}", tmp_path / f"cut.{ending}"
    first = said([*words, "--out", str(whole), "--json"], capsys)
    for batches in (2, 5):
        with monkeypatch.context() as patched:
            cut_after(batches, patched)
            with pytest.raises(PlugError):
                said([*words, "--out", str(cut)], capsys)
        assert not cut.exists()
        assert stored_batches(cut) == batches
    seen: list[int] = []
    forward = phinets.Encoder.forward

    def counted(self: phinets.Encoder, given: Any) -> torch.Tensor:
        seen.append(len(given))
        return forward(self, given)

    monkeypatch.setattr(phinets.Encoder, "forward", counted)
    code, told, err = said([*words, "--out", str(cut), "--json"], capsys)
    assert code == 0, err
    assert seen == [4, 3]  # of 27 images, five batches of four were there
    assert "20 of 27 images" in err
    assert cut.read_bytes() == whole.read_bytes()
    assert json.loads(told) == json.loads(first[1]) | {"out": str(cut)}
    assert not store_folder(cut).exists()


def test_a_damaged_store_is_refused_or_replaced(
    embed: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, words = tmp_path / "f.npz", [*embed, "--batch", "4"]
    with monkeypatch.context() as patched:
        cut_after(4, patched)
        with pytest.raises(PlugError):
            said([*words, "--out", str(out)], capsys)
    features, state = store_folder(out) / FEATURES, store_folder(out) / STATE
    whole = features.read_bytes(), state.read_text()
    for content, text in (
        (whole[0][:100], whole[1]),
        (b"\1" + whole[0][1:], whole[1]),
        (whole[0], "{"),
        (whole[0], "{}"),
    ):
        features.write_bytes(content)
        state.write_text(text)
        code, _, err = said([*words, "--out", str(out)], capsys)
        assert code == 2
        assert f"'{store_folder(out)}' is damaged" in err
        assert "--overwrite" in err
    assert said([*words, "--out", str(out), "--overwrite"], capsys)[0] == 0
    assert said([*words, "--out", str(tmp_path / "g.npz")], capsys)[0] == 0
    assert out.read_bytes() == (tmp_path / "g.npz").read_bytes()
    assert not store_folder(out).exists()


def test_the_beginning_of_other_work_is_refused_or_goes_when_told_to(
    embed: list[str], photos: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "f.npz"
    begun = [*embed, "--out", str(out), "--batch", "4"]
    with monkeypatch.context() as patched:
        cut_after(2, patched)
        with pytest.raises(PlugError):
            said(begun, capsys)
    for other, differs in ((["--encoder", "slow"], "weights"), (["--image-size", "24"], "image_size")):
        code, _, err = said([*begun, *other], capsys)
        assert code == 2
        assert f"differs in {differs}" in err
        assert "--overwrite" in err
    os.utime(photos / "pear" / "01.jpg", (1, 1))
    code, _, err = said(begun, capsys)
    assert code == 2
    assert "differs in images.all" in err
    assert said([*begun, "--overwrite"], capsys)[0] == 0
    assert len(table(out)["features"]) == 26
    assert not store_folder(out).exists()


def test_a_signal_is_obeyed_after_the_batch_and_the_work_goes_on(
    embed: list[str], photos: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, forward = tmp_path / "f.npz", phinets.Encoder.forward

    def interrupted(self: phinets.Encoder, given: Any) -> torch.Tensor:
        signal.raise_signal(signal.SIGTERM)
        return forward(self, given)

    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patched:
        patched.setattr(phinets.Encoder, "forward", interrupted)
        code, _, err = said([*embed, "--out", str(out), "--batch", "8"], capsys)
    assert code == 128 + signal.SIGTERM
    assert "stopped by SIGTERM after 8 of 26 images; the same command resumes from there" in err
    assert signal.getsignal(signal.SIGTERM) == before
    assert said([*embed, "--out", str(out), "--batch", "8"], capsys)[0] == 0
    assert said([*embed, "--out", str(tmp_path / "g.npz"), "--batch", "8"], capsys)[0] == 0
    assert out.read_bytes() == (tmp_path / "g.npz").read_bytes()


def test_a_signal_while_a_map_is_drawn_is_obeyed_and_the_same_command_resumes(
    embed: list[str], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, picture, sheet = (tmp_path / name for name in ("f.npz", "map.png", "sheet.png"))
    words = [*embed, "--out", str(out), "--map", str(picture), "--neighbors", str(sheet)]
    with monkeypatch.context() as patched:
        patched.setattr("phinets.embed.maps.neighbors_among", lambda *_: signal.raise_signal(signal.SIGTERM))
        code, _, err = said(words, capsys)
    assert code == 128 + signal.SIGTERM
    assert "the same command resumes" in err
    assert not picture.exists()
    code, _, err = said(words, capsys)
    assert code == 0, err
    assert picture.exists()
    assert sheet.exists()
    assert not store_folder(out).exists()


BATCH_AFTER_BATCH = """
import sys
from phinets.cli import main
from phinets.embed import store
store.SECONDS = -1.0
main(sys.argv[1:])
"""
"""`phinets embed` in its own process, with the state saved after every batch."""


@pytest.mark.slow
def test_killed_again_and_again_it_ends_as_if_nobody_had_touched_it(
    run_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    """SIGKILL at whatever moment comes, three times; then it is left alone."""
    for i in range(240):
        making.save(tmp_path / "many" / f"{i:03d}.png", making.picture(64, 64, seed=i))
    base = ["embed", str(run_folder), "--data", f"folder:{tmp_path / 'many'}", "--batch", "2", "--device", "cpu"]
    out = tmp_path / "cut.npz"
    for kill in range(4):
        process = subprocess.Popen([sys.executable, "-c", BATCH_AFTER_BATCH, *base, "--out", str(out)])
        until, wanted = monotonic() + 240, 25 * (kill + 1) if kill < 3 else 1_000
        while stored_batches(out) < wanted and process.poll() is None:
            assert monotonic() < until, "no progress"
            sleep(0.002)
        assert out.exists() == (kill == 3)
        process.kill()
        process.wait()
    assert said([*base, "--out", str(tmp_path / "whole.npz")], capsys)[0] == 0
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.npz", "many", "whole.npz"]
