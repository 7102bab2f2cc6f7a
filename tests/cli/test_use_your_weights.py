"""Every block of the guide runs, in the order of the page, and does what the page says."""

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.cli.test_main import said

GUIDE = Path(__file__).parents[2] / "docs" / "use_your_weights.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def photo(light: int, seed: int) -> Image.Image:
    """A bright or a dark picture, never twice the same."""
    noise = np.random.default_rng(seed).integers(-40, 40, (30, 40, 3))
    return Image.fromarray((light + noise).clip(0, 255).astype(np.uint8))


@pytest.fixture
def folder(tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the guide takes for granted: a run, photographs by day and by night, and a new one."""
    shutil.copytree(run_folder, tmp_path / "runs" / "first")
    for i in range(16):
        for name, light in (("day", 190), ("night", 60)):
            (tmp_path / "photos" / name).mkdir(parents=True, exist_ok=True)
            photo(light, 2 * i + (name == "day")).save(tmp_path / "photos" / name / f"{i:03d}.jpg")
    photo(190, 1000).save(tmp_path / "new.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    blocks = [block for block in BLOCK.findall(GUIDE.read_text(encoding="utf-8")) if block[0] != "text"]
    assert [kind for kind, _ in blocks] == [
        "python",
        "python",
        "sh",
        "python",
        "python",
        "sh",
        "python",
        "sh",
        "python",
    ]
    for kind, text in blocks:
        if kind == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line)
                assert program == "phinets"
                code, _, err = said(words, capsys)
                assert code == 0, err
        else:
            exec(compile(text, str(GUIDE), "exec"), names)
    assert_it_came_to_what_the_page_says(names, folder)


def test_commands_for_other_data_have_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [text for kind, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")) if kind == "text"]
    lines = [shlex.split(line, comments=True) for text in texts for line in text.splitlines()]
    assert lines
    for program, name, *words in lines:
        assert program == "phinets"
        shown = said([name, "--help"], capsys)[1]
        assert all(re.search(rf"{word}\b", shown) for word in words if word.startswith("--")), words


def assert_it_came_to_what_the_page_says(names: dict[str, Any], folder: Path) -> None:
    assert names["features"].shape == (2, names["encoder"].num_features)
    rounding = 1e-5 * float(
        names["features"].abs().max()
    )  # convolutions of one image and of two may sum in other orders
    torch.testing.assert_close(names["one"], names["features"][:1], rtol=0, atol=rounding)
    assert not torch.equal(names["slow"](["new.jpg"]), names["question"])
    table = names["table"]
    assert table["features"].shape == (32, names["encoder"].num_features)
    assert {str(table["labels"][row]) for row in names["found"].rows[0].tolist()} == {"day"}
    assert str(names["classes"][names["shares"].argmax()]) == "day"
    assert float(names["loss"]) < 0.7
    assert all((folder / name).exists() for name in ("map.png", "map.csv", "sheet.png", "sheet.csv"))
