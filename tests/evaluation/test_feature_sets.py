"""Features in files: what they hold, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from phinets.config.errors import UserError
from phinets.config.exam import EvalOptions
from phinets.evaluation.feature_sets import embedding, examined, keep_features, read_features
from phinets.evaluation.knn import knn_votes

ON_CPU = EvalOptions(device="cpu")


def test_features_on_the_disk_are_those_in_memory(run_folder: Path, tmp_path: Path) -> None:
    who = examined(run_folder, ON_CPU)
    keep_features(who, tmp_path / "kept")
    for kept, made in zip(read_features(tmp_path / "kept"), who.embedded(), strict=True):
        assert isinstance(kept.features, np.memmap)
        np.testing.assert_array_equal(kept.features, made.features.numpy())
        assert torch.equal(kept.labels, made.labels)
    again = embedding(tmp_path / "kept", ON_CPU)
    assert (len(again.known.labels), len(again.asked.labels)) == (96, 50)


def arrays(**changes: Any) -> dict[str, Any]:
    whole = {
        "train_features": np.random.default_rng(0).normal(size=(20, 3)),
        "train_labels": np.arange(20) % 2,
        "test_features": np.zeros((5, 3)),
        "test_labels": np.zeros(5, int),
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"train_labels": None}, "there is no train_labels in"),
        ({"test_features": None}, "there is no test_features in"),
        ({"train_labels": np.zeros(20, int)}, "all of one class"),
        ({"train_labels": np.arange(19) % 2}, "a class number, from 0 to 1000000, for each of the 20"),
        ({"train_labels": np.full(20, -1)}, "a class number, from 0"),
        ({"train_labels": np.full(20, 0.5)}, "a class number, from 0"),
        ({"train_features": np.zeros(20)}, "must be floats"),
        ({"train_features": np.array(["a"] * 20)}, "must be floats"),
        ({"test_features": np.zeros((5, 4))}, "two widths, 3 and 4"),
        ({"train_features": np.zeros((20, 0))}, "must be floats"),
        ({"train_labels": np.arange(20) * 10**8}, "a class number, from 0 to 1000000"),
    ],
)
def test_a_feature_file_that_can_t_be_judged_is_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays(**changes))
    with pytest.raises(UserError, match=says):
        read_features(tmp_path / "f.npz")


def test_an_npz_of_features_is_read_and_options_that_make_features_are_refused_with_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays())
    assert len(embedding(tmp_path / "f.npz", ON_CPU).known.labels) == 20
    with pytest.raises(UserError, match="already there"):
        embedding(tmp_path / "f.npz", replace(ON_CPU, labels="10%"))
    (tmp_path / "torn.npz").write_bytes(b"PK not an archive")
    with pytest.raises(UserError, match="can't be read"):
        read_features(tmp_path / "torn.npz")


def test_a_failed_writing_of_features_leaves_nothing(run_folder: Path, tmp_path: Path) -> None:
    who = examined(run_folder, ON_CPU)
    broken = replace(who, subject=replace(who.subject, encoder=nn.Flatten(0)))
    with pytest.raises(UserError, match="one feature vector per image"):
        keep_features(broken, tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY not an array"])
def test_a_file_that_is_no_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f.npz").write_bytes(content)
    with pytest.raises(UserError, match="can't be read"):
        read_features(tmp_path / "f.npz")


def test_an_array_that_is_called_an_archive_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.zeros(3))
    (tmp_path / "f.npy").rename(tmp_path / "f.npz")
    with pytest.raises(UserError, match="can't be read"):
        read_features(tmp_path / "f.npz")


def test_kept_features_say_whose_they_are_and_how_their_run_judges(run_folder: Path, tmp_path: Path) -> None:
    who = examined(run_folder, ON_CPU)
    keep_features(who, tmp_path / "kept")
    found = embedding(tmp_path / "kept", ON_CPU)
    assert who.describe() in found.described
    assert found.evaluation.num_neighbors == 7
    assert found.document["backbone"] == "resnet-tiny"
    (tmp_path / "kept" / "about.json").write_text("{")
    with pytest.raises(UserError, match=r"about.json' can't be read"):
        embedding(tmp_path / "kept", ON_CPU)


def test_features_of_any_float_are_judged_alike(tmp_path: Path) -> None:
    whole = arrays(test_features=np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32))
    whole["train_features"] = whole["train_features"].astype(np.float32)
    votes = []
    for kind in (np.float32, np.float64, ">f4", np.longdouble):
        np.savez(tmp_path / "f.npz", **{k: v.astype(kind) if "features" in k else v for k, v in whole.items()})
        found = embedding(tmp_path / "f.npz", ON_CPU)
        votes.append(knn_votes(found.asked.features, found.known.features, found.known.labels, k=5))
    assert all(torch.equal(vote, votes[0]) for vote in votes)
