"""Features: of every image, in eval mode, without a trace."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from phinets.config.errors import UserError
from phinets.config.evaluation import EvalOptions
from phinets.embed.embed import embed_job, eval_job, write_features
from phinets.evaluation.features import FeatureSet, features, read_feature_table
from phinets.evaluation.knn import knn_votes
from phinets.evaluation.setup import eval_setup, open_target
from tests.helpers import TinyEncoder, assert_features_close

CPU = torch.device("cpu")
IMAGES = torch.randint(0, 256, (23, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_no_image_is_left_out_whatever_the_batch() -> None:
    encoder = TinyEncoder()
    whole = features(encoder, [IMAGES], lambda x: x.float(), CPU)
    assert whole.shape == (23, 5)
    assert_features_close(features(encoder, IMAGES.split(5), lambda x: x.float(), CPU), whole)


@pytest.mark.parametrize("training", [True, False])
def test_the_encoder_is_frozen_and_left_in_the_mode_it_was_in(training: bool) -> None:
    encoder = TinyEncoder().train(training)
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    out = features(encoder, [IMAGES], lambda x: x.float(), CPU)
    assert encoder.training is training
    assert not out.requires_grad
    assert all(torch.equal(before[k], v) for k, v in encoder.state_dict().items())


def test_a_failing_encoder_is_left_in_the_mode_it_was_in() -> None:
    encoder = nn.Linear(2, 2)
    with pytest.raises(RuntimeError):
        features(encoder, [IMAGES], lambda x: x.float(), CPU)
    assert encoder.training


def test_pixels_are_the_images_themselves() -> None:
    assert torch.equal(features(None, IMAGES.split(7), lambda x: x.float(), CPU), IMAGES.float().reshape(23, -1))


ON_CPU = EvalOptions(device="cpu")


def sets(path: Path) -> tuple[FeatureSet, FeatureSet]:
    return read_feature_table(path).feature_sets()


@pytest.mark.parametrize("name", ["f.npz", "f.parquet"])
@pytest.mark.parametrize("job", [eval_job, embed_job])
def test_features_in_a_file_are_those_in_memory(job: Any, name: str, run_folder: Path, tmp_path: Path) -> None:
    write_features(job(run_folder, ON_CPU), tmp_path / name, False, lambda done, total: None)
    for stored, computed in zip(sets(tmp_path / name), eval_setup(run_folder, ON_CPU).feature_sets(), strict=True):
        assert isinstance(stored.features, np.memmap) is (name == "f.npz")
        assert_features_close(stored.tensors()[0], computed.tensors()[0])
        assert torch.equal(stored.labels, computed.labels)
    table = open_target(tmp_path / name, ON_CPU)
    assert table.evaluation.num_neighbors == 7
    assert (table.document["bank"], table.document["queries"], table.document["backbone"]) == (96, 50, "resnet-tiny")


def arrays(**changes: Any) -> dict[str, Any]:
    whole = {
        "features": np.random.default_rng(0).normal(size=(25, 3)),
        "labels": np.arange(25) % 2,
        "splits": np.array(["train"] * 20 + ["test"] * 5),
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


def test_files_that_can_t_be_evaluated_are_refused(tmp_path: Path) -> None:
    bad: list[dict[str, Any]] = [
        {"labels": None},
        {"features": None},
        {"splits": None},
        {"labels": np.zeros(25, int)},
        {"labels": np.arange(24) % 2},
        {"labels": np.full(25, -1)},
        {"labels": np.full(25, 0.5)},
        {"features": np.zeros(25)},
        {"features": np.array(["a"] * 25)},
        {"features": np.zeros((25, 0))},
        {"splits": np.array(["train"] * 25)},
        {"splits": np.zeros(25)},
    ]
    for changes in bad:
        np.savez(tmp_path / "f.npz", **arrays(**changes))
        with pytest.raises(UserError):
            sets(tmp_path / "f.npz")
    for content in (b"", b"PK", b"\x93NUMPY not an array"):
        (tmp_path / "f.npz").write_bytes(content)
        with pytest.raises(UserError, match="can't be read"):
            sets(tmp_path / "f.npz")


def test_options_of_the_encoder_are_refused_with_features(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays())
    assert len(open_target(tmp_path / "f.npz", ON_CPU).feature_sets()[0].labels) == 20
    with pytest.raises(UserError, match="already computed"):
        open_target(tmp_path / "f.npz", replace(ON_CPU, labels="10%"))


def test_rows_of_any_order_compression_and_float_give_the_same_votes(tmp_path: Path) -> None:
    whole = arrays()
    whole["features"] = whole["features"].astype(np.float32)
    names = np.array(["no", "yes"])[whole["labels"]]
    votes = []
    for kind in (np.float32, np.float64, ">f4", np.longdouble):
        for labels, save in ((whole["labels"], np.savez), (names, np.savez_compressed)):
            save(tmp_path / "f.npz", **whole | {"features": whole["features"].astype(kind), "labels": labels})
            train, test = sets(tmp_path / "f.npz")
            votes.append(knn_votes(test.features, train.features, train.labels, k=5))
    shuffled = np.r_[0:10, 20:25, 10:20]
    np.savez(tmp_path / "f.npz", **{name: array[shuffled] for name, array in whole.items()})
    train, test = sets(tmp_path / "f.npz")
    votes.append(knn_votes(test.features, train.features, train.labels, k=5))
    for vote in votes:
        torch.testing.assert_close(vote, votes[0])


def test_images_without_a_label_are_left_out_and_the_bank_comes_before_train(tmp_path: Path) -> None:
    labels = np.array(["", *["a", "b"] * 12])
    splits = np.array(["train"] * 8 + ["bank"] * 12 + ["test"] * 5)
    np.savez(tmp_path / "f.npz", **arrays(labels=labels, splits=splits))
    train, test = sets(tmp_path / "f.npz")
    assert (len(train.labels), len(test.labels)) == (12, 5)
    np.savez(tmp_path / "f.npz", **arrays(labels=labels))
    assert len(sets(tmp_path / "f.npz")[0].labels) == 19
