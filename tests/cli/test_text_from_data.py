"""Commands print names of classes and folders as they are."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from phinets.cli import main


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(words)
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_folder_with_any_names_is_checked_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "x[" / "y]"
    names = ("[apple]", "a$b$c", "x\x07\x1b[2Jy", "<script>")
    for number, name in enumerate(names):
        (place / name).mkdir(parents=True)
        for i in range(12):
            pixels = np.full((8, 8, 3), 20 * i + number, np.uint8)
            Image.fromarray(pixels).save(place / name / f"{i}.png")
    picture = tmp_path / "samples.svg"
    code, out, err = run(["data", "check", f"folder:{place}", "--out", str(picture)], capsys)
    assert (code, {"\x07", "\x1b"} & set(out + err)) == (0, set())
    ElementTree.fromstring(picture.read_bytes())


def test_an_error_never_sends_escapes_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(["data", "check", f"folder:{tmp_path}/x[/y]\x1b[2J"], capsys)
    assert code == 2
    assert "\x1b" not in err
    assert r"x[/y]\x1b[2J" in err
