"""The recipes as shipped, not in miniature."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from phinets.experiments.recipes import recipe
from phinets.experiments.run import run


@pytest.mark.slow
def test_smoke_runs_as_shipped(tmp_path: Path) -> None:
    record = run(recipe("smoke"), tmp_path / "run")
    assert record.summary.verdict == "healthy"
    assert record.summary.knn is not None
    assert record.summary.knn > 12


@pytest.mark.slow
def test_a_third_of_the_main_job_already_beats_pixels_and_the_untrained_encoder(tmp_path: Path) -> None:
    """The whole job gains more than 25 points of kNN over both; a third of it, more than 10."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        summary = run(replace(recipe("default"), epochs=3), tmp_path / "run").summary
    finally:
        torch.set_num_threads(threads)
    assert summary.knn is not None
    assert summary.knn_untrained is not None
    assert summary.knn_pixels is not None
    assert summary.knn > max(summary.knn_untrained, summary.knn_pixels) + 10
