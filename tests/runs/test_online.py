"""Online learning: each image once, and looks when so many have been seen."""

from dataclasses import replace
from pathlib import Path

import pytest

from phinets.config.run import DataOptions
from phinets.data.locations import resolve_data_name
from phinets.runs.trainer import resume, run
from tests.runs.test_pretrain import TINY, Listener
from tests.runs.test_resume import assert_same_end, cut_off

ONLINE = replace(
    TINY,
    data="stream:shapes",
    epochs=1,
    source=DataOptions(train_images=165, test_images=40, image_size=16),
    evaluation=replace(TINY.evaluation, eval_every=0, eval_at_images=(20, 32, 33, 100, 5_000)),
)
"""Ten steps of 16 images, with a checkpoint after steps 3, 6, 9 and 10."""


def test_a_stream_that_was_cut_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    cut_off(ONLINE, tmp_path / "cut")
    record = resume(tmp_path / "cut")
    run(ONLINE, tmp_path / "whole")
    assert_same_end(tmp_path / "cut", tmp_path / "whole")
    looks = [(row["step"], row["images"]) for row in record.journal if row["kind"] == "eval"]
    assert looks == [(2, 32), (3, 48), (7, 112), (10, 160)]
    assert all("knn" in row for row in record.journal if row["kind"] == "eval")
    assert record.summary.steps == 10
    assert "bank of 165 training images" in record.summary.protocol


def test_looks_by_steps_and_by_images_go_together(tmp_path: Path) -> None:
    config = replace(ONLINE, evaluation=replace(ONLINE.evaluation, eval_every=4, eval_at_images=(100, 128)))
    looks = [row["step"] for row in run(config, tmp_path / "run").journal if row["kind"] == "eval"]
    assert looks == [4, 7, 8, 10]


@pytest.mark.parametrize(
    ("counts", "values"),
    [
        ((100, 160), []),
        ((100, 161), ["--eval-at-images 161"]),
        ((100, 165, 100_000), ["--eval-at-images 165 100000"]),
    ],
)
def test_an_eval_beyond_the_end_is_reported_once(counts: tuple[int, ...], values: list[str], tmp_path: Path) -> None:
    listener = Listener()
    run(
        replace(ONLINE, evaluation=replace(ONLINE.evaluation, eval_at_images=counts)),
        tmp_path / "run",
        callback=listener,
    )
    assert [text.split(" is beyond")[0] for text in listener.heard] == values


@pytest.mark.parametrize(
    ("said", "settled"),
    [
        ("stream:shapes", "stream:shapes"),
        ("stream:folder:here/photos", f"stream:folder:{Path.cwd()}/here/photos"),
        ("folder:here", f"folder:{Path.cwd()}/here"),
        ("cifar10", "cifar10"),
        ("stream", "stream"),
    ],
)
def test_a_stream_s_place_is_a_name_and_its_folder_s_place_is_settled(said: str, settled: str) -> None:
    assert resolve_data_name(said) == settled
