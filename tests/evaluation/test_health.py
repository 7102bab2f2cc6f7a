"""Health metrics: of a learner, of collapsed codes, and at their limits."""

import math
from pathlib import Path
from typing import get_args

import pytest
import torch

from phinets.config.errors import UserError
from phinets.config.evaluation import HealthOptions
from phinets.config.record import RunRecord
from phinets.config.run import HealthMetric
from phinets.evaluation.encoders import load_learner
from phinets.evaluation.health import (
    Health,
    alignment,
    dead_share,
    effective_rank,
    evaluate_health,
    fade_warning,
    health,
    learner_metrics,
    spectrum,
    spread,
    stable_rank,
    uniformity,
    weight_cosine,
    weight_distance,
)
from phinets.methods import Learner
from phinets.runtime.batch_norm import synchronize_norms
from tests.helpers import tiny_learner, tiny_views

CPU = torch.device("cpu")


def test_every_measure_is_in_the_journal_when_asked_for(miniature: RunRecord) -> None:
    looks = [row for row in miniature.journal if row["kind"] == "eval"]
    wanted = {"alignment", "uniformity", "slow_cosine", "slow_distance", "knn_slow", "code_rms", "sim2_gradient_share"}
    wanted |= {f"stable_rank_{layer}" for layer in ("h1", "h2", "g1", "g2")}
    for row in looks:
        assert wanted <= set(row)
        assert len(row["spectrum_codes"]) == 12
        assert len(row["spectrum_features"]) == 96
    assert looks[0]["alignment"] != looks[1]["alignment"]


def test_a_checkup_leaves_the_learner_as_it_was() -> None:
    learner, views = tiny_learner("x-phinet"), tiny_views()
    learner.f.projector = torch.nn.Sequential(learner.f.projector, torch.nn.Dropout())
    learner(views).total.backward()
    learner.f.backbone.eval()
    before = {k: v.clone() for k, v in learner.state_dict().items()}
    gradients = {k: p.grad.clone() for k, p in learner.named_parameters() if p.grad is not None}
    random, options = torch.random.get_rng_state(), learner.options
    readings = learner_metrics(learner, views, get_args(HealthMetric))
    assert learner.training
    assert not learner.f.backbone.training
    assert all(torch.equal(before[k], v) for k, v in learner.state_dict().items())
    for name, weight in learner.named_parameters():
        assert (name in gradients) == (weight.grad is not None)
        assert weight.grad is None or torch.equal(weight.grad, gradients[name])
    assert torch.equal(torch.random.get_rng_state(), random)
    assert learner.options == options
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
    for name in ("alignment", "uniformity", "stable_rank_g1", "slow_distance", "code_rms", "sim2_gradient_share"):
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


def last_norm(learner: Learner) -> torch.nn.BatchNorm1d:
    norm = list(learner.f.projector.children())[-1]
    assert isinstance(norm, torch.nn.BatchNorm1d)
    return norm


def test_the_rms_of_codes_is_that_of_the_last_scale_and_shift() -> None:
    learner, views = tiny_learner("phinet"), tiny_views()
    norm = last_norm(learner)
    norm.eps = 1e-15
    norm.load_state_dict({"running_mean": torch.full((6,), 7.0)}, strict=False)  # the running statistics do not count
    norm.weight.data, norm.bias.data = gaussian(6, seed=3), gaussian(6, seed=4)
    wanted = float((norm.weight.square() + norm.bias.square()).mean().sqrt().detach())
    assert learner_metrics(learner, views, ("code-scale",))["code_rms"] == pytest.approx(wanted)


@pytest.mark.parametrize("name", ["phinet", "phinet/cosine", "phinet/no-stop-gradient", "x-phinet"])
def test_the_share_of_sim2_is_that_of_the_two_backward_passes(name: str) -> None:
    views, norms = tiny_views(), []
    for w1, w2 in ((3.0, 0.0), (0.0, 0.5)):
        alone = tiny_learner(name, sim1_weight=w1, sim2_weight=w2)
        alone.loss(views).total.backward()
        norms.append(torch.cat([p.grad.flatten() for p in alone.f.parameters() if p.grad is not None]).norm())
    both = tiny_learner(name, sim1_weight=3.0, sim2_weight=0.5)
    share = learner_metrics(both, views, ("code-scale",))["sim2_gradient_share"]
    assert share == pytest.approx(float(norms[1] / (norms[0] + norms[1])))
    assert learner_metrics(tiny_learner(name, sim2_weight=0.0), views, ("code-scale",))["sim2_gradient_share"] == 0
    assert learner_metrics(tiny_learner(name, sim1_weight=0.0), views, ("code-scale",))["sim2_gradient_share"] == 1


