"""The recipes as shipped, not in miniature."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from phinets.config.record import Summary
from phinets.config.run import PretrainConfig
from phinets.runs.recipes import recipe
from phinets.runs.trainer import run


@pytest.mark.slow
def test_the_first_look_shows_learning(tmp_path: Path) -> None:
    summary = _on_two_cores(recipe("smoke"), tmp_path / "run")
    assert summary.verdict == "healthy"
    _assert_gained(summary, 0)


@pytest.mark.slow
def test_a_third_of_what_arrives_online_already_beats_pixels_and_the_untrained_encoder(tmp_path: Path) -> None:
    config = recipe("online")
    summary = _on_two_cores(replace(config, source=replace(config.source, train_images=40_000)), tmp_path / "run")
    _assert_gained(summary, 10)


@pytest.mark.slow
def test_a_third_of_the_main_job_already_beats_pixels_and_the_untrained_encoder(tmp_path: Path) -> None:
    """The whole job gains more than 25 points of kNN over both; a third of it, more than 10."""
    _assert_gained(_on_two_cores(replace(recipe("default"), epochs=3), tmp_path / "run"), 10)


def _on_two_cores(config: PretrainConfig, folder: Path) -> Summary:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        return run(config, folder).summary
    finally:
        torch.set_num_threads(threads)


def _assert_gained(summary: Summary, points: float) -> None:
    """Points of kNN over both baselines."""
    assert summary.knn is not None
    assert summary.knn_untrained is not None
    assert summary.knn_pixels is not None
    assert summary.knn > max(summary.knn_untrained, summary.knn_pixels) + points
