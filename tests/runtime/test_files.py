"""Atomic writing and the guard of a callback's output."""

from pathlib import Path

import pytest

from phinets.config.errors import UserError
from phinets.runtime.files import atomic_write, is_remnant


def test_a_planted_link_or_remnant_is_replaced_and_never_written_through(tmp_path: Path) -> None:
    path, victim = tmp_path / "summary.json", tmp_path / "victim"
    temporary = tmp_path / ".summary.json.part"
    victim.write_bytes(b"mine")
    temporary.symlink_to(victim)
    atomic_write(path, b"new")
    assert (victim.read_bytes(), path.read_bytes()) == (b"mine", b"new")
    assert not path.is_symlink()
    temporary.write_bytes(b"half")
    atomic_write(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert not any(map(is_remnant, tmp_path.iterdir()))


def test_a_link_that_appears_again_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were planted between the removal and the opening."""
    victim, temporary = tmp_path / "victim", tmp_path / ".file.part"
    victim.write_bytes(b"mine")
    temporary.symlink_to(victim)
    monkeypatch.setattr(Path, "unlink", lambda self, missing_ok=False: None)
    with pytest.raises(UserError, match="can't be written"):
        atomic_write(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"mine"
