"""The folder of a run: claimed, overwritten and described by its config file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from phinets.config.errors import UserError
from phinets.training.run_folder import claim_folder, run_folder


def old_run(folder: Path) -> Path:
    """The files of a finished run, with an elsewhere linked folder of checkpoints."""
    (folder.parent / "elsewhere").mkdir()
    folder.mkdir()
    for name in ("config.yaml", "env.json", "summary.json", "backbone.safetensors"):
        (folder / name).write_text(name)
    (folder / "checkpoints").symlink_to(folder.parent / "elsewhere", target_is_directory=True)
    return folder


def test_a_refused_overwrite_deletes_nothing(tmp_path: Path) -> None:
    folder = old_run(tmp_path / "run")
    before = sorted(folder.iterdir())
    with pytest.raises(UserError, match="checkpoints"), claim_folder(folder, overwrite=True):
        pass
    assert sorted(folder.iterdir()) == before
    (folder / "checkpoints").unlink()
    with claim_folder(folder, overwrite=True):
        assert list(folder.iterdir()) == []


def test_runs_that_start_in_the_same_second_get_different_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(4) as threads:
        folders = list(threads.map(run_folder, [None] * 12, ["x-phinet/cosine"] * 12))
    assert len(set(folders)) == 12
    assert {folder.parent for folder in folders} == {Path("runs")}
    assert all(folder.is_dir() for folder in folders)