@pytest.mark.parametrize("name", ["simsiam", "simsiam/original-input", "byol", "barlow-twins", "moco-v2"])
def test_a_learner_without_sim2_has_a_scale_and_no_share(name: str) -> None:
    assert set(learner_metrics(tiny_learner(name), tiny_views(), ("code-scale",))) == {"code_rms"}


def test_the_scale_takes_a_batch_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    views = tiny_views()
    few = learner_metrics(tiny_learner("phinet"), views.map(lambda view: view[:7]), ("code-scale",))
    monkeypatch.setattr("phinets.evaluation.health.CODE_SCALE_IMAGES", 7)
    assert learner_metrics(tiny_learner("phinet"), views, ("code-scale",)) == few


def test_one_process_of_several_measures_the_scale_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would wait forever for the statistics of the others, which do not evaluate."""
    alone = learner_metrics(tiny_learner("x-phinet"), tiny_views(), ("code-scale",))
    learner = tiny_learner("x-phinet")
    synchronize_norms(learner, CPU)
    monkeypatch.setattr("phinets.runtime.distributed.world_size", lambda: 2)
    assert learner_metrics(learner, tiny_views(), ("code-scale",)) == pytest.approx(alone)


@pytest.mark.parametrize(
    ("name", "rms", "warns"),
    [("phinet", 0.1, True), ("phinet", 0.9, False), ("phinet/cosine", 0.1, False), ("simsiam", 0.1, False)],
)
def test_a_faded_mse_is_explained(name: str, rms: float, warns: bool) -> None:
    warning = fade_warning(tiny_learner(name), {"code_rms": rms, "sim2_gradient_share": 0.02})
    assert (warning is not None) == warns
    assert warning is None or "--no-projector-affine" in warning
    absent = tiny_learner("phinet", sim2_weight=0.0)
    assert fade_warning(absent, {"code_rms": rms, "sim2_gradient_share": 0.0}) is None


def float32_gaussian(n: int = 2000, d: int = 32) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0))


def test_codes_that_point_everywhere_are_healthy() -> None:
    z = float32_gaussian()
    assert spread(z) == pytest.approx(1.0, abs=0.02)
    assert effective_rank(z) == pytest.approx(32, rel=0.02)
    assert dead_share(z) == 0
    assert health(z).verdict == "healthy"


def test_constant_codes_are_collapsed() -> None:
    z = torch.ones(100, 16)
    assert spread(z) == pytest.approx(0, abs=1e-6)
    assert effective_rank(z) == pytest.approx(1, abs=1e-3)
    assert dead_share(z) == 1
    assert health(z).verdict == "collapsed"


def test_codes_on_one_line_are_collapsed_though_they_spread() -> None:
    """What the standard deviation alone does not see."""
    z = torch.sign(float32_gaussian(100, 1)) * torch.ones(16)
    assert spread(z) > 0.9
    assert effective_rank(z) == pytest.approx(1, abs=1e-3)
    assert health(z).verdict == "collapsed"


def test_orthogonal_codes_have_full_rank() -> None:
    q, _ = torch.linalg.qr(float32_gaussian(64, 16))
    assert effective_rank(q) == pytest.approx(16, rel=1e-4)


@pytest.mark.parametrize("shape", [(8, 6), (16, 12), (64, 256), (256, 2048)])
def test_codes_in_every_direction_are_healthy_at_any_size_and_those_in_few_are_not(shape: tuple[int, int]) -> None:
    n, d = shape
    few = min(3, max(1, min(n, d) // 8))
    assert health(gaussian(n, d)).verdict == "healthy"
    assert health(gaussian(n, few) @ gaussian(few, d, seed=1)).verdict != "healthy"


@pytest.mark.parametrize("k", [2, 5, 9])
def test_k_equal_directions_have_rank_k(k: int) -> None:
    assert effective_rank(torch.eye(12)[torch.arange(180) % k]) == pytest.approx(k, rel=1e-4)


def test_dead_dimensions_are_counted() -> None:
    z = float32_gaussian()
    z[:, :8] = 0
    assert dead_share(z) == pytest.approx(8 / 32)


def test_the_meter_ignores_the_length_of_codes() -> None:
    z = float32_gaussian()
    assert spread(1000 * z) == pytest.approx(spread(z), rel=1e-4)
    assert effective_rank(1000 * z) == pytest.approx(effective_rank(z), rel=1e-4)


@pytest.mark.parametrize(
    ("reading", "verdict"),
    [
        (Health(1.0, 40.0, 0.0), "healthy"),
        (Health(0.3, 40.0, 0.0), "collapsing"),
        (Health(1.0, 2.0, 0.0), "collapsing"),
        (Health(1.0, 3.6, 0.0, max_rank=64), "collapsing"),
        (Health(1.0, 3.6, 0.0, max_rank=2048), "collapsing"),
        (Health(1.0, 9.4, 0.0, max_rank=128), "healthy"),
        (Health(1.0, 3.6, 0.0, max_rank=12), "healthy"),
        (Health(1.0, 40.0, 0.7), "collapsing"),
        (Health(0.05, 40.0, 0.0), "collapsed"),
        (Health(1.0, 1.1, 0.0), "collapsed"),
    ],
)
def test_the_worst_reading_decides(reading: Health, verdict: str) -> None:
    assert reading.verdict == verdict


def gaussian(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


ORTHOGONAL = torch.linalg.qr(gaussian(40, 12)).Q
RANK_ONE = gaussian(40, 1) @ gaussian(1, 12, seed=1)
CONSTANT = torch.ones(40, 12, dtype=torch.float64)


def test_alignment_is_zero_two_and_four_for_equal_orthogonal_and_opposite_codes() -> None:
    z = gaussian(30, 8)
    z[:, 4:] = 0
    turned = z.roll(4, dims=1)
    assert alignment(z, 3 * z) == pytest.approx(0, abs=1e-12)
    assert alignment(z, turned) == pytest.approx(2)
    assert alignment(z, -z) == pytest.approx(4)


def test_uniformity_is_zero_for_constant_codes_and_minus_four_for_orthogonal_ones() -> None:
    assert uniformity(CONSTANT) == pytest.approx(0, abs=1e-9)
    assert uniformity(5 * torch.eye(12, dtype=torch.float64)) == pytest.approx(-4)


def test_uniformity_is_its_double_sum() -> None:
    z = torch.nn.functional.normalize(gaussian(15, 4), dim=1)
    pairs = [math.exp(-2 * float((z[i] - z[j]).square().sum())) for i in range(15) for j in range(15) if i != j]
    assert uniformity(z) == pytest.approx(math.log(sum(pairs) / len(pairs)))


def test_the_spectrum_of_orthogonal_codes_is_flat_and_that_of_a_line_has_one_value() -> None:
    assert torch.allclose(spectrum(7 * ORTHOGONAL), torch.ones(12, dtype=torch.float64))
    for z in (RANK_ONE, CONSTANT):
        assert spectrum(z)[0] == 1
        assert spectrum(z)[1:].max() < 1e-12
    assert torch.equal(spectrum(torch.zeros(5, 3)), torch.zeros(3))


@pytest.mark.parametrize(
    ("matrix", "rank"),
    [(3 * ORTHOGONAL, 12.0), (ORTHOGONAL.T, 12.0), (RANK_ONE, 1.0), (CONSTANT, 1.0), (torch.zeros(4, 4), 0.0)],
)
def test_the_stable_rank_counts_equal_directions(matrix: torch.Tensor, rank: float) -> None:
    assert stable_rank(matrix) == pytest.approx(rank)


def test_the_stable_rank_is_the_norms_ratio_and_at_most_the_rank() -> None:
    matrix = gaussian(9, 3) @ gaussian(3, 14, seed=1)
    by_norms = torch.linalg.norm(matrix, "fro") ** 2 / torch.linalg.norm(matrix, 2) ** 2
    assert stable_rank(matrix) == pytest.approx(float(by_norms))
    assert 1 <= stable_rank(matrix) <= 3


def test_weights_are_compared_as_one_long_vector() -> None:
    a, b = [gaussian(3, 2), gaussian(4)], [gaussian(3, 2, seed=1), gaussian(4, seed=2)]
    flat_a, flat_b = torch.cat([w.flatten() for w in a]), torch.cat([w.flatten() for w in b])
    assert weight_cosine(a, b) == pytest.approx(float(torch.cosine_similarity(flat_a, flat_b, dim=0)))
    assert weight_distance(a, b) == pytest.approx(float((flat_a - flat_b).norm() / flat_a.norm()))


def test_equal_weights_have_cosine_one_and_distance_zero_and_halved_ones_half() -> None:
    a = [gaussian(3, 2), gaussian(4)]
    halved = [w / 2 for w in a]
    assert weight_cosine(a, a) == pytest.approx(1)
    assert weight_distance(a, a) == 0
    assert weight_cosine(a, halved) == pytest.approx(1)
    assert weight_distance(a, halved) == pytest.approx(0.5)
