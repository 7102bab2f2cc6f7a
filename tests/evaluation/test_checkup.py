"""What is read off a learner: all that was asked for, and nothing changed."""

from pathlib import Path

import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.evaluation import HealthOptions
from phinets.config.record import RunRecord
from phinets.evaluation.encoders import load_learner
from phinets.evaluation.health import evaluate_health, learner_metrics
from tests.helpers import tiny_learner, tiny_views

CPU = torch.device("cpu")


def test_every_measure_is_in_the_journal_when_asked_for(miniature: RunRecord) -> None:
    looks = [row for row in miniature.journal if row["kind"] == "eval"]
    wanted = {"alignment", "uniformity", "slow_cosine", "slow_distance", "knn_slow"}
    wanted |= {f"stable_rank_{layer}" for layer in ("h1", "h2", "g1", "g2")}
    for row in looks:
        assert wanted <= set(row)
        assert len(row["spectrum_codes"]) == 12
        assert len(row["spectrum_features"]) == 96
    assert looks[0]["alignment"] != looks[1]["alignment"]


def test_a_checkup_leaves_the_learner_as_it_was() -> None:
    learner, views = tiny_learner("x-phinet"), tiny_views()
    before = {k: v.clone() for k, v in learner.state_dict().items()}
    readings = learner_metrics(learner, views, ("alignment", "spectrum", "stable-rank", "slow-gap"))
    assert learner.training
    assert all(torch.equal(before[k], v) for k, v in learner.state_dict().items())
    assert readings["slow_cosine"] == pytest.approx(1)
    assert readings["slow_distance"] == 0


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("phinet", {"h1", "h2", "g1", "g2"}),
        ("phinet/identity-g", {"h1", "h2"}),
        ("phinet/shared-g", {"h1", "h2"}),
        ("barlow-twins", set()),
    ],
)
def test_the_layers_of_h_and_g_are_ranked_where_there_are_any(name: str, layers: set[str]) -> None:
    readings = learner_metrics(tiny_learner(name), tiny_views(), ("stable-rank", "slow-gap"))
    assert set(readings) == {f"stable_rank_{layer}" for layer in layers}


def test_the_report_of_a_run_repeats_its_last_look(miniature: RunRecord, run_folder: Path) -> None:
    last = [row for row in miniature.journal if row["kind"] == "eval"][-1]
    found = evaluate_health(run_folder, HealthOptions(), CPU)
    for name in ("alignment", "uniformity", "stable_rank_g1", "slow_distance"):
        assert found.metrics[name] == pytest.approx(last[name], rel=1e-4)
    assert "after step 12" in found.protocol
    with pytest.raises(UserError, match="run folder"):
        load_learner(run_folder / "backbone.safetensors")


def test_a_report_can_be_of_the_slow_encoder(run_folder: Path) -> None:
    fast, slow = (evaluate_health(run_folder, HealthOptions(encoder=clock), CPU) for clock in ("fast", "slow"))
    assert fast.metrics["alignment"] != slow.metrics["alignment"]
    assert fast.metrics["stable_rank_h1"] == slow.metrics["stable_rank_h1"]
    assert "slow encoder" in slow.protocol


def test_images_seen_some_at_a_time_are_seen_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, views = tiny_learner("phinet"), tiny_views()
    whole = learner_metrics(learner, views, ("alignment", "spectrum"))
    monkeypatch.setattr("phinets.evaluation.health.BATCH_SIZE", 5)
    parts = learner_metrics(learner, views, ("alignment", "spectrum"))
    assert parts["alignment"] == pytest.approx(whole["alignment"])
    assert parts["spectrum_features"] == pytest.approx(whole["spectrum_features"])
