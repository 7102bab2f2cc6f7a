"""The folder of a run: claimed, overwritten and described by its config file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from phinets.config.errors import UserError
from phinets.training.run_folder import claim_folder, read_config, run_folder


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


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
NESTED_BOMB = f"data: {'[' * 20000}{']' * 20000}"


@pytest.mark.parametrize(
    "text",
    [BOMB, NESTED_BOMB, f"seed: {'9' * 5000}", f"seed: {'9' * 4000}", "seed: 2020-99-99", f"[{'x, ' * 9999}]"],
    ids=["aliases", "nested", "digits", "fewer digits", "date", "list"],
)
def test_a_hostile_config_is_refused_in_few_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"config\.yaml") as refusal:
        read_config(path)
    assert len(str(refusal.value)) < 800


def test_a_config_may_have_a_few_aliases(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("batch: &n 64\nepochs: *n\n")
    assert read_config(tmp_path / "config.yaml").batch == 64
